"""Which records today's code has outgrown, and how old they are.

    python benchmarks/stale.py     (exit code 1 if a record that may not be stale is)

A record names the commit and a digest of the code that it measured (`records.toml` has the
modules). One from before there were digests names the commit that brought it, whose digest is
computed. Records of more than an hour, soaks, those of another machine, and studies may be stale;
those of headline figures may not when an issue is resolved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from digests import ROOT, digest_at, digest_here, git, registered
from rich.console import Console
from rich.table import Table

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class State:
    """A record beside the code of today.

    Attributes
    ----------
    name : str
        Name of the record.
    commit : str
        The commit that it measured.
    stale : bool
        Whether the code is another today.
    old : str
        Why it may be stale; empty if it may not.
    """

    name: str
    commit: str
    stale: bool
    old: str


def state_of(path: Path) -> State:
    """Compare a record with the code of today."""
    record = json.loads(path.read_text(encoding="utf-8"))
    about = registered()[path.stem]
    commit = str(record["commit"]).removesuffix("-dirty")
    measured = record.get("digest") or digest_at(commit, about["modules"])
    stale = measured != digest_here(about["modules"])
    return State(path.stem, commit, stale, about.get("old", ""))


def states() -> list[State]:
    """The state of each record."""
    return [state_of(path) for path in sorted(RESULTS.glob("*.json"))]


def _age(commit: str) -> str:
    day = git("show", "-s", "--format=%cs", commit)
    return f"{(date.today() - date.fromisoformat(day)).days} days" if day else "unknown"


def main() -> None:
    """Print a row for each record that is stale."""
    found = states()
    table = Table("record", "measured at", "age", "may be stale")
    outgrown = [one for one in found if one.stale]
    for one in outgrown:
        table.add_row(one.name, one.commit[:7], _age(one.commit), one.old or "no")
    if outgrown:
        Console(width=100).print(table)
    print(f"{len(found) - len(outgrown)} of {len(found)} records are of today's code")
    if wrong := [one.name for one in outgrown if not one.old]:
        raise SystemExit(f"to be measured again: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
