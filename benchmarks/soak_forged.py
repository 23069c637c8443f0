"""Forged certificates of integer tensors whose rank is bounded by how they were made.

    make soak-forged   (10,000 trials, ten minutes on two cores; goes on where it was stopped)

Where `soak_verify.py` asks theorems, this asks nothing but sums: a tensor of order 2 to 5 is added
up from r simple ones, so that its rank is at most r, and at least the rank of each of its
unfoldings. Certificates of it and of other tensors of its shape are put under its name: valid,
mutated, with arguments of another one, or stacked until they claim more than r. A lower bound above
r, or an upper bound below an unfolding's rank, is false.

Every fourth trial draws tensors of two slices, with entries up to 2^31 - 1, and compares the
library's interval with Ja'Ja's theorem as the second checker computes it, from Smith's normal form
and the kernels of the pencil.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import run_all, write

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.errors import CapacityError
from capacity.rank import Certificate, rank_interval
from capacity.rank.verifier.checker import verify
from capacity.tensor import SparseTensor, from_dense
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests.second_checker import rank_of_two_slices
from tests.second_checker.views import matrix_rank

# claims of each way in a trial
CLAIMS = {"valid": 4, "mutated": 12, "borrowed": 6, "exchanged": 6, "stacked": 4}
# sides of a tensor of each order
MOST = {2: 6, 3: 4, 4: 3, 5: 2}
PAIRS_OF_SLICES = 8

Integers = NDArray[np.int64]


def simple_tensors(choose: Choices, sides: list[int], r: int) -> Integers:
    """A sum of r simple tensors with small entries, some of them zero."""
    total = np.zeros(sides, np.int64)
    for _ in range(r):
        term = np.ones((), np.int64)
        for side in sides:
            vector = [choose.integer(-2, 2) * choose.integer(0, 1) for _ in range(side)]
            term = np.multiply.outer(term, vector)
        total += term
    return total


def unfoldings_rank(tensor: Integers) -> int:
    """The largest rank of an unfolding."""
    return max(
        matrix_rank(np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1))
        for mode in range(tensor.ndim)
    )


def drawn(choose: Choices) -> tuple[SparseTensor, Integers, int]:
    """A tensor, its entries and the number of its simple tensors."""
    order = choose.integer(2, 5)
    sides = [choose.integer(2, MOST[order]) for _ in range(order)]
    while True:
        r = choose.integer(1, 6)
        entries = simple_tensors(choose, sides, r)
        if entries.any():
            return from_dense(entries), entries, r


def beside(choose: Choices, entries: Integers) -> Integers:
    """A tensor of the same shape: another sum, or this one with an entry changed."""
    if choose.chance(1, 2):
        other = simple_tensors(choose, list(entries.shape), choose.integer(1, 6))
    else:
        other = entries.copy()
        other[tuple(choose.integer(0, side - 1) for side in entries.shape)] += choose.integer(1, 3)
    return other if other.any() else entries


def read(data: dict[str, Any]) -> Certificate | None:
    """A certificate from JSON text, if that has the form of one."""
    try:
        return Certificate.from_dict(json.loads(json.dumps(data)))
    except CapacityError:
        return None


def claims(
    choose: Choices, tensor: SparseTensor, entries: Integers, r: int
) -> list[tuple[str, Certificate | None]]:
    """Claims about a tensor, each with the way that it came."""
    own = [drawn_certificate(choose, tensor) for _ in range(CLAIMS["valid"])]
    others = [
        replace(
            drawn_certificate(choose, from_dense(beside(choose, entries))),
            facts_sha256=own[0].facts_sha256,
        )
        for _ in range(CLAIMS["borrowed"])
    ]
    pool = own + others
    found: list[tuple[str, Certificate | None]] = [("valid", one) for one in own]
    found += [("borrowed", one) for one in others]
    for _ in range(CLAIMS["mutated"]):
        found.append(("mutated", read(mutated(choose, choose.one(pool), others=pool))))
    for _ in range(CLAIMS["exchanged"]):
        # arguments of one under the quantity and the side of another
        one, other = choose.one(pool), choose.one(pool)
        # an upper bound by a simple tensor for each entry has none
        both = [*one.arguments, *other.arguments]
        found.append(("exchanged", claim(one, tuple(choose.some(both)) if both else ())))
    for _ in range(CLAIMS["stacked"]):
        one = choose.one(pool)
        arguments = choose.order([a for c in pool if c.side == "lower" for a in c.arguments])
        some: list[Any] = []
        while arguments and sum(a.value for a in some) <= r:
            some.append(arguments.pop())
        found.append(("stacked", claim(replace(one, side="lower"), tuple(some))))
    return found


def claim(like: Certificate, arguments: tuple[Any, ...]) -> Certificate | None:
    """A claim of the sum of some arguments, unless it can't be made."""
    try:
        return replace(like, arguments=arguments, value=sum(a.value for a in arguments))
    except CapacityError:
        return None


def forged(choose: Choices) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Counts of what was claimed and proved, and what was proved and is false."""
    tensor, entries, r = drawn(choose)
    least = unfoldings_rank(entries)
    counts: Counter[str] = Counter({f"order {entries.ndim}": 1})
    wrong: list[dict[str, Any]] = []
    for way, one in claims(choose, tensor, entries, r):
        counts[f"{way} claims"] += 1
        if one is None:
            continue
        try:
            proved = verify(one, tensor).proved
        except CapacityError:
            continue
        counts[f"{way} proved"] += proved
        if proved:
            counts.update(f"{one.side} {a.kind}" for a in one.arguments)
        # an effective rank may be smaller than the rank of an unfolding, and never above the rank
        beyond = one.value > r if one.side == "lower" else one.value < least
        counts[f"{way} beyond what is known"] += beyond
        false = proved and beyond and (one.side == "lower" or one.quantity == "rank")
        if false or (way == "valid" and not proved):
            wrong.append({"way": way, "r": r, "entries": entries.tolist(), **one.to_dict()})
    return counts, wrong


def of_two_slices(choose: Choices) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Intervals of tensors of two slices, beside the second checker."""
    counts: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    for _ in range(PAIRS_OF_SLICES):
        sides = [2, choose.integer(1, 5), choose.integer(1, 5)]
        entries = simple_tensors(choose, sides, choose.integer(1, 6))
        if choose.chance(1, 4):
            entries = entries * choose.integer(2, (2**31 - 1) // max(1, int(np.abs(entries).max())))
        if not entries.any():
            continue
        wanted = rank_of_two_slices(entries)
        axes = choose.order(range(3))
        found = rank_interval(from_dense(entries.transpose(axes)))
        counts["tensors of two slices"] += 1
        counts["tensors of two slices, closed"] += found.closed
        if not found.lower <= wanted <= found.upper:
            wrong.append({"way": "two slices", "entries": entries.tolist(), "wanted": wanted,
                          "found": [found.lower, found.upper]})  # fmt: skip
    return counts, wrong


def trial(seed: int) -> dict[str, Any]:
    """Counts of a trial, and everything that is false."""
    choose = Choices.seeded(seed)
    counts, wrong = (of_two_slices if seed % 4 == 3 else forged)(choose)
    return {"seed": seed, "counts": dict(counts), "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/soak_forged.jsonl"))
    options = parser.parse_args()
    rows = run_all(trial, list(range(options.trials)), kept=options.out, workers=options.workers)
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["counts"])
    wrong = [one for row in rows for one in row["wrong"]]
    write(
        "soak_forged",
        what="forged certificates of sums of simple tensors, and tensors of two slices beside the "
        "second checker: what is proved, and how much of it is false",
        peer="none: anything false is an error",
        rows=[{"trials": len(rows), "false": len(wrong), "counts": dict(sorted(total.items()))},
              *wrong],
        packages=["numpy", "scipy", "python-flint", "hypothesis"],
    )  # fmt: skip


if __name__ == "__main__":
    main()
