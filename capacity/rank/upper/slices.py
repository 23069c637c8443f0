"""Upper bounds from slices, as explicit decompositions.

The rank of D is at most the sum of the ranks of its slices of one mode (Wong 2025, Proposition
2.1), and at most the weight of a *spanning tree* over the slices: an edge from T_i to T_j weighs
rank(T_j - T_i), one from the root rank(T_i). If c hangs below p, the terms of T_c - T_p serve T_c
and all slices below it. Slices that differ little cost little.

Peeling a slice cuts its entries into simple matrices, one per unit of rank
(`capacity.exact.peeling`): boxes where the entries are equal, as they are for facts. Only the
remainder needs factors over the rationals.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from capacity.exact.elimination import factors, integer_factors
from capacity.exact.peeling import reduce
from capacity.exact.types import Indices, Term, Vector, vector
from capacity.rank.verifier.kinds.decomposition import PRODUCTS_AN_ENTRY, products_of_terms
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import slice_modes, stacked_slice_entries

# entries of the largest block that is factored, if the verifier can afford its terms
FACTORED_ENTRIES = 200_000
# integer products in all blocks of a small tensor, which take the verifier 0.04 s
MANY_PRODUCTS = 200_000


def slice_terms(
    tensor: SparseTensor, fixed: tuple[int, ...], entries: Indices
) -> tuple[Indices, list[Term]]:
    """Decompose entries slice by slice into boxes and terms.

    They are as many as the ranks of the slices add up to; a block that is too large to factor takes
    a box for each of its rows or columns, which can be more.

    Parameters
    ----------
    tensor : SparseTensor
        The tensor that the entries belong to.
    fixed : tuple of int
        Modes whose indices are fixed in a slice, all but two.
    entries : ndarray of int64
        Row numbers of the entries.

    Returns
    -------
    box : ndarray of int64, shape (len(entries),)
        The box of each entry, numbered from 0; -1 for entries that the terms cover.
    terms : list of Term
        Simple tensors that add up to the other entries.
    """
    rows, columns, _ = (x[entries] for x in stacked_slice_entries(tensor, fixed))
    at, values = tensor.indices[entries], tensor.values[entries]
    left, right = (m for m in range(tensor.order) if m not in fixed)
    matrix = reduce(rows, columns, values)
    box = matrix.taken_by.copy()
    terms: list[Term] = []
    most = max(PRODUCTS_AN_ENTRY // 2, MANY_PRODUCTS // tensor.n_entries)

    def simple(one: int, a: Vector, b: Vector) -> Term:
        """Simple tensor of two vectors, in the slice of an entry."""
        parts = {left: a, right: b}
        parts |= {m: vector([int(at[one, m])], [1]) for m in fixed}
        return tuple(parts[m] for m in range(tensor.order))

    # a pivot takes a simple tensor; of boxes, which have equal entries, there is one only if all
    # its entries are equal
    for taken in _unequal(box, values):
        a, b = _outer(at[taken][:, [left, right]], values[taken])
        terms.append(simple(int(taken[0]), a, b))
        box[taken] = -1
    stands_for = np.full(len(entries), -1, np.int64)
    for block_number, block in enumerate(matrix.blocks()):
        stands_for[block] = block_number
    core = np.where(matrix.taken_by < 0, stands_for[matrix.same_as], -1)
    order = np.argsort(core, kind="stable")
    order = order[np.searchsorted(core[order], 0) :]
    for block in np.split(order, np.flatnonzero(np.diff(core[order])) + 1) if len(order) else []:
        ia, row = np.unique(at[block, left], return_inverse=True)
        ib, column = np.unique(at[block, right], return_inverse=True)
        dense = np.zeros((len(ia), len(ib)), np.int64)
        dense[row.ravel(), column.ravel()] = values[block]
        found = (
            [simple(int(block[0]), vector(ia.tolist(), u), vector(ib.tolist(), v)) for u, v in of]
            for of in _factored(dense, most * len(block))
        )
        cheap = next((of for of in found if products_of_terms(of) <= most * len(block)), None)
        if cheap is not None:
            terms += cheap
            continue
        # a box for each row or column, whichever are fewer, or a term if its entries differ
        lines = (row if len(ia) <= len(ib) else column).ravel()
        for line in range(int(lines.max()) + 1):
            mine = block[lines == line]
            if (values[mine] == values[mine[0]]).all():
                box[mine] = box.max(initial=-1) + 1
            else:
                a, b = _outer(at[mine][:, [left, right]], values[mine])
                terms.append(simple(int(mine[0]), a, b))
    return box, terms


def _factored(dense: Indices, products: int) -> Iterator[list[tuple[list[Fraction], ...]]]:
    """Yield factors of a block over the rationals and over the integers, if it isn't large."""
    if dense.size > FACTORED_ENTRIES:
        return
    found = factors(dense)
    yield [*found]
    if len(found) * dense.size <= products:
        yield [*integer_factors(dense)]


def _unequal(box: Indices, values: Indices) -> Iterator[Indices]:
    """Yield the entries of each box whose entries aren't all equal."""
    order = np.argsort(box, kind="stable")
    order = order[np.searchsorted(box[order], 0) :]
    if not len(order) or (values == values[0]).all():
        return
    starts = np.flatnonzero(np.diff(box[order], prepend=-1))
    ordered = values[order]
    differ = np.minimum.reduceat(ordered, starts) != np.maximum.reduceat(ordered, starts)
    groups = np.split(order, starts[1:])
    yield from (groups[g] for g in np.flatnonzero(differ))


def _outer(places: Indices, values: Indices) -> tuple[Vector, Vector]:
    """Two vectors whose outer product has these values at these places, all of a box."""
    (rows, row), (columns, column) = (np.unique(of, return_inverse=True) for of in places.T)
    dense = np.zeros((len(rows), len(columns)), np.int64)
    dense[row.ravel(), column.ravel()] = values
    scale = int(dense[0, 0])
    down = [Fraction(int(x), scale) for x in dense[:, 0]]
    return vector(rows.tolist(), down), vector(columns.tolist(), dense[0].tolist())


def sliced(
    tensor: SparseTensor, choices: Indices, component: Indices, entries: Indices
) -> tuple[Indices, list[Term]]:
    """Decompose each component slice by slice, in modes of its own.

    Parameters
    ----------
    tensor : SparseTensor
        The tensor that the entries belong to.
    choices : ndarray of int64, shape (n_components,)
        Number of the choice of fixed modes for each component, in the order of `slice_modes`.
    component : ndarray of int64, shape (n_entries,)
        The component of each entry.
    entries : ndarray of int64
        Row numbers of the entries to decompose, all of each component.

    Returns
    -------
    box : ndarray of int64, shape (n_entries,)
        The box of each entry, or -1 for entries that the terms cover and for all others.
    terms : list of Term
        Simple tensors that add up to the entries without a box.
    """
    box = np.full(tensor.n_entries, -1, np.int64)
    terms: list[Term] = []
    for choice, fixed in enumerate(slice_modes(tensor.order)):
        mine = entries[choices[component[entries]] == choice]
        if len(mine):
            found, more = slice_terms(tensor, fixed, mine)
            box[mine] = np.where(found < 0, -1, found + box.max(initial=-1) + 1)
            terms += more
    return box, terms
