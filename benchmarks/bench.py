"""Headline figures against their limits: what `make bench` runs, and continuous integration.

    make bench     (a few minutes)
    python benchmarks/bench.py [FIGURE ...]

`benchmarks/limits.toml` has a table for each figure: its limit, what it is beside, and what it was
when the limit was set. A ratio fails beyond 1.5 times its limit, by the best of three tries; a
count, which is the same on any machine, beyond 1.1 times. Limits go down; one that goes up says why
in its commit.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from headlines import FIGURES
from headlines.figure import Figure
from record import commit
from rich.console import Console
from rich.table import Table

from capacity.installation.parts import THREADS

LIMITS = Path(__file__).parent / "limits.toml"
# how far beyond its limit a figure may be, and how often it is tried
MARGIN = {"ratio": 1.5, "count": 1.1}
TRIES = {"ratio": 3, "count": 1}


def limits() -> dict[str, dict[str, Any]]:
    """The table of each figure."""
    return tomllib.loads(LIMITS.read_text(encoding="utf-8"))


def tried(figure: Figure, limit: float) -> tuple[float, bool]:
    """Return the best of the tries of a figure, and whether it is beyond its limit."""
    found = float("inf")
    for _ in range(TRIES[figure.kind]):
        found = min(found, figure.measure())
        if found <= MARGIN[figure.kind] * limit:
            return found, False
    return found, True


def in_one_thread() -> None:
    """Begin this process again unless its libraries compute in one thread."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        # they are loaded by now, and have read the number
        one = {**os.environ, **dict.fromkeys(THREADS, "1")}
        os.execve(sys.executable, [sys.executable, *sys.argv], one)


def main() -> None:
    """Measure, print a row for each figure, and fail if one is beyond its limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="*", help="names of figures; all, if none is given")
    options = parser.parse_args()
    in_one_thread()
    held = limits()
    if held.keys() != FIGURES.keys():
        differ = ", ".join(sorted(held.keys() ^ FIGURES.keys()))
        parser.error(f"each figure must have a table in {LIMITS.name}, and no other: {differ}")
    if unknown := set(options.figures) - FIGURES.keys():
        parser.error(f"no such figure: {', '.join(sorted(unknown))}; there are {', '.join(held)}")
    console = Console(width=120)
    table = Table("figure", "here", "limit", "when set", "beside", "seconds", "")
    over: list[str] = []
    for name in options.figures or FIGURES:
        figure, limit = FIGURES[name], held[name]["limit"]
        began = time.perf_counter()
        found, beyond = tried(figure, limit)
        if beyond:
            over.append(f"{name}: {found:.4g}, over {MARGIN[figure.kind]} times {limit}")
        row = f"{found:.4g}", f"{limit}", f"{held[name]['was']}"
        took = f"{time.perf_counter() - began:.0f}"
        console.print(f"{name}: {row[0]} (limit {limit}), {took} s", highlight=False)
        table.add_row(name, *row, figure.beside, took, "over" if beyond else "")
    console.print(table)
    console.print(f"at commit {commit()}", highlight=False)
    if over:
        raise SystemExit("slower than it may be:\n" + "\n".join(over))


if __name__ == "__main__":
    main()
