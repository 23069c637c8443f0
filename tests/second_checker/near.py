"""Upper bounds by a fit: an exact real decomposition near it, by Newton's method."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import flint
import numpy as np

from capacity.rank import Enclosure
from tests.second_checker.views import component_names, matrix_rank, of_components, tensor_of


def _product(numbers: Iterable[Any]) -> Any:
    total = flint.arb(1)
    for x in numbers:
        total *= x
    return total


def given_by_newton(
    argument: Enclosure, D: np.ndarray, observed: np.ndarray | None
) -> np.ndarray | None:
    """Newton's method with 300 bits goes to a zero within the box; no proof, but another way."""
    view, fibers = argument.view, {tuple(pair) for pair in argument.fibers.tolist()}
    order = len(view.indices)
    if D.ndim != order or len(fibers) < len(argument.fibers):
        return None
    if fibers and (order != 3 or argument.mode not in (0, 1, 2)):
        return None
    others = [m for m in range(order) if m != argument.mode]

    def free(place: Any) -> bool:
        return tuple(int(place[m]) for m in others) in fibers

    def outside(local: Any) -> bool:
        return not free([view.indices[m][local[m]] for m in range(order)])

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
                at = [[starts[m] + n_row * rank + r for r in range(rank)]
                      for m, n_row in enumerate(place)]  # fmt: skip
                value = flint.arb(-int(seen[place]))
                for r in range(rank):
                    unknowns = [of[r] for of in at]
                    value += _product(x[u] for u in unknowns)
                    for m in range(order):
                        if unknowns[m] in column:
                            beside = (x[u] for k, u in enumerate(unknowns) if k != m)
                            J[i, column[unknowns[m]]] = _product(beside)
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
    names = component_names(D)
    mine = {names[0, i] for i in view.indices[0].tolist()}
    facts = [tuple(place) for place in np.argwhere(D != 0).tolist()]
    mine |= {names[0, place[0]] for place in facts if free(place)}
    part = of_components(D, names, mine)
    if fibers:
        left = [place for place in np.argwhere(part != 0).tolist() if not free(place)]
        chosen = [set(i.tolist()) for i in view.indices]
        return part if all(place[m] in chosen[m] for place in left for m in range(3)) else None
    for m in range(order):
        used = set(np.argwhere(part != 0)[:, m].tolist())
        mine = set(view.indices[m].tolist())
        if not mine <= used or (observed is not None and mine != used):
            return None
        unfolded = np.moveaxis(part, m, 0).reshape(D.shape[m], -1)
        if matrix_rank(unfolded) > matrix_rank(unfolded[view.indices[m]]):
            return None
    return part
