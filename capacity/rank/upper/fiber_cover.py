"""Upper bounds by covers of all entries by fibers, for tensors of order 3 of any size.

The entries of a fiber are a simple tensor; so the rank is at most the number of fibers that cover
all entries, each entry being given by one of them. A cover by fewest fibers is a smallest vertex
cover of the hypergraph whose edges are the entries, each joining its three fibers. Its linear
relaxation is solved here, in a limited number of iterations, and rounded; on graphs of facts its
solutions were integers.

Equal slices are merged first. In the end the entries of the fibers along each mode are taken
together by slices of another mode, whose ranks may be smaller than their numbers of fibers, and
these by pairs. The sum of the ranks of all slices of one mode is the case that all entries are
given by fibers of the slices of that mode.

**Pairs of slices** whose rank together is less than the sum of their ranks. Two n x n slices of
full rank have rank n or little more together, by Jaja's theorem, not 2 n
(`capacity.rank.verifier.procedures.pencils`). Predicates that join the same subjects to the same
objects are such pairs. With A and B their matrices, one below the other and side by side, and a
generic combination of them,

    rank(A, B together) >= rank [A; B] + rank [A B] - rank(A + t B),

so that three ranks of matrices show which pairs may save anything. The pairs that save most are
taken, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.errors import MemoryBudgetError
from capacity.exact.ranks import sparse_rank, sparse_rank_by_group
from capacity.exact.types import Indices, Mask, Term
from capacity.rank.reductions.equal_slices import Merged, merge_equal_slices
from capacity.rank.upper.slices import slice_terms
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.paired_slices import PAIR, PairedSlices
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import numbered_fibers, stacked_slice_entries

# slices of a mode up to which pairs are looked for, and pairs looked at for each slice
MOST_SLICES, PAIRS_A_SLICE = 1_000, 6
# factor of the second slice in a generic combination
GENERIC = 7_919


class Pair(NamedTuple):
    """Two slices, with the rank that they have together.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of their entries.
    rank, saved : int
        Their rank together, and what it is less than the sum of their ranks.
    """

    rows: Indices
    rank: int
    saved: int


def paired_slices(tensor: SparseTensor, mode: int, chosen: Mask, steps: int) -> Sequence[Pair]:
    """Pair slices of a mode.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of order 3.
    mode : int
        The mode.
    chosen : ndarray of bool, shape (n_entries,)
        The entries that are looked at.
    steps : int
        Steps that the verifier may need for all pairs that are looked at.

    Returns
    -------
    sequence of Pair
        Pairs of different slices.
    """
    rows = np.flatnonzero(chosen)
    numbers, of = np.unique(tensor.indices[rows, mode], return_inverse=True)
    if not 2 <= len(numbers) <= MOST_SLICES:
        return []
    order = np.argsort(of.ravel(), kind="stable")
    entries = np.split(rows[order], np.cumsum(np.bincount(of.ravel()))[:-1])
    a, b = (m for m in range(3) if m != mode)
    ranks = [
        sparse_rank(tensor.indices[one, a], tensor.indices[one, b], tensor.values[one])
        for one in entries
    ]
    budget = CheckBudget(steps)
    found: list[tuple[int, int, Pair]] = []
    for i, j in _nearest(tensor, rows, of.ravel(), (a, b), np.array(ranks)):
        try:
            pair = _paired(tensor, entries[i], entries[j], (a, b), ranks[i] + ranks[j], budget)
        except MemoryBudgetError:
            # its block is too large, or the budget is spent; a smaller pair may do
            continue
        if pair is not None:
            found.append((i, j, pair))
    taken: set[int] = set()
    best: list[Pair] = []
    for i, j, pair in sorted(found, key=lambda one: -one[2].saved):
        if taken.isdisjoint((i, j)):
            taken |= {i, j}
            best.append(pair)
    return best


def _nearest(
    tensor: SparseTensor, rows: Indices, of: Indices, others: tuple[int, int], ranks: Indices
) -> list[tuple[int, int]]:
    """Return the pairs of slices that share most indices of both other modes.

    Without a common index of either mode, an unfolding of the two has the sum of their ranks.
    """
    from scipy.sparse import coo_array

    shared: list[Any] = []
    for m in others:
        places = np.unique(np.stack([of, tensor.indices[rows, m]]), axis=1)
        ones = np.ones(places.shape[1], np.int64)
        incidence: Any = coo_array((ones, (places[0], places[1])))
        shared.append(incidence.tocsr() @ incidence.T.tocsr())
    common = shared[0].minimum(shared[1]).tocoo()
    upper = common.row < common.col
    i, j, most = common.row[upper], common.col[upper], common.data[upper]
    most = np.minimum(most, np.minimum(ranks[i], ranks[j]))
    order = np.argsort(-most, kind="stable")[: PAIRS_A_SLICE * len(ranks)]
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def _paired(
    tensor: SparseTensor, first: Indices, second: Indices, others: tuple[int, int], apart: int,
    budget: CheckBudget,
) -> Pair | None:  # fmt: skip
    """Find the rank of two slices, if it may be less than the sum of their ranks."""
    rows = np.concatenate([first, second])
    one, other = (tensor.indices[rows, m] for m in others)
    values = tensor.values[rows]
    at = (np.arange(len(rows)) >= len(first)).astype(np.int64)
    height, width = tensor.shape[others[0]], tensor.shape[others[1]]
    stacked = sparse_rank(one + at * height, other, values)
    beside = sparse_rank(one, other + at * width, values)
    places, where = np.unique(one * width + other, return_inverse=True)
    both = np.zeros((len(places), 2), np.int64)
    both[where.ravel(), at] = values
    generic = both[:, 0] + GENERIC * both[:, 1]
    there = generic != 0
    rank = sparse_rank(*np.divmod(places[there], width), generic[there])
    if stacked + beside - rank >= apart:
        return None
    budget.spend(PAIR)
    # the verifier takes longer for larger entries
    longer = 1 + tensor.largest.bit_length() // 8

    def spend(steps: int, memory: int) -> None:
        budget.spend(steps * longer, memory)

    together = sparse_pencil_rank(*np.divmod(places, width), both, spend=spend)
    return Pair(rows, together, apart - together) if together < apart else None


# a mode of slices, and the modes of the fibers whose entries they take
Taken: TypeAlias = tuple[int, tuple[int, ...]]
# components may choose differently: the pairs of each choice have this share of the steps
SHARES = 4
# iterations of the simplex method: graphs took up to a fifth of their entries, and those that take
# far more, such as random tensors, have no cover that is better than slices
ITERATIONS, AN_ITERATION = 500, 4
# for the fibers along each mode, the mode of the slices that take them: one that they lie in, or
# the same for all entries
CHOICES = (*product((1, 2), (0, 2), (0, 1)), (0, 0, 0), (1, 1, 1), (2, 2, 2))


@dataclass(frozen=True)
class FiberCover:
    """Upper bounds of components by covers.

    Attributes
    ----------
    values : ndarray of int64, shape (n_components,)
        Upper bound of the rank of each component; a large number for those that aren't covered.
    choices : ndarray of int64, shape (n_components,)
        Number of the choice of slices for each component, in `CHOICES`.
    chosen : ndarray of int64
        Rows of the entries that are covered.
    merged : Merged
        These entries, with equal slices merged.
    along : ndarray of int64
        For each row of the smaller tensor the mode of the fiber that covers it.
    pairs : dict
        Pairs of slices of a mode that take the entries of the fibers along some modes.
    """

    values: Indices
    choices: Indices
    chosen: Indices
    merged: Merged
    along: Indices
    pairs: dict[Taken, Sequence[Pair]]

    def decomposed(
        self, component: Indices, which: Mask
    ) -> tuple[Indices, list[Term], list[PairedSlices]]:
        """Decompose some components.

        Parameters
        ----------
        component : ndarray of int64, shape (n_entries,)
            The component of each entry of the whole.
        which : ndarray of bool, shape (n_components,)
            The components to decompose, all of them covered.

        Returns
        -------
        box : ndarray of int64, shape (n_entries,)
            The box of each entry, or -1 for entries that terms or pairs cover and for all others.
        terms : list of Term
            Simple tensors that add up to the entries without a box or a pair.
        pairs : list of PairedSlices
            Pairs of slices.
        """
        tensor = self.merged.tensor
        of = np.zeros(tensor.n_entries, np.int64)
        of[self.merged.rows] = component[self.chosen]
        taken_by = np.array(CHOICES)[self.choices[of], self.along]
        small, terms, pairs = np.full(tensor.n_entries, -1), list[Term](), list[PairedSlices]()
        for mode in range(3):
            left = (taken_by == mode) & which[of]
            labels, rank = np.full(tensor.n_entries, -1), 0
            for number, pair in enumerate(self._pairs_of(mode, of, which)):
                labels[pair.rows], left[pair.rows] = number, False
                rank += pair.rank
            if rank:
                pairs.append(PairedSlices(mode, self._of_whole(labels, component), rank))
            mine = np.flatnonzero(left)
            if len(mine):
                found, more = slice_terms(tensor, (mode,), mine)
                small[mine] = np.where(found < 0, -1, found + small.max() + 1)
                terms += more
        return self._of_whole(small, component), self.merged.lifted(terms), pairs

    def _pairs_of(self, mode: int, of: Indices, which: Mask) -> Iterator[Pair]:
        """Yield the pairs of a mode in components whose choice has them."""
        for taken, pairs in self.pairs.items():
            for pair in pairs:
                c = of[pair.rows[0]]
                if which[c] and taken[0] == mode and taken in _taken(CHOICES[self.choices[c]]):
                    yield pair

    def _of_whole(self, small: Indices, component: Indices) -> Indices:
        """Return for each entry of the whole the number of its row in the smaller tensor."""
        whole = np.full(len(component), -1)
        whole[self.chosen] = small[self.merged.rows]
        return whole


def fiber_cover(
    tensor: SparseTensor, component: Indices, which: Mask, *, steps: int = 0
) -> FiberCover:
    """Cover the entries of some components by fibers.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of order 3.
    component : ndarray of int64, shape (n_entries,)
        The component of each entry, numbered from 0.
    which : ndarray of bool, shape (n_components,)
        The components to cover, at least one.
    steps : int
        Steps that the verifier may need for pairs of slices; none are looked for if 0.

    Returns
    -------
    FiberCover

    Raises
    ------
    MemoryBudgetError
        If an exact rank needs a dense block over its budget.
    """
    chosen = np.flatnonzero(which[component])
    part = SparseTensor(tensor.indices[chosen], tensor.values[chosen], tensor.shape)
    merged = merge_equal_slices(part)
    small = merged.tensor
    of = np.zeros(small.n_entries, np.int64)
    of[merged.rows] = component[chosen]
    along = _covering(small)

    # a pair's slices must be single ones in the whole
    single = [np.array([len(one) == 1 for one in members]) for members in merged.members]

    @cache
    def pairs(taken: Taken) -> Sequence[Pair]:
        mode, fibers = taken
        chosen = np.isin(along, fibers) & single[mode][small.indices[:, mode]]
        return paired_slices(small, mode, chosen, steps // SHARES) if steps else []

    @cache
    def ranks(taken: Taken) -> Indices:
        mode, fibers = taken
        mine = np.isin(along, fibers)
        rows, columns, _ = stacked_slice_entries(small, (mode,))
        found = sparse_rank_by_group(rows[mine], columns[mine], of[mine], small.values[mine])
        saved = np.zeros(len(which), np.int64)
        for pair in pairs(taken):
            saved[of[pair.rows[0]]] += pair.saved
        return np.pad(found, (0, len(which) - len(found))) - saved

    sums = np.stack([sum(map(ranks, _taken(choice))) for choice in CHOICES])
    values = np.where(which, sums.min(axis=0), np.iinfo(np.int64).max)
    choices = sums.argmin(axis=0)
    numbers: list[int] = np.unique(choices[which]).tolist()
    used = {taken for number in numbers for taken in _taken(CHOICES[number])}
    found = {taken: pairs(taken) for taken in sorted(used)}
    return FiberCover(values, choices, chosen, merged, along, found)


def _taken(choice: tuple[int, ...]) -> list[Taken]:
    """For each mode whose slices take anything, the modes of the fibers that they take."""
    return [(m, tuple(n for n in range(3) if choice[n] == m)) for m in sorted({*choice})]


def _covering(tensor: SparseTensor) -> Indices:
    """Return the mode of the fiber that covers each entry, in a cover by few fibers."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    fibers = numbered_fibers(tensor.indices, tensor.shape)
    n, total = tensor.n_entries, int(fibers.max()) + 1
    incidence: Any = coo_array((-np.ones(3 * n), (np.repeat(np.arange(n), 3), fibers.ravel())))
    solved: Any = linprog(
        np.ones(total),
        incidence.tocsr(),
        -np.ones(n),
        bounds=(0, 1),
        method="highs-ds",
        options={"maxiter": ITERATIONS + n // AN_ITERATION},
    )
    # without a solution, the longest fibers: the slices of one mode may do better then
    weights: NDArray[np.float64] = np.zeros(total) if solved.x is None else solved.x
    # an entry's heaviest fiber has a third or more; of equal ones, that with most entries
    sizes = np.bincount(fibers.ravel(), minlength=total)
    return np.lexsort((sizes[fibers], np.round(weights[fibers], 6)), axis=1)[:, -1]
