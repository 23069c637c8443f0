"""Whether any numerical result falls below a certified lower bound, in thousands of random trials.

    make soak          (10,000 trials, an hour on two cores; goes on where it was stopped)
    python benchmarks/soak_rank.py --no-fits     (the same draws, their certificates alone: minutes)

A trial draws small facts, bounds their rank and effective rank, and lets the fits try to do with
one term less than the certified lower bound: `cp_estimate`, Levenberg-Marquardt fits of the rank,
and masked ones of the effective rank, under the conditions on which their results are accepted. One
that is accepted refutes a certificate, or shows that fits are accepted too easily. A third of the
facts are of border rank below their rank, where fits come as close as one likes.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import run_all, write

from capacity.database import Database, random_database
from capacity.rank import RankAnalysis, cp_estimate
from capacity.rank.cp.exact_fits import accepted
from capacity.rank.cp.levenberg_marquardt import fit_cp, random_start
from capacity.rank.verifier.checker import verify

STARTS = 2


def dense(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """A full table of few objects."""
    k, q, v = rng.integers(2, 6, 3)
    return [(i, j, int(rng.integers(v))) for i in range(k) for j in range(q)]


def uniform(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Triples at random, with several objects a pair."""
    shape = rng.integers(2, 6, 3)
    n = int(rng.integers(3, max(4, int(shape.prod() * 0.7))))
    cells = rng.permutation(int(shape.prod()))[:n]
    return [tuple(map(int, row)) for row in np.stack(np.unravel_index(cells, shape), axis=1)]


def truncated(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Products of truncated polynomials side by side: W is x^2; the border rank is the degree."""
    rows: list[tuple[int, ...]] = []
    for block in range(int(rng.integers(1, 3))):
        n, at = int(rng.integers(2, 5)), 10 * block
        rows += [(at + i, at + j, at + i + j) for i in range(n) for j in range(n - i)]
    extra = int(rng.integers(0, 3))
    return rows + [tuple(map(int, rng.integers(0, 4, 3))) for _ in range(extra)]


def tables(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """A table or two."""
    db = random_database(rng, tables=(1, 2), subjects=(2, 6), predicates=(1, 4), triples=(4, 30))
    return [tuple(map(int, row)) for row in db.triples]


FAMILIES: tuple[Callable[[np.random.Generator], list[tuple[int, ...]]], ...] = (
    dense, uniform, truncated, tables, truncated, uniform,
)  # fmt: skip


def certified(seed: int) -> tuple[Database, dict[str, Any]]:
    """A draw, and the ends of its intervals, with whether `verify` proves all four."""
    rng = np.random.default_rng(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    rows = {(f"k{k}", f"q{q}", f"v{v}") for k, q, v in family(rng)}
    db = Database.from_triples(sorted(rows), multi="keep")
    analysis = RankAnalysis(db, seed=seed)
    rank, effective = analysis.rank, analysis.effective_rank
    return db, {
        "seed": seed,
        "family": family.__name__,
        "rank": [rank.lower, rank.upper],
        "effective_rank": [effective.lower, effective.upper],
        "verified": bool(verify(rank, db) and verify(effective, db)),
    }


def certificates(seed: int) -> dict[str, Any]:
    """The certificates of a draw."""
    return certified(seed)[1]


def trial(seed: int) -> dict[str, Any]:
    """Certified ends, and the smallest residuals of fits below them."""
    db, row = certified(seed)
    tensor, lower = db.to_numpy(), row["rank"][0]
    below = _below(tensor, lower, seed, None)
    observed = np.asarray(tensor.any(axis=2))
    # of complete facts the effective rank is the rank
    complete = bool(observed.all())
    masked = below if complete else _below(tensor, row["effective_rank"][0], seed, observed)
    estimate = cp_estimate(db, seed=seed, max_iterations=300, n_starts=2).rank
    return {
        **row,
        "estimate": estimate,
        "residual_below": below[0],
        "masked_residual_below": masked[0],
        "refuted": bool(estimate < lower or below[1] or masked[1]),
    }


def _below(
    tensor: NDArray[Any], lower: int, seed: int, observed: NDArray[np.bool_] | None
) -> tuple[float, bool]:
    """The smallest residual of fits of one term less, and whether one is accepted."""
    if lower < 2:
        return 1.0, False
    found = [
        fit_cp(
            tensor.astype(float),
            random_start(tensor.shape, lower - 1, np.random.default_rng([seed, start])),
            observed=observed,
        )
        for start in range(STARTS)
    ]
    return min(fit.residual for fit in found), any(map(accepted, found))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/soak_rank.jsonl"))
    parser.add_argument("--no-fits", action="store_true", help="certificates alone")
    options = parser.parse_args()
    if options.no_fits:
        out = options.out.with_name("soak_rank_certificates.jsonl")
        seeds = list(range(options.trials))
        rows = run_all(certificates, seeds, kept=out, workers=options.workers)
        proved = sum(row["verified"] for row in rows)
        found = {"draws": len(rows), "certificates": 4 * len(rows), "draws_proved": proved}
        write(
            "soak_rank_certificates",
            what="draws of soak_rank whose four certificates `verify` proves",
            peer="none: any that isn't proved is an error",
            rows=[found, *(row for row in rows if not row["verified"])],
            packages=["numpy", "scipy", "python-flint"],
        )
        print(json.dumps(found, indent=1))
        return
    rows = run_all(trial, list(range(options.trials)), kept=options.out, workers=options.workers)
    write(
        "soak_rank",
        what="fits of one term less than a certified lower bound: how many are accepted",
        peer="none: any that is accepted is an error",
        rows=[summary(rows), *(row for row in rows if row["refuted"] or not row["verified"])],
        packages=["numpy", "scipy", "python-flint"],
    )
    print(json.dumps(summary(rows), indent=1))


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many trials, how many refute a bound, and how close fits come."""
    residuals = np.array([row["residual_below"] for row in rows])
    masked = np.array([row["masked_residual_below"] for row in rows])
    return {
        "trials": len(rows),
        "refuted": sum(row["refuted"] for row in rows),
        "not_verified": sum(not row["verified"] for row in rows),
        "closed": round(float(np.mean([len(set(row["rank"])) == 1 for row in rows])), 3),
        "smallest_residual_below": float(residuals.min()),
        "smallest_masked_residual_below": float(masked.min()),
        "residuals_below_1e-3": int((residuals < 1e-3).sum() + (masked < 1e-3).sum()),
        "estimates_above_upper": sum(row["estimate"] > row["rank"][1] for row in rows),
    }


if __name__ == "__main__":
    main()
