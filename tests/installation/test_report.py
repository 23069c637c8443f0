"""A report of the installation is quick, and survives whatever is missing or broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from capacity.installation.parts import compiled_code, extras, gpu
from capacity.installation.report import installation
from capacity.kept_code import digest_of
from capacity.optional import EXTRAS
from tests.commands import run, run_json

_WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from capacity.cli import _run
sys.exit(_run(["doctor", *sys.argv[2:]]))
"""


def doctor_without(
    *packages: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT, ",".join(packages), *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_doctor_without_any_extra_says_what_installs_each() -> None:
    done = doctor_without(*EXTRAS)
    assert (done.returncode, done.stderr) == (0, "")
    for extra in set(EXTRAS.values()):
        assert f"pip install 'knowledge-capacity[{extra}]'" in done.stdout
    assert "torch isn't installed" in done.stdout


@pytest.mark.slow
def test_doctor_asked_for_a_gpu_without_torch_says_why_there_is_none() -> None:
    done = doctor_without("torch", options=("--device", "cuda", "--json"))
    found = json.loads(done.stdout)
    assert (done.returncode, found["device"]) == (0, "cpu")
    assert found["gpu"]["reason"] == "torch isn't installed"
    assert any("no GPU is usable" in problem for problem in found["problems"])


@pytest.mark.slow
def test_a_torch_that_fails_is_a_reason_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch.so: not found')")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "capacity.cli", "doctor", "--device", "cuda"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "torch fails: OSError: libtorch.so: not found" in done.stdout


@pytest.mark.slow
def test_doctor_imports_nothing_that_takes_long() -> None:
    heavy = "torch numba pandas seaborn matplotlib transformers dask scipy.sparse"
    code = (
        "from capacity.cli import _run; import sys\n"
        "assert _run(['doctor', '--device', 'cpu', '--json']) == 0\n"
        f"print([n for n in {heavy.split()!r} if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_on_cpu_no_gpu_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked() -> bool:
        raise AssertionError("looked for a driver")

    monkeypatch.setattr("capacity.installation.parts._has_driver", looked)
    assert (gpu("cpu").asked, gpu("cpu").usable) == (False, False)
    assert installation("cpu").device == "cpu"


def test_a_driver_without_a_usable_gpu_is_a_problem_that_names_the_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    monkeypatch.setattr("capacity.installation.parts._has_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    (problem,) = installation("auto").problems
    assert (
        "this build of torch is for processors alone. Install a build of torch for CUDA" in problem
    )


def test_a_usable_gpu_is_named_and_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr("capacity.installation.parts._has_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda i: f"GPU {i}")
    found = installation("auto")
    assert (found.device, found.gpu.names, found.problems) == ("cuda", ("GPU 0", "GPU 1"), ())


def test_compiled_code_is_counted_by_room_and_stale_code_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kept = tmp_path / "rank" / "upper" / "__pycache__"
    kept.mkdir(parents=True)
    python = "".join(map(str, sys.version_info[:2]))
    for module in ("fresh", "stale"):
        source = tmp_path / "rank" / "upper" / f"{module}.py"
        source.write_text("x = 1")
        # whatever the times of the files
        (kept / f"{module}._flip-3.py{python}.nbi").write_bytes(digest_of(source))
        (kept / f"{module}._flip-3.py{python}.1.nbc").write_bytes(b"12345")
        source.write_text({"fresh": "x = 1", "stale": "x = 2"}[module])
    digest_of.cache_clear()
    # of another Python: its bytes count, its functions don't
    (kept / "fresh._flip-3.py27.nbi").write_bytes(b"12345")
    found = compiled_code(tmp_path)
    assert (found.functions, found.stale, found.size) == ({"rank": 1}, 1, 2 * (32 + 5) + 5)
    assert found.folders == (str(kept),)


def test_compiled_code_is_found_where_numba_is_told_to_keep_it(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
import capacity
from capacity.installation.parts import compiled_code
from capacity.kept_code import digest_of
from capacity.rank.upper import binary_walk
package = Path(capacity.__file__).parent
where = Path(binary_walk.below.stats.cache_path)
where.mkdir(parents=True, exist_ok=True)
digest = digest_of(Path(binary_walk.__file__))
name = f"binary_walk.below-1.py{sys.version_info[0]}{sys.version_info[1]}.nbi"
(where / name).write_bytes(digest)
print(compiled_code(package).functions)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.strip() == "{'rank': 1}"


def test_every_package_of_an_extra_belongs_to_one() -> None:
    # pandas is of plots and of layers; each other package is of one
    assert {extra.name for extra in extras()} == set(EXTRAS.values())


def test_doctor_prints_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    from capacity import __version__

    code, out, err = run(capsys, "doctor", "--device", "cpu")
    assert (code, err) == (0, "")
    assert out.startswith(f"capacity {__version__}, in ")
    assert "no problem was found" in out
    assert run_json(capsys, "doctor", "--device", "cpu")["capacity"] == __version__
