"""The bound of Proposition 2.1 for facts of any arity.

Let D be the tensor of facts (x_1, ..., x_{n-1}, v), with D[x_1, ..., x_{n-1}, v] = 1 for each fact.
Choose a key column m, and call the other n - 2 key columns y. Of the facts with a given y, let
X_m(y) be the tokens in column m and V_y the objects. Then

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

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import compacted, distinct


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
            f"and an object; got {rows.dtype} of shape {rows.shape}. Say db.tuples."
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
