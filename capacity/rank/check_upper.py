"""One checker a kind of argument for upper bounds.

Nothing of the search is imported. Each returns the facts that its argument gives, once; it must
give 0 wherever there is no fact, which `capacity.rank.verify` builds on.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.rank.certificate import (
    Boxes,
    Decomposition,
    Diagonalization,
    Indices,
    Pencil,
    View,
)
from capacity.rank.check_view import (
    Refuted,
    require,
    require_pencil,
    square_slices,
    view_tensor,
)
from capacity.rank.diagonal import why_not_diagonal


def facts_of_boxes(argument: Boxes, db: Database, effective: bool) -> NDArray[np.bool_]:
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
    for other in np.flatnonzero(sides != sizes):
        require(effective, f"box {number[other]} holds {sizes[other]} of {sides[other]} triples")
        mine = facts[box.ravel() == other]
        own = {(k, q, v) for k, q, v in mine.tolist()}
        observed = {(k, q) for k, q, _ in db.triples.tolist()}
        ks, qs, vs = (set(mine[:, mode].tolist()) for mode in range(3))
        for triple in itertools.product(ks, qs, vs):
            require(
                triple in own or triple[:2] not in observed,
                f"box {number[other]} gives {triple}, which isn't among its facts",
            )
    return inside


def facts_of_terms(argument: Decomposition, db: Database, effective: bool) -> NDArray[np.bool_]:
    """Add the terms up; what they give must be 1 at some facts and 0 elsewhere."""
    total: defaultdict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
    for number, term in enumerate(argument.terms):
        for (indices, _), n in zip(term, db.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
        (ks, a), (qs, b), (vs, c) = term
        for k, x in zip(ks, a, strict=True):
            for q, y in zip(qs, b, strict=True):
                for v, z in zip(vs, c, strict=True):
                    total[k, q, v] += x * y * z
    fact = {tuple(row): n for n, row in enumerate(db.triples.tolist())}
    observed = {row[:2] for row in fact}
    given = np.zeros(db.n_triples, bool)
    for place, x in total.items():
        if x == 0 or (effective and place[:2] not in observed):
            continue
        require(place in fact and x == 1, f"the terms give {x} at {place}")
        given[fact[place]] = True
    return given


def facts_of_pencil(argument: Pencil, db: Database, labels: Indices) -> NDArray[np.bool_]:
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


def facts_of_diagonal(
    argument: Diagonalization, db: Database, labels: Indices
) -> NDArray[np.bool_]:
    """Check that the facts of a view's components have the rank n of the view.

    `labels` are the components of all facts.

    `capacity.rank.diagonal` decides that the view's n x n slices are diagonal in common bases. Its
    sub-tensor stands for all facts of its components if in each mode their slices are combinations
    of its own: if the unfolding of all facts has no larger rank.
    """
    require(all(P is None for P in argument.view.bases), "the view must be a part of the facts")
    slices, n = square_slices(argument, db)
    require(argument.value == n, f"slices of {n} x {n} can show {n}")
    try:
        why = why_not_diagonal(slices, argument.combination)
    except ValueError as error:
        raise Refuted(str(error)) from None
    require(why is None, f"the slices are not diagonal in common bases: {why}")
    inside = np.isin(db.triples[:, argument.mode], argument.view.indices[argument.mode])
    facts = np.isin(labels, labels[inside])
    used = [np.unique(db.triples[facts, mode]).astype(np.int64) for mode in range(3)]
    whole, _ = view_tensor(View((used[0], used[1], used[2])), db, False)
    for mode in range(3):
        require(np.isin(argument.view.indices[mode], used[mode]).all(), "an index is elsewhere")
        rows = np.moveaxis(whole, mode, 0).reshape(len(used[mode]), -1)
        chosen = rows[np.isin(used[mode], argument.view.indices[mode])]
        ranks = [_rank(M) for M in (rows, chosen)]
        require(ranks[0] == ranks[1], f"the chosen slices of mode {mode} do not span the others")
    return facts


def _rank(M: Indices) -> int:
    m, n = M.shape
    return flint.fmpz_mat(m, n, M.ravel().tolist()).rank()
