"""What keeps intervals of `interval_width` open: limits of the methods, and generic ranks.

    python benchmarks/open_intervals.py     (after interval_width.py; some minutes)

The databases of up to 60 facts whose rank is open at the last effort of that record are searched by
`standard`, whose interval says of each open part what the methods that prove lower bounds can't
exceed. Beside it stands the generic rank of the part's shape, the rank of almost all complex
tensors of it: n_1 n_2 n_3 / (n_1 + n_2 + n_3 - 2) rounded up, and n_3, or n_1 n_2, where n_3 is
larger than (n_1 - 1)(n_2 - 1) (Abo, Ottaviani, Peterson 2009; for most shapes a conjecture).
"""

from __future__ import annotations

import argparse
import json
import os
import re
from math import prod
from pathlib import Path
from typing import Any

from interval_width import FAMILIES
from record import run_all, write

from capacity.rank import RankAnalysis

RECORD = Path(__file__).parent / "results" / "interval_width.json"
MOST_TRIPLES = 60
SHAPE = re.compile(r"(\d+) x (\d+) x (\d+)")


def generic_rank(shape: tuple[int, ...]) -> int:
    """Generic rank that is expected of a shape."""
    a, b, c = sorted(shape)
    if c > (a - 1) * (b - 1):
        return min(c, a * b)
    return -(-prod(shape) // (sum(shape) - 2))


def blocked(task: tuple[str, int]) -> dict[str, Any]:
    """What the interval of a database says of its open parts."""
    family, which = task
    db = FAMILIES[family](which)
    interval = RankAnalysis(db, effort="standard").rank
    said = [line for line in interval.explanation if SHAPE.search(line)]
    shapes = [tuple(map(int, m)) for line in said for m in SHAPE.findall(line)]
    return {
        "family": family,
        "database": which,
        "triples": db.n_triples,
        "standard": [interval.lower, interval.upper],
        "by": [interval.certificates.lower.by, interval.certificates.upper.by],
        "parts": [[list(shape), generic_rank(shape)] for shape in shapes],
        "explanation": list(interval.explanation),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/open_intervals.jsonl"))
    options = parser.parse_args()
    held = [row for row in json.loads(RECORD.read_text())["rows"] if "database" in row]
    small = [row for row in held if row["family"] in FAMILIES and row["triples"] <= MOST_TRIPLES]
    last = ("quick", "standard", "thorough")[len({row["effort"] for row in small}) - 1]
    left = {
        (row["family"], row["database"]): row["rank"]
        for row in small
        if row["effort"] == last and row["rank"][0] < row["rank"][1]
    }
    rows = run_all(blocked, list(left), kept=options.out, workers=options.workers)
    for row in rows:
        row[last] = left[row["family"], row["database"]]
    write(
        "open_intervals",
        what=f"databases of up to {MOST_TRIPLES} facts whose rank {last} leaves open, and why",
        peer="the generic rank of an open part's shape",
        rows=[{"databases": len(small) // 3, "open": len(rows)}, *rows],
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
