"""Lower bound n + 1 from a linear form that vanishes on all slices' combinations of rank one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import flint
import numpy as np

from capacity.exact.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import require_at_most, steps_of_rank
from capacity.rank.verifier.entries import LARGEST_VALUE, Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import PRIME, UNOBSERVED, view_tensor

# quadrics, and slices of a view
MOST_MINORS, MOST_SLICES = 200_000, 30
# steps and bytes for each coefficient of a minor
MINOR, MINOR_BYTES = 1_000, 260
# sums of four products of entries below this fit 64 bits
EXACT = 2**29


@dataclass(frozen=True, eq=False, repr=False)
class RankOneLocus(FromBelow):
    """A linear form whose square is a combination of the 2 x 2 minors of the slices.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices in the mode are independent.
    mode : int
        Mode of the slices.
    form : ndarray of int64
        Coefficients of the linear form, one for each slice.
    """

    kind: ClassVar[str] = "rank-one locus"
    forms: ClassVar[Forms] = {"view": "view", "mode": "integer", "form": "coefficients"}
    view: View
    mode: int
    form: Indices

    @property
    def value(self) -> int:
        """One more than the number of slices."""
        return len(self.form) + 1


def check_rank_one_locus(argument: RankOneLocus, entries: Entries) -> Touched:
    """Check that the n slices X_i are independent, and that l^2 is a combination of the minors.

    The rank is at least n, as X_1, ..., X_n are independent. Suppose that it is n: then
    X_i = sum_r a_r[i] M_r with n matrices M_r of rank one, and the matrix of the a_r[i] has an
    inverse. So M_r = sum_i x_r[i] X_i, with vectors x_r that are a basis of R^n. The 2 x 2 minors
    of sum_i x[i] X_i are quadratic forms in x, and vanish at every x_r. If l^2 is a combination of
    them, l vanishes at every x_r, so l = 0. Hence the rank is at least n + 1 if l isn't 0. R may be
    any field that contains the rational numbers here.
    """
    entries.require_order_3()
    entries.require_mode(argument.mode)
    tensor, known = view_tensor(argument.view, entries)
    require(known.all(), UNOBSERVED)
    require((np.abs(tensor) < LARGEST_VALUE).all(), "an entry of the view is too large")
    X = np.moveaxis(tensor, argument.mode, 0)
    n, b, c = X.shape
    require(len(argument.form) == n, "each slice must have a coefficient")
    require(argument.form.any(), "the linear form is zero")
    require_at_most("slices of a view", n, MOST_SLICES)
    require_at_most("minors", math.comb(b, 2) * math.comb(c, 2), MOST_MINORS)
    entries.budget.spend(*work_of(X))
    rank = flint.fmpz_mat(n, b * c, X.ravel().tolist()).rank()
    require(rank == n, f"{n} slices span a space of dimension {rank}")
    spanned = is_combination(minors_of(X), argument.form)
    require(spanned, "the square of the linear form is no combination of minors")
    return argument.view.indices


def work_of(X: Indices) -> tuple[int, int]:
    """Estimate the steps and the bytes of a check, for slices X of shape (n, b, c)."""
    n, b, c = X.shape
    largest = int(np.abs(X).max(initial=0))
    longer = (1 + largest.bit_length() // 8) * (1 if largest < EXACT else 3)
    minors, terms = math.comb(b, 2) * math.comb(c, 2), n * (n + 1) // 2
    # the matrices of the slices, and of the minors; exact ranks have no more rows than terms
    steps = steps_of_rank(b * c, n) * 10 * longer
    steps += MINOR * longer * minors * terms + steps_of_rank(minors, terms)
    steps += 2 * (terms + 1) * terms**2 * (10 + terms) * longer
    return steps, MINOR_BYTES * minors * terms


def minors_of(X: Indices) -> Indices:
    """Find 2 x 2 minors of sum_i x_i X_i that are independent, and as many as modulo a prime.

    Parameters
    ----------
    X : ndarray of int64, shape (n, b, c)
        Matrices.

    Returns
    -------
    ndarray of int64 or of Python's integers, shape (rank, n (n + 1) / 2)
        Coefficients of x_i x_j, i <= j, in the order of `numpy.triu_indices`.
    """
    n, b, c = X.shape
    of = X if np.abs(X).max() < EXACT else X.astype(object)
    i, j = np.triu_indices(n)
    rows, columns = np.triu_indices(b, 1), np.triu_indices(c, 1)
    # entries of the four corners, shape (n, number of minors)
    (first, second), (third, fourth) = (
        tuple(of[:, row][:, :, column].reshape(n, -1) for column in columns) for row in rows
    )
    minors = first[i] * fourth[j] - second[i] * third[j]
    minors += (i != j)[:, None] * (first[j] * fourth[i] - second[j] * third[i])
    quadrics = cast("list[list[int]]", minors.T.tolist())
    # each once, without common factors, which may be the prime
    different = sorted({tuple(x // math.gcd(*q) for x in q) for q in quadrics if any(q)})
    flat = [x % PRIME for row in zip(*different, strict=True) for x in row]
    reduced, rank = flint.nmod_mat(len(i) if different else 0, len(different), flat, PRIME).rref()
    column = 0
    chosen: list[tuple[int, ...]] = []
    for row in range(rank):
        # pivots are further and further to the right
        while int(reduced[row, column]) == 0:
            column += 1
        chosen.append(different[column])
    return np.array(chosen, minors.dtype).reshape(-1, len(i))


def is_combination(Q: Indices, form: Indices) -> bool:
    """Return True if the square of a linear form is a combination of independent quadrics."""
    i, j = np.triu_indices(len(form))
    square = (form[i] * form[j] * np.where(i == j, 1, 2)).tolist()
    both = flint.fmpz_mat(len(Q) + 1, len(i), [*Q.ravel().tolist(), *square])
    return both.rank() == len(Q)


KIND = Kind(RankOneLocus, lower=check_rank_one_locus, below_complex=True)
