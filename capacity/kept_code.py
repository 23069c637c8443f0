"""Compiled code that numba keeps on disk for the next process.

Importing numba, and compiling most of all, takes longer than many answers: who knows that nothing
is kept may do with Python. So what is kept is found here without numba.

Numba itself takes kept code for that of a function as long as the function's file is the same. But
functions and constants of other modules are compiled into it. So code is kept here under the digest
of all sources that may be: the function's module, the modules of this package that it imports, and
so on. It is found by their bytes, not by their times, which a checkout changes.

Small kernels compute without numba, too: a plain function of scalars, one-dimensional arrays and
a generator runs in Python on lists, some hundred times more slowly. As with skis, which can be
rented or bought, a process continues in Python until that has taken about half as long as the
import would, or the compilation where nothing compiled is kept on disk, and compiles from then on:
little is lost if it ends soon, and little if it doesn't. Results don't depend on the choice.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

# an import at a module's top; in a function it brings no name to compiled code
_IMPORT = re.compile(r"^(?:from|import) ([\w.]+)(?: import (\([^)]*\)|.*))?", re.MULTILINE)

# most lines of a tally of work, about, until the code is compiled
_LINES = 100
# work that came to functions in this process, in units of their own
_work: defaultdict[tuple[Path, str], int] = defaultdict(int)


def kept(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function at its first call with arguments of some types, and keep the code.

    Parameters
    ----------
    function : callable
        The function, of a module's top.
    **options
        Options of ``numba.njit``.

    Returns
    -------
    function of numba
        It is compiled by each process where numba can't keep its code.
    """
    import numba

    with suppress(OSError, RuntimeError):
        dispatcher: Any = numba.njit(cache=True, **options)(function)
        index: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        # code whose sources couldn't be told mustn't be kept
        if hasattr(index, "_source_stamp"):
            index._source_stamp = digest_of(Path(function.__code__.co_filename))
            return dispatcher
    return numba.njit(**options)(function)


def is_kept(source: Path, function: str) -> bool:
    """Return True if compiled code of a function is on disk.

    It may be for arguments of other types, another processor or another version of numba, which
    only numba can check: then the function is compiled once where Python was thought to be slower.

    Parameters
    ----------
    source : Path
        Source of the function's module.
    function : str
        Its qualified name.
    """
    names = f"{source.stem}.{function}-*.py{sys.version_info[0]}{sys.version_info[1]}*.nbi"
    indices = (index for folder in folders_of(source.parent) for index in folder.glob(names))
    return any(is_index_of(source, index) for index in indices)


def pays(work: int, source: Path, function: str, *, kept: int, unkept: int) -> bool:
    """Return True if a function's compiled code should do some work, which Python can do as well.

    As with skis, which can be rented or bought, Python does the work until all that came to the
    function would have paid for its compilation, or for loading it. For loading, the work of this
    process counts; for compilation, after which the code is kept, that of earlier ones too.

    Parameters
    ----------
    work : int
        Amount of work.
    source, function : Path, str
        Source and qualified name of the function.
    kept, unkept : int
        Least amount that pays where the code is kept on disk, for numba must be imported; and where
        it must be compiled.
    """
    on_disk = is_kept(source, function)
    if on_disk and "numba" in sys.modules:
        return True
    _work[source, function] += work
    if on_disk:
        return _work[source, function] >= kept
    return max(_work[source, function], _tallied(work, source, function, unkept)) >= unkept


def _tallied(work: int, source: Path, function: str, unkept: int) -> int:
    """Add work to the tally of a function on disk, and return that of all processes."""
    # small work isn't worth a file, nor a line of it
    if work < unkept // _LINES or work >= unkept:
        return work
    digest = digest_of(source).hex()
    for folder in folders_of(source.parent):
        with suppress(OSError, ValueError):
            folder.mkdir(parents=True, exist_ok=True)
            tally = folder / f"{source.stem}.{function}.tally"
            with tally.open("a", encoding="ascii") as file:
                # processes side by side each append a line at once
                file.write(f"{digest} {work}\n")
            lines = (line.split() for line in tally.read_text("ascii").splitlines())
            return sum(int(amount) for of, amount in lines if of == digest)
    return work


def is_index_of(source: Path, index: Path) -> bool:
    """Return True if an index of compiled code, as numba writes it, is of the sources of today."""
    with suppress(OSError):
        return digest_of(source) in index.read_bytes()
    return False


@cache
def digest_of(source: Path) -> bytes:
    """Return the digest of a module's sources, when this process first asked."""
    digests = (hashlib.sha256(path.read_bytes()).digest() for path in sorted(sources_of(source)))
    return hashlib.sha256(b"".join(digests)).digest()


def sources_of(source: Path) -> set[Path]:
    """Find all that may be compiled into a module's code: it, what it imports, and so on."""
    found, ahead = {source}, [source]
    while ahead:
        new = _imported(ahead.pop()) - found
        found |= new
        ahead += new
    return found


@cache
def _imported(source: Path) -> frozenset[Path]:
    """Return the modules that a module imports of its own package, whatever is taken of them."""
    package = source.parent
    while (package / "__init__.py").exists():
        package = package.parent
    found: set[Path] = set()
    for module, names in _IMPORT.findall(source.read_text("utf-8")):
        if (package / module.partition(".")[0] / "__init__.py").exists():
            at = package / module.replace(".", "/")
            # a name may be that of a module
            for one in (at, *(at / name for name in re.findall(r"\w+", names))):
                both = one.with_suffix(".py"), one / "__init__.py"
                found.update(path for path in both if path.exists())
    return frozenset(found)


def folders_of(sources: Path) -> Iterator[Path]:
    """Yield the folders where numba keeps the code of a folder of sources."""
    # numba names a folder of its own cache by that of the sources, and by the SHA-1 of its path
    digest = hashlib.sha1(str(sources).encode(), usedforsecurity=False).hexdigest()
    own = f"{sources.name}_{digest}"
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if asked:
        yield Path(asked, own)
        return
    yield sources / "__pycache__"
    yield _users_folder() / own


def _users_folder() -> Path:
    """Return where numba keeps code if it can't write beside the sources."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "numba"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()), "numba", "Cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "numba")


Result = TypeVar("Result")
# in Python, before numba is imported, and before a kernel is compiled
MOST_STEPS, MOST_STEPS_UNKEPT = 2 * 10**6, 10**7


class _Interpreted:
    """Steps that this process has done in Python."""

    steps = 0


# whether code was kept when this process first asked: a quick bound asks a thousand times
_was_kept = cache(is_kept)


def pays_to_compile(steps: int, source: Path, function: str) -> bool:
    """Return True if some steps should be done by compiled code; otherwise count them.

    Parameters
    ----------
    steps : int
        Number of steps, of about a tenth of a microsecond in Python.
    source, function : Path, str
        Source and name of the function that would be compiled.

    Returns
    -------
    bool
        True if with these there would be more than `MOST_STEPS` in Python, or `MOST_STEPS_UNKEPT`
        if no compiled code of the function is kept on disk; and at once if some is, and numba is
        imported already.

    Examples
    --------
    >>> pays_to_compile(10**10, Path("module.py"), "function")
    True
    """
    was_kept = _was_kept(source, function)
    most = MOST_STEPS if was_kept else MOST_STEPS_UNKEPT
    if (was_kept and "numba" in sys.modules) or _Interpreted.steps + steps > most:
        return True
    _Interpreted.steps += steps
    return False


def run_kernel(kernel: Callable[..., Result], steps: int, *arguments: Any) -> Result:
    """Call a kernel, compiled if that pays.

    Parameters
    ----------
    kernel : callable
        The kernel. It returns what it finds, and must not return it in its arguments, which Python
        receives as lists.
    steps : int
        Estimated steps, for `pays_to_compile`.
    *arguments
        Arguments of the kernel.

    Returns
    -------
    object
        Return value of the kernel.
    """
    if pays_to_compile(steps, _source(kernel.__code__.co_filename), kernel.__qualname__):
        return _compiled(kernel)(*arguments)
    return kernel(*(a.tolist() if isinstance(a, np.ndarray) else a for a in arguments))


_source = cache(Path)


@cache
def _compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    return kept(kernel)
