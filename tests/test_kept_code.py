"""Compiled code is kept for the next process as long as all that goes into it is the same."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core import caching
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

import capacity
from capacity import kept_code
from capacity.kept_code import is_kept, kept, pays, sources_of

PACKAGE = Path(capacity.__file__).parent
_KEEPS = re.compile(r"^@(kept|compiled)$", re.MULTILINE)
# what a process finds on disk, and then computes
_ASKED = """
import sys
from pathlib import Path
import numpy as np
from capacity.installation.parts import compiled_code
from capacity.kept_code import is_kept
import capacity
package = Path(capacity.__file__).parent
found = compiled_code(package)
print(is_kept(package / sys.argv[1], sys.argv[2]), sum(found.functions.values()), found.stale > 0)
"""
_KEY = """
from capacity.stores.lines.key_columns import _copied
text, starts, one = np.zeros(9, np.uint8), np.zeros(2, np.int64), np.ones(1, np.int32)
_copied(np.frombuffer(b"a", np.uint8), 0 * one, one, 8 * one, 0, 1, text, np.zeros(9, np.int64),
        np.zeros(0, np.uint8), starts, text)
print(text[0])
"""
_SLOT = """
from capacity.database.io.rdf.lines.scanning import Tails, _tail
tails = Tails()
_tail(np.frombuffer(b"@en", np.uint8), 0, 3, tails.slots, tails.starts, tails.pool, tails.counts)
print(tails.slots.argmax())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "source", "function", "other", "text", "changed", "result"),
    [
        # a constant of another module: of 8 three bits are a blank node's, "_:", and four an IRI's
        (_KEY, "stores/lines/key_columns.py", "_copied", "database/io/rdf/lines/scanning.py",
         "KIND_BITS = 3", "KIND_BITS = 4", ord("<")),
        (_SLOT, "database/io/rdf/lines/scanning.py", "_tail", "database/io/files/numbering.py",
         "return value ^ (value >> _HALF)", "return np.uint64(5)", 5),
    ],
    ids=["constant", "function"],
)  # fmt: skip
def test_what_another_module_brings_into_kept_code_is_that_of_today(
    code: str, source: str, function: str, other: str, text: str, changed: str, result: int,
    tmp_path: Path,
) -> None:  # fmt: skip
    package = tmp_path / "capacity"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def answers() -> list[str]:
        command = [sys.executable, "-c", _ASKED + code, source, function]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    is_there, n, stale, first = answers()
    assert (is_there, n, stale) == ("False", "0", "False")
    # times don't count: a checkout changes them
    for path in package.rglob("*.py"):
        os.utime(path, (2**31, 2**31))
    is_there, n, stale, again = answers()
    assert (is_there, stale, again) == ("True", "False", first)
    assert int(n) > 0
    mended = package / other
    before = mended.read_text()
    assert text in before
    mended.write_text(before.replace(text, changed))
    is_there, _, stale, then = answers()
    assert (is_there, stale, then) == ("False", "True", str(result))
    assert then != first
    assert answers()[0] == "True"


def _kept_functions() -> Iterator[Dispatcher]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if _KEEPS.search(path.read_text("utf-8")):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts))
            for value in vars(module).values():
                own = isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__
                # those that are compiled into others alone have no folder
                if own and value.stats.cache_path is not None:
                    yield value


def _compiled_in(function: Any, seen: dict[Any, Path]) -> dict[Any, Path]:
    """The functions that one calls, and so on, and the source of each."""
    if function in seen:
        return seen
    plain = function._defn if isinstance(function, _Intrinsic) else function.py_func
    seen[function] = Path(plain.__code__.co_filename)
    for name in plain.__code__.co_names:
        callee = plain.__globals__.get(name)
        if isinstance(callee, Dispatcher | _Intrinsic):
            _compiled_in(callee, seen)
    return seen


def test_all_functions_that_kept_code_calls_are_among_its_sources() -> None:
    across = 0
    for function in _kept_functions():
        source = Path(function.py_func.__code__.co_filename)
        callees = set(_compiled_in(function, {}).values())
        assert callees <= sources_of(source), function
        across += len(callees - {source})
    # the scanners of lines and cells, the fused engine and the blocked one
    assert across > 10


def test_nothing_is_kept_but_under_the_digest_of_its_sources() -> None:
    named = [p for p in PACKAGE.rglob("*.py") if "cache=True" in p.read_text("utf-8")]
    assert named == [Path(kept_code.__file__)]
    function: Any
    for function in _kept_functions():
        assert function._cache._cache_file._source_stamp == kept_code.digest_of(
            Path(function.py_func.__code__.co_filename)
        )


def test_what_reads_files_is_compiled_from_few_sources() -> None:
    # a change of any of them has it compiled anew
    reading = [f for f in _kept_functions() if re.search("database|stores", f.py_func.__module__)]
    assert len(reading) > 10
    for function in reading:
        assert len(sources_of(Path(function.py_func.__code__.co_filename))) <= 12, function


def test_sources_are_the_modules_that_a_module_imports_and_so_on(tmp_path: Path) -> None:
    texts = {
        "a/__init__.py": "from a.unasked import x",
        "a/one.py": "import os\nimport a.two\nfrom a.b import (\n    three,\n    y as z,\n)\n"
        "def f():\n    from a.later import x\n",
        "a/two.py": "from a.one import f",
        "a/b/__init__.py": "from a.of_b import x\nfrom elsewhere import y",
        "a/b/three.py": "from numpy import int64",
        "a/of_b.py": "",
        "a/unasked.py": "",
        "a/later.py": "",
        "elsewhere.py": "",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = sources_of(tmp_path / "a" / "one.py")
    assert {p.relative_to(tmp_path).as_posix() for p in found} == {
        "a/one.py", "a/two.py", "a/b/__init__.py", "a/b/three.py", "a/of_b.py",
    }  # fmt: skip


def test_code_that_cannot_be_kept_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # numba keeps nothing of a source that isn't a file
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 1", "/nowhere/f.py", "exec"), names)
    assert kept(names["f"])(1) == 2
    # nor is anything kept by a numba that dates its code in a way that isn't known here
    monkeypatch.setattr(caching, "IndexDataCacheFile", lambda **_: None)
    function = kept(_next)
    assert function.stats.cache_path is None
    assert function(1) == 2
    assert not is_kept(Path(__file__), "_next")


def test_code_pays_once_the_work_of_a_process_adds_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "m.py"
    source.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))

    def decided(on_disk: bool, *work: int, function: str) -> list[bool]:
        monkeypatch.setattr(kept_code, "is_kept", lambda *_: on_disk)
        return [pays(each, source, function, kept=10, unkept=100) for each in work]

    monkeypatch.setattr(kept_code, "_work", defaultdict(int))
    monkeypatch.delitem(sys.modules, "numba")
    assert decided(True, 9, 1, 1, function="loaded") == [False, True, True]
    # each function has code of its own
    assert decided(False, 50, 49, 1, function="compiled") == [False, False, True]
    # another process may compile meanwhile
    assert decided(False, 9, function="either") == [False]
    assert decided(True, 1, function="either") == [True]
    # nothing is left to be paid for
    monkeypatch.setitem(sys.modules, "numba", None)
    assert decided(True, 1, function="imported") == [True]
    assert decided(False, 1, function="unkept") == [False]


_ADDING_UP = """
import sys
from pathlib import Path
from capacity.kept_code import pays
for work in sys.argv[2:]:
    print(int(pays(int(work), Path(sys.argv[1]), "f", kept=10, unkept=1000)), end="")
"""


def test_compilation_pays_once_the_work_of_all_processes_adds_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, kept_there = tmp_path / "m.py", tmp_path / "kept"
    source.write_text("x = 1")

    def answers(*work: int) -> str:
        command = [sys.executable, "-c", _ADDING_UP, str(source), *map(str, work)]
        env = {**os.environ, "NUMBA_CACHE_DIR": str(kept_there)}
        return subprocess.run(command, env=env, check=True, text=True, capture_output=True).stdout

    assert answers(600) == "0"
    # little work isn't worth a line
    assert answers(*[9] * 10) == "0" * 10
    assert answers(300) == "0"
    assert answers(100) == "1"
    # code of another source has been paid for by nobody
    source.write_text("x = 2")
    assert answers(600) == "0"
    # where nothing can be written, and where something else was, each process counts alone
    (tally,) = kept_there.rglob("*.tally")
    tally.write_bytes(b"\xff nothing of ours\n")
    assert answers(600, 600) == "01"
    tally.unlink()
    tally.mkdir()
    assert answers(600, 300, 100) == "001"


def _next(x: int) -> int:
    return x + 1
