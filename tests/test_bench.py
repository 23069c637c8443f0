"""Headline figures have limits, and what is beyond one is told; nothing is timed here."""

from __future__ import annotations

import os
from typing import Any

import pytest

from benchmarks import bench
from benchmarks.headlines import FIGURES
from benchmarks.headlines.figure import Figure
from capacity.installation.parts import THREADS


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
