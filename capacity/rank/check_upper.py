"""One checker a kind of argument for upper bounds.

Nothing of the search is imported. Each returns the facts that its argument gives, once; it must
give 0 wherever there is no fact, which `capacity.rank.verify` builds on.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

import flint
import numpy as np

from capacity.database.facts import Database
from capacity.errors import MemoryBudgetError
from capacity.rank.arrays import Indices, Mask
from capacity.rank.certificate import (
    Boxes,
    Decomposition,
    Diagonalization,
    Enclosure,
    Pencil,
    Term,
    View,
)
from capacity.rank.check_view import (
    require,
    require_pencil,
    square_slices,
    view_tensor,
    why_slices_are_not_diagonal,
)
from capacity.rank.krawczyk import contracts

# entries of a component that is made dense: more takes minutes
LARGEST_WHOLE = 2**22
# sums of products of coefficients: so many, and more for each fact, take a minute at most. A
# fraction takes as long as so many integers, and longer by its bits
MOST_STEPS, STEPS_A_FACT = 20_000_000, 100
FRACTION, BITS_A_STEP = 10, 50
PRIME = 2**31 - 1


def facts_of_boxes(argument: Boxes, db: Database, effective: bool) -> Mask:
    """Check that each box holds its own facts, and no other triple that counts."""
    require(len(argument.box) == db.n_triples, "there must be a box, or -1, for each fact")
    inside = argument.box >= 0
    number, box = np.unique(argument.box[inside], return_inverse=True)
    facts = db.triples[inside].astype(np.int64)
    sides = np.ones(len(number), dtype=object)
    for mode in range(3):
        pairs = np.unique(np.stack([box.ravel(), facts[:, mode]], axis=1), axis=0)
        # Python integers: a product of three sides can pass 2^63
        sides *= np.bincount(pairs[:, 0], minlength=len(number)).astype(object)
    sizes = np.bincount(box.ravel(), minlength=len(number))
    more = np.flatnonzero(sides != sizes)
    if len(more):
        wrong = f"box {number[more[0]]} holds {sizes[more[0]]} of {sides[more[0]]} triples"
        require(effective, wrong)
        _only_unobserved(db, box.ravel(), facts, number, more)
    return inside


def _only_unobserved(
    db: Database, box: Indices, facts: Indices, number: Indices, boxes: Indices
) -> None:
    """What else is in these boxes lies in unobserved fibers.

    An observed pair of a subject and a predicate of a box must have all its objects, as facts.
    """
    observed: defaultdict[int, set[int]] = defaultdict(set)
    for k, q in np.unique(db.triples[:, :2], axis=0).tolist():
        observed[k].add(q)
    order = np.argsort(box, kind="stable")
    ends = np.searchsorted(box[order], np.arange(len(number) + 1))
    for b in boxes.tolist():
        mine = facts[order[ends[b] : ends[b + 1]]]
        pairs, times = np.unique(mine[:, :2], axis=0, return_counts=True)
        complete: dict[tuple[int, int], int] = {
            (k, q): n for (k, q), n in zip(pairs.tolist(), times.tolist(), strict=True)
        }
        predicates, n_objects = set(pairs[:, 1].tolist()), len(np.unique(mine[:, 2]))
        for k in np.unique(pairs[:, 0]).tolist():
            for q in observed[k] & predicates:
                require(
                    complete.get((k, q)) == n_objects,
                    f"box {number[b]} gives what aren't facts at {k, q}",
                )


def steps_of_terms(terms: Iterable[Term]) -> int:
    """About how long it takes to add terms up, in sums of products of integers."""
    steps = 0
    for term in terms:
        products = math.prod(len(indices) for indices, _ in term)
        numbers = [x for _, values in term for x in values]
        if all(x.denominator == 1 and abs(x.numerator) < 2**63 for x in numbers):
            steps += products
        else:
            bits = sum(
                max((max(x.numerator.bit_length(), x.denominator.bit_length()) for x in values),
                    default=0)
                for _, values in term
            )  # fmt: skip
            steps += products * (FRACTION + bits // BITS_A_STEP)
    return steps


def most_steps(db: Database) -> int:
    """How many a certificate may take (`steps_of_terms`)."""
    return MOST_STEPS + STEPS_A_FACT * db.n_triples


def facts_of_terms(argument: Decomposition, db: Database, effective: bool) -> Mask:
    """Add the terms up; what they give must be 1 at some facts and 0 elsewhere."""
    require(len(argument.terms) > 0, "a decomposition must have terms")
    for number, term in enumerate(argument.terms):
        for (indices, values), n in zip(term, db.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
            require(len(set(indices)) == len(indices), f"term {number} has an index twice")
            require(len(values) == len(indices), f"term {number} lacks a number, or an index")
    steps, most = steps_of_terms(argument.terms), most_steps(db)
    # sums of fractions may have longer denominators than any term
    grown = 0
    total: defaultdict[tuple[int, int, int], int | Fraction] = defaultdict(int)
    for term in argument.terms:
        if steps + grown > most:
            raise MemoryBudgetError(
                f"Terms must be added up in {most:,} steps at most, a step for each product of "
                f"integers and more for fractions; these take {steps + grown:,}."
            )
        (ks, a), (qs, b), (vs, c) = ((indices, _plain(values)) for indices, values in term)
        for k, x in zip(ks, a, strict=True):
            for q, y in zip(qs, b, strict=True):
                xy = x * y
                for v, z in zip(vs, c, strict=True):
                    total[k, q, v] = value = total[k, q, v] + xy * z
                    if type(value) is not int:
                        grown += value.denominator.bit_length() // BITS_A_STEP
    fact = {tuple(row): n for n, row in enumerate(db.triples.tolist())}
    observed = {row[:2] for row in fact}
    given = np.zeros(db.n_triples, bool)
    for place, x in total.items():
        if x == 0 or (effective and place[:2] not in observed):
            continue
        # the number itself may have more digits than anyone wants to see
        require(x == 1, f"the terms give neither 0 nor 1 at {place}")
        require(place in fact, f"the terms give 1 at {place}, which is no fact")
        given[fact[place]] = True
    return given


def _plain(values: tuple[Fraction, ...]) -> list[int | Fraction]:
    """Integers as such: they are added ten times faster."""
    return [x.numerator if x.denominator == 1 else x for x in values]


def facts_of_pencil(argument: Pencil, db: Database, labels: Indices) -> Mask:
    """Check that the facts of two slices' components have the rank of these two slices.

    `labels` are the components of all facts.

    Each other slice is, as a vector, one of the two, their sum or a difference: the combinations
    that are made of zeros and ones. So the tensor is a matrix times that of the two slices.
    """
    pencil = require_pencil(argument, db)
    facts = np.isin(labels, labels[pencil])
    a, b = (m for m in range(3) if m != argument.mode)
    triples = db.triples[facts].astype(np.int64)
    places, index = triples[:, a] * db.shape[b] + triples[:, b], triples[:, argument.mode]
    first, second = (set(places[index == i].tolist()) for i in argument.slices)
    allowed = [first, second]
    if not first & second:
        allowed.append(first | second)
    allowed += [x - y for x, y in ((first, second), (second, first)) if y <= x]
    for i in np.setdiff1d(index, argument.slices):
        mine = set(places[index == i].tolist())
        require(mine in allowed, f"slice {i} is no combination of the two")
    return facts


def facts_of_diagonal(argument: Diagonalization, db: Database, labels: Indices) -> Mask:
    """Check that the facts of a view's components have the rank n of the view.

    `labels` are the components of all facts.

    `capacity.rank.diagonal` decides that the view's n x n slices are diagonal in common bases. Its
    sub-tensor stands for all facts of its components if in each mode their slices are combinations
    of its own: if the unfolding of all facts has no larger rank.
    """
    slices, n = square_slices(argument, db)
    require(argument.value == n, f"slices of {n} x {n} can show {n}")
    why = why_slices_are_not_diagonal(argument, slices)
    require(why is None, f"the slices are not diagonal in common bases: {why}")
    return _facts_of_view(argument.view, db, labels)


def facts_of_enclosure(argument: Enclosure, db: Database, effective: bool, labels: Indices) -> Mask:
    """Check that a view has an exact real decomposition, and stands for its components.

    `labels` are the components of all facts. `capacity.rank.krawczyk` proves the decomposition.
    As many unknowns vary as entries count: all of the view, or for the effective rank those of
    observed fibers.

    If all count, other slices must be combinations of the view's. Otherwise the view must hold all
    facts of its components: what a slice of a completion is a combination of is unknown. Fibers
    that have a simple tensor each, which puts them right whatever the decomposition makes of them,
    don't count, and facts in them may lie outside the view.
    """
    view, fibers = argument.view, argument.fibers
    require(all(P is None for P in view.bases), "the view must be a part of the facts")
    size = math.prod(len(of) for of in view.indices)
    require(size <= LARGEST_WHOLE, "the view is too large to check")
    tensor, known = view_tensor(view, db, effective)
    rank = argument.factors[0].shape[1]
    shapes = [(n, rank) for n in tensor.shape]
    require([f.shape for f in argument.factors] == shapes, "the factors don't fit the view")
    beside, in_fibers = _beside_fibers(argument, db)
    # what gives all entries represents the facts as well
    masked = effective and len(argument.varying) < beside.sum()
    counts = known & beside if masked else beside
    proved = contracts(tensor, argument.factors, argument.varying, argument.radius, counts)
    require(proved, "the fit isn't shown to have an exact decomposition near it")
    if not (masked or len(fibers)):
        return _facts_of_view(view, db, labels)
    touched = np.isin(db.triples[:, 0], view.indices[0]) | in_fibers
    facts = np.isin(labels, labels[touched])
    for mode in range(3):
        index = db.triples[:, mode]
        require(np.isin(view.indices[mode], index[facts]).all(), "an index is elsewhere")
        require(np.isin(index[facts & ~in_fibers], view.indices[mode]).all(), "a fact is left out")
    return facts


def _beside_fibers(argument: Enclosure, db: Database) -> tuple[Mask, Mask]:
    """Which entries of the view lie beside the fibers, and which facts lie in them."""
    mode, fibers, indices = argument.mode, argument.fibers, argument.view.indices
    require(mode in (0, 1, 2), "there is no such mode")
    a, b = (m for m in range(3) if m != mode)
    width = db.shape[b]
    inside = (fibers >= 0).all() and (fibers < [db.shape[a], width]).all()
    free = np.unique(fibers[:, 0] * width + fibers[:, 1])
    require(inside and len(free) == len(fibers), "fibers must be different")
    chosen = np.isin(indices[a][:, None] * width + indices[b], free)
    beside = ~np.broadcast_to(np.expand_dims(chosen, mode), [len(of) for of in indices])
    triples = db.triples.astype(np.int64)
    return beside, np.isin(triples[:, a] * width + triples[:, b], free)


def _facts_of_view(view: View, db: Database, labels: Indices) -> Mask:
    """The facts of a view's components, if the other slices are combinations of the view's."""
    inside = np.isin(db.triples[:, 0], view.indices[0])
    facts = np.isin(labels, labels[inside])
    used = [np.unique(db.triples[facts, mode]).astype(np.int64) for mode in range(3)]
    size = math.prod(len(of) for of in used)
    if size > LARGEST_WHOLE:
        raise MemoryBudgetError(
            f"A component must have {LARGEST_WHOLE:,} entries at most; got {size:,}."
        )
    whole, _ = view_tensor(View((used[0], used[1], used[2])), db, False)
    sizes = [len(of) for of in view.indices]
    for mode, n in enumerate(sizes):
        chosen = np.isin(used[mode], view.indices[mode])
        require(chosen.sum() == n, "an index is elsewhere")
        rows = np.moveaxis(whole, mode, 0).reshape(len(used[mode]), -1)
        # if the view's slices span the others in each mode, its unfolding is as large as this one
        span = chosen.all() or _span(rows[chosen], rows, min(n, math.prod(sizes) // n))
        require(span, f"the chosen slices of mode {mode} do not span the others")
    return facts


def _span(some: Indices, rows: Indices, most: int) -> bool:
    """Whether all rows are combinations of some of them, and their rank is `most` at most.

    A large rank takes hours, exactly. Modulo a prime it is no larger, and takes a second.
    """
    different = np.unique(rows, axis=0)
    m, n = different.shape
    if flint.nmod_mat(m, n, different.ravel().tolist(), PRIME).rank() > most:
        return False
    return _rank(different) == _rank(some)


def _rank(M: Indices) -> int:
    m, n = M.shape
    return flint.fmpz_mat(m, n, M.ravel().tolist()).rank()
