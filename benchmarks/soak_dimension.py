"""Count what `verify_dimension` proves that is false, in thousands of mutated claims.

    make soak-dimension   (10,000 claims, some minutes on two cores; goes on where it was stopped)

A trial draws a graph whose dimension is known on one side: read off the scores of a model with
random integers, whose dimension is then enough; or with a cube within, which by a theorem needs as
many dimensions as it has relations. Twenty claims about it come from an honest one, with numbers
that are out of range, negative, huge or equal to others, lists that are cut and doubled, or signs
at points that aren't there. None that is proved may contradict what is known.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from record import run_all, write

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.embedding.forged import trial

# claims of a trial
CLAIMS = 20


def one(seed: int) -> dict[str, Any]:
    """Counts of the claims of a trial, and those that are false."""
    return {"seed": seed, **trial(seed, CLAIMS)}


def main() -> None:
    """Run all trials, and write the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/soak_dimension.jsonl"))
    options = parser.parse_args()
    rows = run_all(one, list(range(options.trials)), kept=options.out, workers=options.workers)
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["counts"])
    wrong = [claim for row in rows for claim in row["wrong"]]
    write(
        "soak_dimension",
        what="mutated claims of dimensions against explicit witnesses and lower bounds by theorem: "
        "what is proved, and how much of it is false",
        peer="none: any false proof is an error",
        rows=[{"trials": len(rows), "false_proofs": len(wrong), **total}, *wrong],
        packages=["numpy", "scipy", "python-flint"],
    )


if __name__ == "__main__":
    main()
