"""Points on a curve, in an order of the objects: scores that are polynomials of few roots.

Put the objects on a line. Along it the answers of a query form runs, and a polynomial with a root
at each end of a run is positive at the answers alone. Its degree is the number of sign changes, so
objects at (x, x^2, ..., x^k) and queries with the polynomials' coefficients are scores of k
dimensions, up to the constant, which is one dimension more for signs and none for rankings. This
is the moment curve's argument (Alon, Frankl, Rodl 1985): 2 c + 1 dimensions for c answers a query
(Badreddine, van Krieken and Serafini 2025, Theorem 4.1). Fewer runs than answers take fewer.

With factors for subjects, relations and objects (CP), an order for each relation q, objects without
a fact of it at 0 and the constant -1 that all queries share, it takes 1 + sum_q k_q dimensions for
signs, k_q the most sign changes of a subject's answers in q, from -1 at 0; and sum_q k_q for
rankings. A subject's order of objects may be replaced by an object's order of subjects, and by a
decomposition of twice the matrix of q, of its rank.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from capacity.exact.types import Indices, Spend, free
from capacity.tensor.coordinates import distinct

# pairs of columns that share a row, which are compared for an order
MOST_PAIRS = 5_000_000
# columns up to which each next one is chosen nearest to the last, and how many starts are tried
NEAREST, STARTS = 400, 4
# steps for a one along an order, for a pair, for a visit of a column, and for a column that is left
ONE, PAIR, VISIT, LEFT = 100, 40, 12_000, 10
# bytes for a one, and for a pair
ONE_BYTES, PAIR_BYTES = 200, 32


def sign_changes(rows: Indices, columns: Indices, order: Indices, *, from_minus: bool) -> int:
    """Count the most sign changes of a row of a 0/1 matrix, along an order of its columns.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n_entries,)
        Places of the ones, each once.
    order : ndarray of int64
        The columns, each once.
    from_minus : bool
        Whether a 0 precedes each row, as at the origin of the curve; rows of ones alone then
        have one change.

    Returns
    -------
    int

    Examples
    --------
    The row 0 1 1 0 1 has three changes, and in the order 1 2 4 0 3 one.

    >>> rows, columns = np.zeros(3, int), np.array([1, 2, 4])
    >>> sign_changes(rows, columns, np.arange(5), from_minus=True)
    3
    >>> sign_changes(rows, columns, np.array([1, 2, 4, 0, 3]), from_minus=False)
    1
    """
    return int(changes_of_rows(rows, columns, order, from_minus=from_minus).max(initial=0))


def changes_of_rows(
    rows: Indices, columns: Indices, order: Indices, *, from_minus: bool
) -> Indices:
    """Count the sign changes of each row that has a one, as `sign_changes` does."""
    row, at = _along(rows, columns, order)
    new_row, new_run = np.ones(len(row), bool), np.ones(len(row), bool)
    new_row[1:], new_run[1:] = row[1:] != row[:-1], at[1:] != at[:-1] + 1
    run, last = new_row | new_run, np.roll(new_row, -1)
    numbers = np.cumsum(new_row) - 1
    # a run has a change at each end, unless nothing is beyond
    changes = 2 * np.bincount(numbers, weights=run).astype(np.int64)
    changes -= np.bincount(numbers, weights=last & (at == len(order) - 1)).astype(np.int64)
    if not from_minus:
        changes -= np.bincount(numbers, weights=new_row & (at == 0)).astype(np.int64)
    return changes


def _along(rows: Indices, columns: Indices, order: Indices) -> tuple[Indices, Indices]:
    """Sort ones by their rows, and in each by the places of their columns in the order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    row, at = np.divmod(np.sort(rows * len(order) + place[columns]), max(1, len(order)))
    return row, at


def has_gap(rows: Indices, columns: Indices, order: Indices) -> bool:
    """Return True if no row has ones on both sides of some place between two columns of an order.

    A column of zeros fits there and changes no signs.
    """
    row, at = _along(rows, columns, order)
    together = (row[1:] == row[:-1]) & (at[1:] == at[:-1] + 1)
    return len(distinct(at[1:][together])) < len(order) - 1


def seriated(
    rows: Indices, columns: Indices, n_columns: int, *, from_minus: bool, spend: Spend = free
) -> Indices:
    """Order the columns of a 0/1 matrix so that no row has many sign changes, by heuristics.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n_entries,)
        Places of the ones, each once.
    n_columns : int
        Number of columns.
    from_minus : bool
        As for `sign_changes`.
    spend : callable
        Called with the steps and bytes of each part of the work before it, and may refuse it.

    Returns
    -------
    ndarray of int64, shape (n_columns,)
        The best order of those tried: as given, by bandwidth (Cuthill and McKee 1969), and each
        next the nearest column.
    """
    orders = _orders(rows, columns, n_columns, spend)
    return min(orders, key=lambda o: sign_changes(rows, columns, o, from_minus=from_minus))


def _orders(rows: Indices, columns: Indices, n_columns: int, spend: Spend) -> Iterator[Indices]:
    # of counting the changes along each order, too
    spend(ONE * (len(rows) + n_columns), ONE_BYTES * (len(rows) + n_columns))
    yield np.arange(n_columns)
    pairs = int((np.bincount(rows).astype(float) ** 2).sum())
    if pairs > MOST_PAIRS:
        return
    spend(PAIR * pairs + 2 * ONE * (len(rows) + n_columns), PAIR_BYTES * pairs)
    _, row = np.unique(rows, return_inverse=True)
    ones = np.ones(len(rows), np.int32)
    matrix = csr_array((ones, (columns, row)), shape=(n_columns, int(row.max(initial=-1)) + 1))
    together = csr_array(matrix @ matrix.T)
    yield reverse_cuthill_mckee(together, symmetric_mode=True).astype(np.int64)
    used = distinct(columns)
    if len(used) > NEAREST:
        return
    each = ONE * len(rows) + (VISIT + LEFT * len(used)) * len(used)
    spend(STARTS * each, 40 * n_columns**2)
    shared = together.toarray()[np.ix_(used, used)]
    distance = np.diag(shared)[:, None] + np.diag(shared)[None] - 2 * shared
    unused = np.setdiff1d(np.arange(n_columns), used)
    for start in range(min(STARTS, len(used))):
        yield np.concatenate([unused, used[_nearest(distance, start)]])


def _nearest(distance: Indices, start: int) -> Indices:
    """Visit all columns, each time the nearest that is left."""
    left = np.ones(len(distance), bool)
    path = [start]
    left[start] = False
    while left.any():
        rest = np.flatnonzero(left)
        path.append(int(rest[distance[path[-1], rest].argmin()]))
        left[path[-1]] = False
    return np.array(path)
