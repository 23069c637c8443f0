"""The codes of all predicates at once, each alone or given another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.database.codes.arborescence import lightest_parents
from capacity.database.codes.objects import (
    GIVEN,
    Cells,
    bits_alone,
    bits_in_groups,
    bits_of_copies,
)
from capacity.display import briefly_shown

# predicates: each is tried as the parent of each other one
LARGEST_FOREST = 500
# share of the predicates that are expected to have a profile's code
EXPECTED = 7 / 8


def code_profiles(n: int) -> list[NDArray[np.float64]]:
    """Probabilities of n codes: all alike, or one of them most of the time.

    Examples
    --------
    >>> [profile.round(3).tolist() for profile in code_profiles(2)]
    [[0.5, 0.5], [0.875, 0.125], [0.125, 0.875]]
    """
    mostly = np.full((n, n), (1 - EXPECTED) / (n - 1))
    np.fill_diagonal(mostly, EXPECTED)
    return [np.full(n, 1 / n), *mostly]


@briefly_shown
@dataclass(frozen=True)
class Weights:
    """Lengths in bits of each predicate's objects by code.

    Attributes
    ----------
    alone : ndarray of float64, shape (n_predicates, 4)
        By the codes of `ALONE`.
    given : ndarray of float64, shape (n_predicates, n_predicates, 5)
        By the codes of `GIVEN`, of a predicate (second) given another (first), whose name is
        included. The last side is 0 where no predicate is tried as a parent.
    """

    alone: NDArray[np.float64]
    given: NDArray[np.float64]

    @classmethod
    def of(cls, cells: Cells) -> Weights:
        """Compute all of them, in time O(n_predicates n_facts) but for logarithms."""
        n = cells.table.shape[1]
        given = np.empty((n, n, len(GIVEN)) if 1 < n <= LARGEST_FOREST else (n, n, 0))
        for q in range(n if given.size else 0):
            given[:, q, :3] = bits_in_groups(cells, cells.table, q)
            given[:, q, 3:] = bits_of_copies(cells, q)
        # one of n - 1 names; a forest has no circle, which is left unused
        return cls(bits_alone(cells), given + np.log2(max(n - 1, 1)))


@briefly_shown
@dataclass(frozen=True)
class Forest:
    """A parent, a code and its bits for each predicate.

    Attributes
    ----------
    parents : ndarray of int64, shape (n_predicates,)
        -1 for none.
    codes : ndarray of int64, shape (n_predicates,)
        Codes that need no parent first, then those of `GIVEN`.
    bits : ndarray of float64, shape (n_predicates,)
        Length of the objects, and of the choice of the code and the parent.
    """

    parents: NDArray[np.int64]
    codes: NDArray[np.int64]
    bits: NDArray[np.float64]

    @classmethod
    def lightest(
        cls,
        roots: NDArray[np.float64],
        given: NDArray[np.float64],
        shares: NDArray[np.float64],
    ) -> Forest:
        """Choose all three for the probabilities `shares` of the codes, those of roots first."""
        n, n_roots = roots.shape
        alone, after = roots - np.log2(shares[:n_roots]), given - np.log2(shares[n_roots:])
        if not after.size:
            return cls(np.full(n, -1), alone.argmin(axis=1), alone.min(axis=1))
        parents = lightest_parents(alone.min(axis=1), after.min(axis=2))
        # row -1, which roots take, is overwritten
        after = after[parents, np.arange(n)]
        is_root = parents < 0
        codes = np.where(is_root, alone.argmin(axis=1), n_roots + after.argmin(axis=1))
        return cls(parents, codes, np.where(is_root, alone.min(axis=1), after.min(axis=1)))
