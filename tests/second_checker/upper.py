"""Upper bounds: what the arguments give, added up densely."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from capacity.database import Database
from capacity.rank import (
    AlgebraicDecomposition,
    Boxes,
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Pencil,
)
from tests.second_checker.slices import diagonal, rank_of_two_slices, square_slices
from tests.second_checker.views import component_names, matrix_rank, of_components, tensor_of


def adds_up(
    certificate: Certificate, db: Database, D: np.ndarray, observed: np.ndarray, effective: bool
) -> bool:
    total = np.full(D.shape, Fraction(0), dtype=object)
    for argument in certificate.arguments:
        if isinstance(argument, Decomposition):
            for term in argument.terms:
                vectors = []
                for (indices, values), n in zip(term, D.shape, strict=True):
                    dense = np.full(n, Fraction(0), dtype=object)
                    for i, x in zip(indices, values, strict=True):
                        if i < 0:
                            return False
                        dense[i] += x
                    vectors.append(dense)
                total = total + np.einsum("i,j,k->ijk", *vectors)
        elif isinstance(argument, AlgebraicDecomposition):
            given = given_at_a_root(argument, D, observed if effective else None)
            if given is None:
                return False
            total = total + given
        elif isinstance(argument, Pencil | Diagonalization):
            given = _given_whole(argument, db, D)
            if given is None:
                return False
            total = total + given
        elif isinstance(argument, Enclosure):
            given = _given_by_newton(argument, db, D, observed if effective else None)
            if given is None:
                return False
            total = total + given
        else:
            assert isinstance(argument, Boxes)
            if len(argument.box) != db.n_triples:
                return False
            for number in set(argument.box[argument.box >= 0].tolist()):
                mine = db.triples[argument.box == number]
                indicators = [np.isin(np.arange(n), mine[:, m]) for m, n in enumerate(D.shape)]
                total = total + np.einsum("i,j,k->ijk", *(x.astype(int) for x in indicators))
    same = total == D
    return bool(same[observed].all() if effective else same.all())


def given_at_a_root(
    argument: AlgebraicDecomposition, D: np.ndarray, observed: np.ndarray | None
) -> np.ndarray | None:
    """The sum of terms in a field, densely, with remainders by long division.

    It is None unless f changes its sign, and the entries that count are rational.
    """
    f = [Fraction(c) for c in argument.f]
    if len(f) < 2 or not f[-1] or argument.lo >= argument.hi:
        return None
    signs = [sum(c * at**i for i, c in enumerate(f)) > 0 for at in (argument.lo, argument.hi)]
    zeros = [sum(c * at**i for i, c in enumerate(f)) == 0 for at in (argument.lo, argument.hi)]
    if signs[0] == signs[1] or any(zeros):
        return None
    total: dict[tuple[int, ...], list[Fraction]] = {}
    for term in argument.terms:
        if len(term) != D.ndim:
            return None
        product: dict[tuple[int, ...], list[Fraction]] = {(): [Fraction(1)]}
        for (indices, values), n in zip(term, D.shape, strict=True):
            if len(set(indices)) < len(indices) or not all(0 <= i < n for i in indices):
                return None
            if len(indices) != len(values) or any(len(c) >= len(f) for c in values):
                return None
            product = {
                (*at, i): _remainder(np.convolve(x, c or [Fraction(0)]).tolist(), f)
                for at, x in product.items()
                for i, c in zip(indices, values, strict=True)
            }
        for at, x in product.items():
            n = max(len(x), len(total.get(at, [])))
            both = [[*y, *[Fraction(0)] * (n - len(y))] for y in (x, total.get(at, []))]
            total[at] = [a + b for a, b in zip(*both, strict=True)]
    given = np.full(D.shape, Fraction(0), dtype=object)
    for at, x in total.items():
        if observed is None or observed[at[:-1]]:
            if any(x[1:]):
                return None
            given[at] = x[0]
    return given


def _remainder(x: list[Fraction], f: list[Fraction]) -> list[Fraction]:
    x = list(x)
    while len(x) >= len(f):
        times = x[-1] / f[-1]
        for i, c in enumerate(f):
            x[len(x) - len(f) + i] -= times * c
        x.pop()
    return x


def _given_whole(
    argument: Pencil | Diagonalization, db: Database, D: np.ndarray
) -> np.ndarray | None:
    """The tensor of whole components, if they have the rank that is claimed."""
    names = component_names(db)
    if isinstance(argument, Pencil):
        if len(set(argument.slices.tolist())) != 2 or argument.mode not in (0, 1, 2):
            return None
        mine = {names[argument.mode, i] for i in argument.slices.tolist()}
        part = of_components(D, names, mine)
        two = np.moveaxis(part, argument.mode, 0)
        whole = two.reshape(len(two), -1)
        if matrix_rank(whole) > matrix_rank(whole[argument.slices]):
            return None
        return part if argument.value >= rank_of_two_slices(two[argument.slices]) else None
    slices = square_slices(argument, D)
    if slices is None or any(P is not None for P in argument.view.bases):
        return None
    if argument.value != slices[0].nrows() or not diagonal(argument, slices):
        return None
    mode = argument.mode
    mine = {names[mode, i] for i in argument.view.indices[mode].tolist()}
    part = of_components(D, names, mine)
    for m in range(3):
        unfolded = np.moveaxis(part, m, 0).reshape(D.shape[m], -1)
        if matrix_rank(unfolded) > matrix_rank(unfolded[argument.view.indices[m]]):
            return None
    return part


def _given_by_newton(
    argument: Enclosure, db: Database, D: np.ndarray, observed: np.ndarray | None
) -> np.ndarray | None:
    """Newton's method with 300 bits goes to a zero within the box; no proof, but another way."""
    view, fibers = argument.view, {tuple(pair) for pair in argument.fibers.tolist()}
    if argument.mode not in (0, 1, 2) or len(fibers) < len(argument.fibers):
        return None
    others = [m for m in range(3) if m != argument.mode]

    def free(place: Any) -> bool:
        return tuple(int(place[m]) for m in others) in fibers

    def outside(local: Any) -> bool:
        return not free([view.indices[m][local[m]] for m in range(3)])

    local = list(itertools.product(*(range(len(i)) for i in view.indices)))
    if len(argument.varying) == sum(map(outside, local)):
        observed = None
    seen = tensor_of(view, D, observed)
    if seen is None or any(P is not None for P in view.bases) or not 0 < argument.radius < 1:
        return None
    seen = {place: x for place, x in seen.items() if outside(place)}
    rank = argument.factors[0].shape[1]
    if [f.shape for f in argument.factors] != [(len(i), rank) for i in view.indices]:
        return None
    places = [place for place, x in seen.items() if x is not None]
    flat = [x for f in argument.factors for x in f.ravel().tolist()]
    starts = np.cumsum([0, *(f.size for f in argument.factors)]).tolist()
    varying = argument.varying.tolist()
    n = len(places)
    if len(set(varying)) != n or len(varying) != n or not all(0 <= x < len(flat) for x in varying):
        return None
    old, size = flint.ctx.prec, 1.0
    flint.ctx.prec = 300
    try:
        x = [flint.arb(value) for value in flat]
        for _ in range(8):
            J = flint.arb_mat(n, n)
            left: list[Any] = []
            column = {unknown: j for j, unknown in enumerate(varying)}
            for i, place in enumerate(places):
                at = [[starts[m] + place[m] * rank + r for r in range(rank)] for m in range(3)]
                value = flint.arb(-int(seen[place]))
                for r in range(rank):
                    unknowns = [at[m][r] for m in range(3)]
                    value += x[unknowns[0]] * x[unknowns[1]] * x[unknowns[2]]
                    for m in range(3):
                        if unknowns[m] in column:
                            a, b = (u for k, u in enumerate(unknowns) if k != m)
                            J[i, column[unknowns[m]]] = x[a] * x[b]
                left.append(value)
            size = max(float(abs(value).upper()) for value in left)
            try:
                step = J.solve(flint.arb_mat(n, 1, left))
            except ZeroDivisionError:
                return None
            for j, unknown in enumerate(varying):
                x[unknown] = (x[unknown] - step[j, 0]).mid()
        inside = all(
            float(abs(x[u] - flint.arb(flat[u])).upper()) <= argument.radius for u in varying
        )
    finally:
        flint.ctx.prec = old
    if size > 1e-60 or not inside:
        return None
    names = component_names(db)
    mine = {names[0, i] for i in view.indices[0].tolist()}
    facts = [tuple(place) for place in np.argwhere(D).tolist()]
    mine |= {names[0, place[0]] for place in facts if free(place)}
    part = of_components(D, names, mine)
    if fibers:
        left = [place for place in np.argwhere(part).tolist() if not free(place)]
        chosen = [set(i.tolist()) for i in view.indices]
        return part if all(place[m] in chosen[m] for place in left for m in range(3)) else None
    for m in range(3):
        used = set(np.argwhere(part)[:, m].tolist())
        mine = set(view.indices[m].tolist())
        if not mine <= used or (observed is not None and mine != used):
            return None
        unfolded = np.moveaxis(part, m, 0).reshape(D.shape[m], -1)
        if matrix_rank(unfolded) > matrix_rank(unfolded[view.indices[m]]):
            return None
    return part
