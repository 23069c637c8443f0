"""Write ``docs/known-ranks.md``: which known ranks are closed at which effort.

    python -m tools.known_ranks

The databases stand in ``tests/oracles.py``, and where their ranks come from in
``capacity/testing/known_blocks.py``. Nothing that finds bounds knows these values.
"""

from __future__ import annotations

from pathlib import Path

from capacity.rank import effective_rank_interval, rank_interval
from capacity.rank.effort import EFFORTS, Effort
from capacity.rank.verifier.checker import verify
from tests.oracles import KNOWN_RANKS

DOCUMENT = Path(__file__).parents[1] / "docs" / "known-ranks.md"
HEAD = """# Known ranks, and what the library finds

Databases whose rank is a theorem, with the certified intervals that `rank_interval` finds at each
effort, and `effective_rank_interval` at `standard`. **Bold** intervals are closed. The table is
written by `tools/known_ranks.py`; `capacity/testing/known_blocks.py` has the sources of the known
ranks, which the search doesn't use.

| database | facts | rank | quick | standard | thorough | lower by | upper by | effective rank |
|---|---|---|---|---|---|---|---|---|
"""


def row(name: str, efforts: tuple[Effort, ...] = EFFORTS) -> list[str]:
    """The cells of a database, with the methods of the last of some efforts."""
    make, rank = KNOWN_RANKS[name]
    db = make()
    found = [rank_interval(db, effort=effort) for effort in efforts]
    effective = effective_rank_interval(db, effort="standard")
    for interval in (*found, effective):
        assert all(verify(end, db).proved for end in (interval.lower, interval.upper))
    assert all(rank in interval for interval in found)
    cells = [f"**{i}**" if i.closed else str(i) for i in (*found, effective)]
    by = [found[-1].lower.by, found[-1].upper.by]
    return [name, str(db.n_triples), str(rank), *cells[:-1], *by, cells[-1]]


def main() -> None:
    """Write the document."""
    lines = []
    for name in KNOWN_RANKS:
        lines.append("| " + " | ".join(row(name)) + " |")
        print(lines[-1], flush=True)
    DOCUMENT.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
