"""Bounds of the rank of a database, or of a tensor, that need no search, for those of any size.

For the tensor D of a database (Wong 2025, equation (1)):

* rank(D) <= the number of triples, with one simple tensor per fact;
* rank(D) <= the sum of the ranks of the slices of any one mode (Proposition 2.1, its first line,
  and the same for object slices);
* rank(D) >= the rank of any unfolding.

The *paper's count* is Proposition 2.1's last line, min(sum_k |V_k|, sum_q |V_q|). On functional
databases |V_k| and |V_q| are the ranks of the subject and predicate slices, and the sum over object
slices is never larger. On multi-valued ones that equality fails: the count is still an upper bound,
but the slice ranks can be far smaller.

A tensor of another order n is the sum of its matrix slices: fix the indices of n - 2 modes, in any
of the ways to choose these modes. The analogue of the paper's count for facts of any arity is
below.

All ranks are exact, over the rationals, and computed from the sparse entries
(`capacity.exact.ranks`).

**Proposition 2.1 for facts of any arity.** Let D be the tensor of facts (x_1, ..., x_{n-1}, v),
with D[x_1, ..., x_{n-1}, v] = 1 for each fact. Choose a key column m, and call the other n - 2 key
columns y. Of the facts with a given y, let X_m(y) be the tokens in column m and V_y the objects.
Then

    rank(D) <= sum over y of min(|V_y|, |X_m(y)|).

*Proof.* D is the sum over y of e_y (x) M_y. Here e_y is the simple tensor whose one 1 is at y, and
M_y the 0/1 matrix of the facts with this y, which has |X_m(y)| nonzero rows and |V_y| nonzero
columns. So M_y has rank r <= min(|X_m(y)|, |V_y|) and is a sum of r simple matrices; e_y (x) each
of these is a simple tensor. []

The proof doesn't need the facts to be functional. The bound is the smallest over m. For n = 3, y is
the subject or the predicate. Where the facts are functional, each x_m that occurs with y has one
object, so that |V_y| <= |X_m(y)|, and the bound is min(sum_k |V_k|, sum_q |V_q|), the last line of
Proposition 2.1; on other triples it can be below that. For n = 2 it is the smaller side of a
matrix.

References
----------
Wong 2025, Proposition 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_integer, shown
from capacity.display import table
from capacity.errors import InvalidArgumentError
from capacity.exact.ranks import (
    Minor,
    minor_by_group,
    slices_rank,
    sparse_rank,
    sparse_rank_by_group,
)
from capacity.exact.types import Indices
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.verifier.named import name_of, tensor_of
from capacity.tensor.coordinates import compacted, distinct
from capacity.tensor.structure import (
    component_labels,
    slice_modes,
    stacked_slice_entries,
    unfolding_entries,
)


def tuple_bound(tuples: NDArray[np.integer]) -> int:
    """Bound the rank of the 0/1 tensor of facts, min over m of sum_y min(|V_y|, |X_m(y)|).

    Parameters
    ----------
    tuples : integer ndarray, shape (n_facts, arity)
        Indices of the ones, such as ``db.tuples``; the last column is the object. A
        repeated fact counts once.

    Returns
    -------
    int
        An upper bound of the rank.

    Raises
    ------
    InvalidArgumentError
        For another array, or less than two columns.

    Examples
    --------
    The product x_0 x_1 of three bits is eight facts of arity 4. Each of the four (x_0, x_1) has one
    object:

    >>> x = np.indices((2, 2, 2)).reshape(3, -1)
    >>> tuple_bound(np.column_stack([*x, x[0] * x[1]]))
    4
    """
    rows = np.asarray(tuples)
    if rows.ndim != 2 or rows.shape[1] < 2 or rows.dtype.kind not in "iu":
        raise InvalidArgumentError(
            "`tuples` must be integers of shape (n_facts, arity), with at least two columns, a key "
            f"and an object; got {rows.dtype} of shape {rows.shape}. Pass db.tuples."
        )
    columns = [compacted(column) for column in rows.T]
    *key, objects = columns
    bounds: list[int] = []
    for m, x in enumerate(key):
        y = np.zeros(len(rows), np.int64)
        for other, column in enumerate(key):
            if other != m:
                y = _numbered_pairs(y, column)
        bounds.append(int(np.minimum(_distinct(y, objects), _distinct(y, x)).sum()))
    return min(bounds)


def _numbered_pairs(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    # both are numbers of facts at most, so that the pair fits 63 bits
    return compacted(a * (b.max(initial=0) + 1) + b)


def _distinct(y: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the distinct x with each y."""
    size = x.max(initial=0) + 1
    return np.bincount(distinct(y * size + x) // size, minlength=y.max(initial=-1) + 1)


def paper_bound(of: FactsOrTensor) -> int:
    """Compute the paper's database rank bound, min(sum_k |V_k|, sum_q |V_q|).

    An upper bound of the rank of any database (Wong 2025, Proposition 2.1) and of any tensor of
    order 3; for other orders, the analogue that `capacity.rank.bounds` proves.

    Parameters
    ----------
    of : Database or SparseTensor
        Functional or not.

    Returns
    -------
    int
        For order 3, the smaller of the numbers of (subject, object) and (predicate, object) pairs
        with an entry.

    Raises
    ------
    InvalidTypeError
        If `of` is neither a database nor a tensor.

    Examples
    --------
    >>> from capacity import Database
    >>> paper_bound(Database.from_triples([("a", "p", "x"), ("b", "p", "x")]))
    1
    """
    tensor = tensor_of(given_of(of, "paper_bound(of)"))
    if tensor.order != 3:
        return tuple_bound(tensor.indices)
    at, n = tensor.indices, tensor.shape[2]
    return min(len(distinct(at[:, mode] * n + at[:, 2])) for mode in (0, 1))


def slice_rank_sum(of: FactsOrTensor, *modes: int) -> int:
    """Sum the ranks of all matrix slices, an upper bound of the rank.

    Parameters
    ----------
    of : Database or SparseTensor
        Functional or not.
    *modes : int
        The modes whose indices are fixed in a slice, all but two. For a database, one mode: 0, 1
        or 2 for subject, predicate or object slices.

    Returns
    -------
    int
        The exact sum.

    Raises
    ------
    InvalidTypeError
        If `of` is neither a database nor a tensor.
    InvalidArgumentError
        For other modes.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    >>> from capacity import Database
    >>> db = Database.from_triples([(k, q, "v") for k in "ab" for q in "pq"])
    >>> [slice_rank_sum(db, mode) for mode in (0, 1, 2)]
    [2, 2, 1]
    """
    tensor = tensor_of(given_of(of, "slice_rank_sum(of, mode)"))
    for mode in modes:
        require_integer("mode", mode, least=0, most=tensor.order - 1)
    if tuple(sorted(modes)) not in slice_modes(tensor.order):
        raise InvalidArgumentError(
            f"`modes` must be {tensor.order - 2} different modes of {tensor.order}; got "
            f"{shown(modes)}."
        )
    return slices_rank(tensor, tuple(sorted(modes)))


def unfolding_rank(of: FactsOrTensor, mode: int) -> int:
    """Compute the rank of the mode-`mode` unfolding, a lower bound of the rank.

    Parameters
    ----------
    of : Database or SparseTensor
        Functional or not.
    mode : int
        The mode whose slices are the rows; for a database, 0, 1 or 2 for subjects, predicates or
        objects.

    Returns
    -------
    int
        The exact rank.

    Raises
    ------
    InvalidTypeError
        If `of` is neither a database nor a tensor.
    InvalidArgumentError
        For another mode.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    The W state has rank 3, and unfoldings of rank 2:

    >>> from capacity import Database
    >>> w = Database.from_triples([("a", "p", "y"), ("a", "q", "x"), ("b", "p", "x")])
    >>> [unfolding_rank(w, mode) for mode in (0, 1, 2)]
    [2, 2, 2]
    """
    tensor = tensor_of(given_of(of, "unfolding_rank(of, mode)"))
    require_integer("mode", mode, least=0, most=tensor.order - 1)
    return sparse_rank(*unfolding_entries(tensor, mode), tensor.values)


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Bounds of the rank that need no search, of a database or tensor and of its components.

    Attributes
    ----------
    triples : int
        Number of triples, or of the entries of a tensor, an upper bound.
    paper : int
        Upper bound as the paper counts it (`paper_bound`).
    component : ndarray of int64, shape (n_entries,)
        The component of each fact or entry, numbered from 0.
    slices_by_component : ndarray of int64, shape (n_components, n_choices)
        Sums of the ranks of matrix slices, for each choice of the modes that are fixed; one mode
        each for order 3.
    unfoldings_by_component : ndarray of int64, shape (n_components, order)
        Ranks of the unfoldings in each mode.
    minors : tuple of Minor
        Nonsingular minors of the unfoldings, with the components as groups.
    facts_sha256 : str
        SHA-256 of the facts (`Database.facts_sha256`) or of the tensor (`SparseTensor.sha256`).
    """

    triples: int
    paper: int
    component: Indices
    slices_by_component: Indices
    unfoldings_by_component: Indices
    minors: tuple[Minor, ...]
    facts_sha256: str

    def __repr__(self) -> str:
        return (
            f"Bounds(triples={self.triples}, paper={self.paper}, slices={self.slices}, "
            f"unfoldings={self.unfoldings}; {len(self.unfoldings_by_component)} components)"
        )

    def _repr_html_(self) -> str:
        rows = [("triples", self.triples), ("paper (Proposition 2.1)", self.paper),
                ("sums of slice ranks, by mode", self.slices),
                ("ranks of the unfoldings, by mode", self.unfoldings),
                ("components", len(self.unfoldings_by_component))]  # fmt: skip
        return table("bounds of the rank", rows)

    @property
    def slices(self) -> tuple[int, ...]:
        """Sums of the ranks of the matrix slices: of subject, predicate and object slices."""
        return tuple(self.slices_by_component.sum(axis=0).tolist())

    @property
    def unfoldings(self) -> tuple[int, ...]:
        """Ranks of the unfoldings: the multilinear rank."""
        return tuple(self.unfoldings_by_component.sum(axis=0).tolist())


def database_bounds(of: FactsOrTensor) -> Bounds:
    """Compute the bounds of the rank that need no search, with the minors that prove them.

    Parameters
    ----------
    of : Database or SparseTensor
        A database, functional or not, or a tensor of order 2 or more.

    Returns
    -------
    Bounds
        The number of triples, the paper's count, slice rank sums and unfolding ranks.

    Raises
    ------
    InvalidTypeError
        If `of` is neither a database nor a tensor.
    InvalidArgumentError
        If the tensor has a single mode, or an entry of 2^31 or more in absolute value.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    >>> from capacity import Database
    >>> facts = [("a", "p", "x"), ("a", "q", "y"), ("b", "p", "y")]
    >>> b = database_bounds(Database.from_triples(facts))
    >>> b.slices, b.unfoldings
    ((3, 3, 3), (2, 2, 2))
    """
    of = given_of(of, "database_bounds(of)")
    tensor = tensor_of(of)
    component = component_labels(tensor)
    slices = [
        sparse_rank_by_group(*stacked_slice_entries(tensor, fixed)[:2], component, tensor.values)
        for fixed in slice_modes(tensor.order)
    ]
    found = [
        minor_by_group(*unfolding_entries(tensor, mode), component, tensor.values)
        for mode in range(tensor.order)
    ]
    return Bounds(
        tensor.n_entries,
        paper_bound(tensor),
        component,
        np.stack(slices, axis=1),
        np.stack([ranks for ranks, _ in found], axis=1),
        tuple(minor for _, minor in found),
        name_of(of)[0],
    )
