"""Records of benchmarks name what they measured, and pages that quote one name its commit."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench, digests, stale
from benchmarks.headlines import FIGURES
from benchmarks.headlines.figure import Figure
from capacity.installation.parts import THREADS
from tests.oracles import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.slow
def test_every_record_says_which_modules_it_measures() -> None:
    registered = digests.registered()
    # a soak that has never ended has no record
    assert {path.stem for path in RESULTS.glob("*.json")} <= registered.keys()
    for name, about in registered.items():
        assert (ROOT / "benchmarks" / f"{name}.py").exists() or name.startswith("soak"), name
        assert digests.digest_here(about["modules"])


def test_a_digest_is_of_code_and_not_of_words(tmp_path: Path) -> None:
    folder = tmp_path / "pkg"
    folder.mkdir()
    module = folder / "a.py"

    def digest(text: str) -> str:
        module.write_text(text)
        return digests.digest_here(["pkg"], tmp_path)

    first = digest('"""Words."""\n\n\ndef f(x):\n    """More."""\n    return x + 1\n')
    assert digest("def f( x ):\n    # why\n    return (x + 1)\n") == first
    assert digest("def f(x):\n    return x + 2\n") != first
    assert digest('def f(x):\n    "a"\n    "b"\n    return x + 1\n') != first
    module.rename(folder / "b.py")
    assert digests.digest_here(["pkg"], tmp_path) != first
    with pytest.raises(ValueError, match="must name modules that exist; other doesn't"):
        digests.digest_here(["other"], tmp_path)


def test_a_digest_at_a_commit_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    module = tmp_path / "pkg" / "a.py"
    module.write_text("x = 1\n")
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", "a"]):
        digests.git(*command, root=tmp_path)
    commit, before = (
        digests.git("rev-parse", "HEAD", root=tmp_path),
        digests.digest_here(["pkg"], tmp_path),
    )
    assert len(commit) == 40
    assert digests.digest_at(commit, ["pkg"], tmp_path) == before
    module.write_text("x = 2\n")
    assert digests.digest_here(["pkg"], tmp_path) != before
    assert digests.digest_at(commit, ["pkg"], tmp_path) == before


def test_a_record_of_other_code_is_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    about = {"modules": ["capacity/checks.py"], "old": "hours"}
    monkeypatch.setattr(stale, "registered", lambda: {"one": about})
    path = tmp_path / "one.json"
    today = digests.digest_here(about["modules"])
    for digest, expected in ((today, False), ("0" * 16, True)):
        path.write_text(json.dumps({"commit": "abc", "digest": digest}))
        assert stale.state_of(path) == stale.State("one", "abc", expected, "hours")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_that_quotes_a_record_names_its_commit(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    quoted = set(re.findall(r"benchmarks/(?:results/)?([a-z_]+)\.(?:json|py)", text))
    for name in sorted(quoted & {path.stem for path in RESULTS.glob("*.json")}):
        record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        commit = record["commit"][:7]
        # where lines end doesn't matter
        assert f"measured at {commit}" in " ".join(text.split()), (name, commit)


def counted(kind: Any, values: list[float]) -> tuple[Figure, list[float]]:
    """A figure that gives these values in turn, and those that are left."""
    left = list(values)
    return Figure(kind, "nothing", lambda: left.pop(0)), left


@pytest.mark.parametrize(
    ("kind", "values", "found", "beyond", "tries"),
    [
        ("ratio", [1.4, 9.0, 9.0], 1.4, False, 1),
        ("ratio", [9.0, 1.6, 1.5], 1.5, False, 3),
        ("ratio", [9.0, 1.6, 1.7], 1.6, True, 3),
        ("count", [1.1, 0.0, 0.0], 1.1, False, 1),
        ("count", [1.2, 0.0, 0.0], 1.2, True, 1),
    ],
)
def test_a_figure_beyond_its_limit_is_found(
    kind: str, values: list[float], found: float, beyond: bool, tries: int
) -> None:
    figure, left = counted(kind, values)
    assert bench.tried(figure, 1.0) == (found, beyond)
    assert len(values) - len(left) == tries


def test_figures_are_measured_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda _program, _line, variables: begun.append(variables))
    for threads, again in (("1", False), ("2", True)):
        for name in THREADS:
            monkeypatch.setenv(name, "1")
        monkeypatch.setenv(THREADS[0], threads)
        bench.in_one_thread()
        assert bool(begun) == again
    assert all(begun[0][name] == "1" for name in THREADS)


def test_each_figure_has_a_limit_and_no_limit_is_without_a_figure() -> None:
    held = bench.limits()
    assert held.keys() == FIGURES.keys()
    for name, of in held.items():
        assert of.keys() == {"limit", "was", "beside", "commit"}
        assert of["beside"] == FIGURES[name].beside
        # a limit that is far from the figure holds nothing
        assert 0 < of["was"] <= of["limit"] <= 1.15 * of["was"]
