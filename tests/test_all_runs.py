"""All experiments run together: in order, several at a time, on from where one was stopped."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, NEEDS
from experiments.common.all_runs import run_all

ROOT = Path(__file__).parents[1]
# writes its name and the times of its beginning and end, and fails if it is called so
TOY = """
import os, sys, time
from pathlib import Path
name = Path(__file__).stem
assert sys.argv[1:] == ["--run"] and os.environ["EXPERIMENT_PROCESSES"] == "1"
begun = time.time()
time.sleep(0.3)
if name == "bad":
    sys.exit("as it is called")
with open(Path(__file__).with_name("log"), "a") as file:
    file.write(f"{name} {begun} {time.time()}\\n")
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "toys"
    folder.mkdir()
    for name in ("a", "b", "c", "bad", "after_bad"):
        (folder / f"{name}.py").write_text(TOY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return folder


def done(toys: Path) -> dict[str, tuple[float, float]]:
    lines = (toys / "log").read_text().splitlines() if (toys / "log").exists() else []
    return {name: (float(begun), float(end)) for name, begun, end in map(str.split, lines)}


def test_the_longest_begins_first_and_what_needs_another_waits(toys: Path, tmp_path: Path) -> None:
    modules = {name: f"toys.{name}" for name in "abc"}
    needs, cost = {"c": ("a",)}, {"c": 9.0, "b": 2.0, "a": 1.0}
    assert run_all(modules, needs, cost, tmp_path / "all", at_a_time=2) == []
    found = done(toys)
    assert found["b"][0] < found["a"][1]
    assert found["c"][0] >= found["a"][1]
    assert not (tmp_path / "all" / "done.json").exists()


def test_a_failure_is_told_and_the_others_are_kept(
    toys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = {name: f"toys.{name}" for name in ("bad", "after_bad", "a")}
    needs = {"after_bad": ("bad",)}
    assert run_all(modules, needs, {}, tmp_path / "all", at_a_time=1) == ["bad", "after_bad"]
    assert "bad failed: " in capsys.readouterr().out
    assert "as it is called" in (tmp_path / "all" / "bad.log").read_text()
    assert [*done(toys)] == ["a"]
    # the one that is done isn't run again
    (toys / "bad.py").write_text("")
    begun = time.time()
    assert run_all(modules, needs, {}, tmp_path / "all", at_a_time=1) == []
    assert done(toys)["a"][1] < begun < done(toys)["after_bad"][0]


def test_what_an_experiment_needs_is_what_its_files_read() -> None:
    read: dict[str, set[str]] = {}
    for name, module in EXPERIMENTS.items():
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        files = [path, path.with_name(f"{name}_numbers.py")]
        texts = "".join(file.read_text() for file in files if file.exists())
        if others := {*re.findall(r"committed\(\s*\"(\w+)\"", texts)}:
            read[name] = others
    assert read == {name: {*needs} for name, needs in NEEDS.items()}
