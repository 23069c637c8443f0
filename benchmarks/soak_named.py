"""Mutated certificates of named tensors, beside their known ranks and the second checker.

    make soak-named    (480 trials, 11,520 mutated certificates; goes on where it was stopped)

Three kinds of arguments that `soak_verify.py` hardly draws, a third of the trials each:

* `Published`: a named tensor in another order and with other signs, whose rank over R and C a
  theorem states;
* `ComplexDecomposition`: algebras whose rank over C is smaller than over R, in other orders and
  signs, with their decompositions over C by Fourier transforms;
* `Enclosure`: tensors of order four and five, with fits. W states among them have decompositions of
  fewer terms as near as one likes, which are claimed, too.

Each trial draws valid certificates and edits them. Whatever is proved must agree with the known
rank, and the second checker must prove it as well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import run_all, write
from soak_forged import read, simple_tensors

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.errors import CapacityError
from capacity.exact.types import AlgebraicTerm
from capacity.rank import Certificate, ComplexDecomposition, Enclosure, Published, View
from capacity.rank.cp.exact_fits import accepted
from capacity.rank.cp.levenberg_marquardt import fit_cp, random_start
from capacity.rank.cp.making_exact import enclose
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.procedures.theorems import published
from capacity.tensor import SparseTensor, from_dense, named_tensor
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests.second_checker import second_checker
from tests.second_checker.views import matrix_rank

MUTATED, VALID = 24, 3
Dense = NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """The least and the largest that the rank over R, over C, and the border rank can be."""

    real: tuple[float, float]
    complex: tuple[float, float]
    border: tuple[float, float]

    def is_beyond(self, one: Certificate) -> bool:
        """Whether a claim contradicts what is known."""
        least, most = self.complex if one.field == "C" else self.real
        if one.border:
            least, most = self.border
        return one.value > most if one.side == "lower" else one.value < least


# ranks over R and over C: Strassen 1969, Winograd 1971; Alekseyev 1985; Winograd 1977; de Groote
# 1975, and over C the quaternions are matrices; Glynn 2010, Han, Ju, Kim 2025
RANKS = {"matrices:2x2x2": (7, 7), "matrices:2x2x3": (11, 11), "quaternions:": (8, 7),
         "determinant:4": (12, 12), "permanent:4": (8, 8),
         **{f"groups:{n}": (2 * n - 1 - n // 2, n) for n in range(2, 7)},
         **{f"w:{n}": (n, n) for n in range(2, 6)}}  # fmt: skip
OTHERS = [*RANKS, "matrices:2x3x2", "matrices:3x3x3", "w:20", "w:32", "groups:64", "groups:9999"]


def moved(choose: Choices, T: Dense) -> tuple[Dense, list[NDArray[Any]], list[Dense]]:
    """A tensor in another order, with other signs; its order, and its signs."""
    order = [np.array(choose.order(range(n))) for n in T.shape]
    signs = [np.array([choose.one([1, -1]) for _ in range(n)]) for n in T.shape]
    found = T[np.ix_(*order)]
    for mode, of in enumerate(signs):
        found = np.moveaxis(np.moveaxis(found, mode, -1) * of, -1, mode)
    return found, order, signs


def claim(of: SparseTensor, side: Any, argument: Any, field: Any = "R") -> Certificate:
    return Certificate(
        "rank", side, argument.value, "hand", (argument,), of.sha256, None, (), field
    )


def cited(choose: Choices) -> tuple[Dense, Known, Iterator[Certificate | None]]:
    """A named tensor, and citations of its theorem, and of others under its name."""
    name = choose.one(list(RANKS))
    real, over_c = RANKS[name]
    T, order, signs = moved(choose, named_tensor(name).to_numpy().astype(np.int64))
    border = (2, 2) if name.startswith("w:") else (0, real)
    of, bound = from_dense(T), published(name)
    back = tuple(np.argsort(at) for at in order)
    bases = tuple(np.diag(s[at]) for s, at in zip(signs, back, strict=True))
    assert bound is not None
    cites = claim(of, "lower", Published(name, View(back, bases), bound[1].value))

    def some() -> Iterator[Certificate | None]:
        yield cites
        while True:
            edited = read(mutated(choose, cites))
            one = edited.arguments[0] if edited is not None and edited.arguments else None
            if isinstance(one, Published) and choose.chance(1, 2):
                # another name, and the bound that its theorem has
                other = choose.one(OTHERS)
                theorem = published(other)
                value = theorem[1].value if theorem and choose.chance(2, 3) else one.value + 1
                edited = claim(of, "lower", replace(one, name=other, value=value),
                               choose.one(["R", "C"]))  # fmt: skip
            yield edited

    return T, Known((real, real), (over_c, over_c), border), some()


# the values of characters of Z/2 and Z/4 and of complex numbers, as powers of i: the products of
# both factors in these bases are those of the coordinates
POWERS = [(1, 0), (0, 1), (-1, 0), (0, -1)]


def transformed(choose: Choices) -> tuple[Dense, list[list[list[tuple[int, int]]]], int]:
    """A group algebra or complex numbers, forms of both factors over C, and the rank over R."""
    if choose.chance(1, 3):
        blocks = choose.integer(1, 2)
        T = np.zeros((2 * blocks,) * 3, np.int64)
        forms: list[list[tuple[int, int]]] = []
        for b in range(0, 2 * blocks, 2):
            T[b, b, b] = T[b, b + 1, b + 1] = T[b + 1, b, b + 1] = 1
            T[b + 1, b + 1, b] = -1
            left, right = [(0, 0)] * b, [(0, 0)] * (2 * blocks - b - 2)
            forms += [[*left, (1, 0), i, *right] for i in ((0, 1), (0, -1))]
        return T, [forms, forms], 3 * blocks
    orders = choose.one([(4,), (2, 4), (2, 2)])
    n = int(np.prod(orders))
    places = np.array(np.unravel_index(np.arange(n), orders)).T
    T = np.zeros((n, n, n), np.int64)
    for a in range(n):
        for b in range(n):
            T[a, b, np.ravel_multi_index((places[a] + places[b]) % orders, orders)] = 1
    weights = np.array([4 // d for d in orders])
    forms = [[POWERS[int((weights * c * g).sum()) % 4] for g in places] for c in places]
    real = {(4,): 5, (2, 4): 10, (2, 2): 4}[orders]
    return T, [forms, forms], real


def over_c(choose: Choices) -> tuple[Dense, Known, Iterator[Certificate | None]]:
    """A tensor with fewer terms over C than over R."""
    start, forms, real = transformed(choose)
    n = len(start)
    T, order, signs = moved(choose, start)
    # the last factor is the inverse of both forms, conjugate over n; of complex numbers over 2
    group = len({abs(x) + abs(y) for row in forms[0] for x, y in row}) == 1
    over = n if group else 2
    last = [[(x, -y) for x, y in row] for row in forms[0]]
    terms: list[AlgebraicTerm] = []
    for rows in zip(*forms, last, strict=True):
        vectors: list[Any] = []
        for mode, row in enumerate(rows):
            scale = Fraction(1, over) if mode == 2 else Fraction(1)
            kept = [(k, row[at]) for k, at in enumerate(order[mode].tolist()) if any(row[at])]
            vectors.append((tuple(k for k, _ in kept),
                            tuple(tuple(Fraction(int(signs[mode][k])) * scale * part for part in x)
                                  for k, x in kept)))  # fmt: skip
        terms.append(tuple(vectors))
    of = from_dense(T)
    whole = claim(of, "upper", ComplexDecomposition(tuple(terms)), "C")

    def some() -> Iterator[Certificate | None]:
        yield whole
        pool = [whole, *(drawn_certificate(choose, of, side="upper", kind="complex decomposition")
                         for _ in range(VALID))]  # fmt: skip
        yield from pool[1:]
        while True:
            one = choose.one(pool)
            if choose.chance(1, 4):
                # the same terms for another field, or for the border rank
                field: Any = choose.one(["R", "Q", "C"])
                yield replace(one, field=field, border=choose.chance(1, 2) and field != "R")
            else:
                yield read(mutated(choose, one, others=pool))

    return T, Known((real, real), (n, n), (n, real)), some()


def near(choose: Choices) -> tuple[Dense, Known, Iterator[Certificate | None]]:
    """A tensor of order four or five, with fits, some of too few terms."""
    order = choose.integer(4, 5)
    if choose.chance(1, 2):
        T = moved(choose, named_tensor(f"w:{order}").to_numpy().astype(np.int64))[0]
        known = Known((order, order), (order, order), (2, 2))
    else:
        shape = (
            [2] * order if order == 5 else choose.one([[2, 2, 2, 2], [2, 2, 2, 3], [2, 2, 3, 3]])
        )
        T, r = np.zeros(shape, np.int64), 0
        while not T.any():
            r = choose.integer(2, 5)
            T = simple_tensors(choose, list(shape), r)
        least = max(
            matrix_rank(np.moveaxis(T, modes, range(len(modes))).reshape(
                int(np.prod([T.shape[m] for m in modes])), -1))
            for size in (1, 2) for modes in combinations(range(order), size)
        )  # fmt: skip
        known = Known((least, r), (least, r), (least, r))
    of = from_dense(T)
    fits = [one for _ in range(VALID) if (one := enclosed(choose, of, T)) is not None]

    def some() -> Iterator[Certificate | None]:
        yield from fits
        while True:
            if not fits or choose.chance(1, 3):
                yield too_few(choose, of, T, int(known.real[0]))
                continue
            one = choose.one(fits)
            several = choose.chance(1, 3)
            yield fewer(choose, one) if several else read(mutated(choose, one, others=fits))

    return T, known, some()


def enclosed(choose: Choices, of: SparseTensor, T: Dense) -> Certificate | None:
    """A fit with an exact decomposition near it, of about as many unknowns as equations."""
    rank = -(-T.size // (sum(T.shape) - T.ndim + 1)) + choose.integer(0, 2)
    start = random_start(T.shape, rank, np.random.default_rng(choose.seed()))
    fit = fit_cp(T.astype(float), start, iterations=60)
    found = enclose(T, fit.factors) if accepted(fit) else None
    return None if found is None else claim(of, "upper", enclosure(T, *found))


def enclosure(T: Dense, factors: Any, varying: Dense, radius: float) -> Enclosure:
    whole = View(tuple(np.arange(k) for k in T.shape))
    return Enclosure(whole, factors, varying, radius, T.ndim - 1, np.zeros((0, T.ndim - 1), int))


def too_few(choose: Choices, of: SparseTensor, T: Dense, rank: int) -> Certificate | None:
    """A fit of one term less than the rank, within a box of any size."""
    if rank < 2:
        return None
    start = random_start(T.shape, rank - 1, np.random.default_rng(choose.seed()))
    fit = fit_cp(T.astype(float), start, iterations=choose.one([30, 200]))
    n, all_of = T.size, sum(f.size for f in fit.factors)
    varying = np.sort(np.array(choose.order(range(all_of))[:n], np.int64))
    radius = choose.one([1e-12, 1e-8, 1e-4, 1e-2, 0.4])
    return claim(of, "upper", enclosure(T, fit.factors, varying, radius))


def fewer(choose: Choices, one: Certificate) -> Certificate:
    """A fit without one of its terms, whose unknowns are numbered again."""
    (fit,) = one.arguments
    assert isinstance(fit, Enclosure)
    rank = fit.value
    gone = choose.integer(0, rank - 1)
    factors = tuple(np.delete(f, gone, axis=1) for f in fit.factors)
    row, column = np.divmod(fit.varying, rank)
    varying = (row * (rank - 1) + column - (column > gone))[column != gone]
    changed = replace(fit, factors=factors, varying=varying)
    return replace(one, arguments=(changed,), value=changed.value)


FAMILIES: tuple[Callable[[Choices], Any], ...] = (cited, over_c, near)


def trial(seed: int) -> dict[str, Any]:
    """Counts of what was claimed and proved, and each claim on which something disagrees."""
    choose = Choices.seeded(seed)
    family = FAMILIES[seed % 3]
    T, known, claims = family(choose)
    of, name = from_dense(T), family.__name__
    counts: Counter[str] = Counter({f"{name} trials": 1})
    wrong: list[dict[str, Any]] = []
    while counts[f"{name} mutated"] < MUTATED:
        one = next(claims)
        counts[f"{name} mutated"] += 1
        if one is None:
            counts[f"{name} not read"] += 1
            continue
        try:
            proved = verify(one, of).proved
        except CapacityError:
            counts[f"{name} refused"] += 1
            continue
        beyond = one.quantity == "rank" and known.is_beyond(one)
        counts[f"{name} beyond what is known"] += beyond
        counts[f"{name} proved"] += proved
        agrees = not proved or second_checker(one, of)
        if (proved and beyond) or not agrees:
            wrong.append({"family": name, "false": proved and beyond, "disagree": not agrees,
                          "entries": T.tolist(), "certificate": one.to_dict()})  # fmt: skip
    return {"seed": seed, "counts": dict(counts), "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=480)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/soak_named.jsonl"))
    options = parser.parse_args()
    rows = run_all(trial, list(range(options.trials)), kept=options.out, workers=options.workers)
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["counts"])
    wrong = [one for row in rows for one in row["wrong"]]
    mutations = sum(n for key, n in total.items() if key.endswith(" mutated"))
    found = {"trials": len(rows), "certificates": mutations,
             "false_proofs": sum(one["false"] for one in wrong),
             "disagreements_with_the_second_checker": sum(one["disagree"] for one in wrong),
             "counts": dict(sorted(total.items()))}  # fmt: skip
    write(
        "soak_named",
        what="mutated certificates of published theorems, complex decompositions and enclosures of "
        "order four and five: what is proved, and how much of it is false",
        peer="ranks that are theorems, and the second checker: any disagreement is an error",
        rows=[found, *wrong],
        packages=["numpy", "scipy", "python-flint", "hypothesis"],
    )
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
