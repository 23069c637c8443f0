"""Write ``docs/known-ranks.md``: which known ranks are closed at which effort.

    python -m tools.known_ranks

The databases stand in ``tests/oracles.py``, and where their ranks come from in
``capacity/testing/known_blocks.py``; tensors and their sources in
``capacity/tensor/known.py``. Nothing that finds bounds knows these values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from capacity.rank import effective_rank_interval, rank_interval
from capacity.rank.interval import RankInterval
from capacity.rank.options import EFFORTS, Effort
from capacity.rank.verifier.checker import verify
from capacity.tensor import KNOWN_RANKS as KNOWN_TENSORS
from capacity.tensor import KnownTensor
from tests.oracles import KNOWN_RANKS

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "known-ranks.md"
RECORDS = ROOT / "benchmarks" / "results"
HEAD = """# Known ranks, and what the library finds

Databases and tensors whose rank is a theorem, with the certified intervals that `rank_interval`
finds. **Bold** intervals are closed. The tables are written by `tools/known_ranks.py`, and the
search uses none of the known ranks.

## Databases

At each effort, with `effective_rank_interval` at `standard`; `capacity/testing/known_blocks.py` has
the sources of the known ranks.

| database | facts | rank | quick | standard | thorough | lower by | upper by | effective rank |
|---|---|---|---|---|---|---|---|---|
"""
TENSORS = """
## Tensors

The tensors of [`capacity.tensor.KNOWN_RANKS`](api/capacity.tensor.md#known_ranks), with their ranks
over the reals; their sources are in `capacity/tensor/known.py`. Of some an interval is
known. [Bound the rank of your own tensor](how-to/own-tensor.md) begins with such a tensor.

| tensor | shape | rank | quick | standard | lower by | upper by | source |
|---|---|---|---|---|---|---|---|
"""
RANDOM = """
## Random databases

What proves the lower ends of the certified ranks among the 120 random databases of
`benchmarks/interval_width.py`, at `thorough`, by its record, measured at {commit}: how many, and
the smallest of them. Their ranks are known by these certificates alone.

| lower by | databases | smallest | facts | rank |
|---|---|---|---|---|
"""
BLOCKS = """
## Dense parts

Databases whose rank isn't known, and what proves more of it at `standard` where slices may be
removed several at once (`BlockSubstitution`), by the record of `benchmarks/block_substitution.py`,
measured at {commit}.

| database | facts | at least | at least, each slice by itself | at most |
|---|---|---|---|---|
"""


def row(name: str, efforts: tuple[Effort, ...] = EFFORTS) -> list[str]:
    """The cells of a database, with the methods of the last of some efforts."""
    make, rank = KNOWN_RANKS[name]
    db = make()
    found = [rank_interval(db, effort=effort) for effort in efforts]
    effective = effective_rank_interval(db, effort="standard")
    for interval in (*found, effective):
        assert all(verify(end, db).proved for end in interval.certificates)
    assert all(rank in interval for interval in found)
    cells = [shown(i) for i in (*found, effective)]
    by = [found[-1].certificates.lower.by, found[-1].certificates.upper.by]
    return [name, str(db.n_triples), str(rank), *cells[:-1], *by, cells[-1]]


def tensor_row(known: KnownTensor) -> list[str]:
    """The cells of a tensor, with the methods of `standard`."""
    found = [rank_interval(known.tensor, effort=effort) for effort in EFFORTS[:2]]
    for interval in found:
        assert verify(interval, known.tensor).proved
        assert interval.lower <= known.upper
        assert interval.upper >= known.lower
    last = found[-1]
    return [
        known.name.replace("<", "&lt;"),
        " x ".join(map(str, known.tensor.shape)),
        f"{known.lower}" if known.rank is not None else f"{known.lower} to {known.upper}",
        *map(shown, found),
        last.certificates.lower.by,
        last.certificates.upper.by,
        known.source,
    ]


def shown(interval: RankInterval) -> str:
    """An interval, bold if it is closed."""
    return f"**{interval}**" if interval.closed else str(interval)


def of_random_databases() -> list[list[str]]:
    """The cells of each method that proves lower ends of closed intervals in the record."""
    known = [
        one
        for one in json.loads((RECORDS / "interval_width.json").read_text())["rows"]
        if one.get("effort") == "thorough" and isinstance(one.get("database"), int)
        if one["rank"][0] == one["rank"][1]
    ]
    rows = []
    for method, count in Counter(one["by"][0] for one in known).most_common():
        mine = (one for one in known if one["by"][0] == method)
        least = min(mine, key=lambda one: (one["triples"], one["family"], one["database"]))
        rows.append([method, str(count), f"{least['family']} {least['database']}",
                     str(least["triples"]), str(least["rank"][0])])  # fmt: skip
    return rows


def of_dense_parts() -> list[list[str]]:
    """The cells of each database whose lower end is a `BlockSubstitution` in the record."""
    rows = json.loads((RECORDS / "block_substitution.json").read_text())["rows"]
    return [
        [f"{one['graph']}, seed {one['seed']}", f"{one['facts']:,}",
         *(f"{n:,}" for n in (one["with"]["rank"][0], one["without"]["rank"][0],
                              one["with"]["rank"][1]))]
        for one in rows
        if "block substitution" in one.get("with", {}).get("kinds", ())
    ]  # fmt: skip


def measured(text: str, record: str) -> str:
    """A part of the document with the commit that its record was measured at."""
    return text.format(commit=json.loads((RECORDS / f"{record}.json").read_text())["commit"][:7])


def table(rows: Iterable[list[str]]) -> str:
    """Lines of a table, each printed when it is there."""
    lines = []
    for cells in rows:
        lines.append(f"| {' | '.join(cells)} |\n")
        print(lines[-1], end="", flush=True)
    return "".join(lines)


def main() -> None:
    """Write the document."""
    tensors = table(map(tensor_row, KNOWN_TENSORS))
    databases = table(map(row, KNOWN_RANKS))
    drawn, dense = table(of_random_databases()), table(of_dense_parts())
    text = HEAD + databases + TENSORS + tensors
    text += measured(RANDOM, "interval_width") + drawn
    text += measured(BLOCKS, "block_substitution") + dense
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
