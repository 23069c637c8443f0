"""Checkers of arguments for upper bounds that give the facts of whole components.

Nothing of the search is imported. Each returns the rows of the facts that its argument gives, once;
it must give 0 wherever there is no fact, which `capacity.rank.verifier` builds on.
`capacity.rank.verifier.check_terms` has two more.
"""

from __future__ import annotations

import math

import flint
import numpy as np

from capacity.rank.types import Indices, Mask
from capacity.rank.verifier.arguments import (
    Diagonalization,
    Enclosure,
    Pencil,
    View,
)
from capacity.rank.verifier.check_unfolding import DENSE_BYTES, steps_of_rank
from capacity.rank.verifier.facts import SORT, Facts, require
from capacity.rank.verifier.procedures.krawczyk import contracts, cost_of_contraction
from capacity.rank.verifier.view import (
    place,
    require_pencil,
    square_slices,
    view_tensor,
    why_slices_are_not_diagonal,
)

PRIME = 2**31 - 1


def facts_of_pencil(argument: Pencil, facts: Facts) -> Indices:
    """Check that the facts of two slices' components have the rank of these two slices.

    Each other slice is, as a vector, one of the two, their sum or a difference: the combinations
    that are made of zeros and ones. So the tensor is a matrix times that of the two slices.
    """
    rows = facts.of_components(require_pencil(argument, facts))
    a, b = (m for m in range(3) if m != argument.mode)
    triples = facts.triples[rows]
    facts.budget.spend(2 * SORT * len(rows))
    places, index = triples[:, a] * facts.shape[b] + triples[:, b], triples[:, argument.mode]
    order = np.argsort(index, kind="stable")
    numbers, starts = np.unique(index[order], return_index=True)
    slices = dict(zip(numbers.tolist(), np.split(places[order], starts[1:]), strict=True))
    first, second = (set(slices.pop(i).tolist()) for i in argument.slices.tolist())
    allowed = [first, second]
    if not first & second:
        allowed.append(first | second)
    allowed += [x - y for x, y in ((first, second), (second, first)) if y <= x]
    for i, mine in slices.items():
        require(set(mine.tolist()) in allowed, f"slice {i} is no combination of the two")
    return rows


def facts_of_diagonal(argument: Diagonalization, facts: Facts) -> Indices:
    """Check that the facts of a view's components have the rank n of the view.

    `capacity.rank.verifier.procedures.simultaneous_diagonalization` decides that the view's n x n
    slices are diagonal in common bases. Its sub-tensor stands for all facts of its components if in
    each mode their slices are combinations of its own: if the unfolding of all facts has no larger
    rank.
    """
    slices, n = square_slices(argument, facts)
    require(argument.value == n, f"slices of {n} x {n} can show {n}")
    why = why_slices_are_not_diagonal(argument, slices)
    require(why is None, f"the slices are not diagonal in common bases: {why}")
    return _facts_of_view(argument.view, facts)


def facts_of_enclosure(argument: Enclosure, facts: Facts) -> Indices:
    """Check that a view has an exact real decomposition, and stands for its components.

    `capacity.rank.verifier.procedures.krawczyk` proves the decomposition. As many unknowns vary as
    entries count: all of the view, or for the effective rank those of observed fibers.

    If all count, other slices must be combinations of the view's. Otherwise the view must hold all
    facts of its components: what a slice of a completion is a combination of is unknown. Fibers
    that have a simple tensor each, which puts them right whatever the decomposition makes of them,
    don't count, and facts in them may lie outside the view.
    """
    view, fibers = argument.view, argument.fibers
    require(all(P is None for P in view.bases), "the view must be a part of the facts")
    tensor, known = view_tensor(view, facts)
    rank = argument.factors[0].shape[1]
    shapes = [(n, rank) for n in tensor.shape]
    require([f.shape for f in argument.factors] == shapes, "the factors don't fit the view")
    beside, in_fibers = _beside_fibers(argument, facts)
    # what gives all entries represents the facts as well
    masked = facts.effective and len(argument.varying) < beside.sum()
    counts = known & beside if masked else beside
    fit = argument.factors, argument.varying, argument.radius
    facts.budget.spend(*cost_of_contraction(*fit))
    near = contracts(tensor, *fit, counts)
    require(near, "the fit isn't shown to have an exact decomposition near it")
    if not (masked or len(fibers)):
        return _facts_of_view(view, facts)
    inside = facts.among((view.indices[0], None, None))
    rows = facts.of_components(np.union1d(inside, in_fibers))
    facts.budget.spend(4 * SORT * len(rows))
    mine, beside_them = facts.triples[rows], facts.triples[np.setdiff1d(rows, in_fibers)]
    for mode, of in enumerate(view.indices):
        require(np.isin(of, mine[:, mode]).all(), "an index is elsewhere")
        require(np.isin(beside_them[:, mode], of).all(), "a fact is left out")
    return rows


def _beside_fibers(argument: Enclosure, facts: Facts) -> tuple[Mask, Indices]:
    """Which entries of the view lie beside the fibers, and the rows of the facts in them."""
    mode, fibers, indices = argument.mode, argument.fibers, argument.view.indices
    require(mode in (0, 1, 2), "there is no such mode")
    a, b = (m for m in range(3) if m != mode)
    width = facts.shape[b]
    inside = (fibers >= 0).all() and (fibers < [facts.shape[a], width]).all()
    require(inside, "an index is out of range")
    # 64 bits hold a product of two sizes, which are 32 bits each
    free = np.unique(fibers[:, 0] * width + fibers[:, 1])
    require(len(free) == len(fibers), "fibers must be different")
    chosen = np.zeros((len(indices[a]), len(indices[b])), bool)
    mine = fibers[np.isin(fibers[:, 0], indices[a]) & np.isin(fibers[:, 1], indices[b])]
    chosen[place(indices[a], mine[:, 0]), place(indices[b], mine[:, 1])] = True
    beside = ~np.broadcast_to(np.expand_dims(chosen, mode), [len(of) for of in indices])
    first: list[Indices | None] = [None, None, None]
    first[a] = np.unique(fibers[:, 0])
    rows = facts.among(first)
    facts.budget.spend(SORT * (len(rows) + len(fibers)))
    in_them = facts.triples[rows]
    return beside, rows[np.isin(in_them[:, a] * width + in_them[:, b], free)]


def _facts_of_view(view: View, facts: Facts) -> Indices:
    """The facts of a view's components, if the other slices are combinations of the view's."""
    rows = facts.of_components(facts.among((view.indices[0], None, None)))
    facts.budget.spend(4 * SORT * len(rows))
    used = [np.unique(facts.triples[rows, mode]) for mode in range(3)]
    whole, _ = view_tensor(View((used[0], used[1], used[2])), facts)
    sizes = [len(of) for of in view.indices]
    for mode, n in enumerate(sizes):
        chosen = np.isin(used[mode], view.indices[mode])
        require(chosen.sum() == n, "an index is elsewhere")
        if chosen.all():
            continue
        slices = np.moveaxis(whole, mode, 0).reshape(len(used[mode]), -1)
        # if the view's slices span the others in each mode, its unfolding is as large as this one
        span = _span(slices[chosen], slices, min(n, math.prod(sizes) // n), facts)
        require(span, f"the chosen slices of mode {mode} do not span the others")
    return rows


def _span(some: Indices, rows: Indices, most: int, facts: Facts) -> bool:
    """Whether all rows are combinations of some of them, and their rank is `most` at most.

    A large rank takes hours, exactly. Modulo a prime it is no larger, and takes a second.
    """
    facts.budget.spend(4 * SORT * rows.size, DENSE_BYTES * rows.size)
    different = np.unique(rows, axis=0)
    m, n = different.shape
    facts.budget.spend(steps_of_rank(m, n))
    if flint.nmod_mat(m, n, different.ravel().tolist(), PRIME).rank() > most:
        return False
    # fractions of up to `most` rows, and so of minors of that size
    facts.budget.spend(2 * m * n * most * (10 + most))
    return _rank(different) == _rank(some)


def _rank(M: Indices) -> int:
    m, n = M.shape
    return flint.fmpz_mat(m, n, M.ravel().tolist()).rank()
