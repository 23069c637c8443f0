"""Ranks modulo the prime 2^31 - 1: lower bounds of the rank over the rationals.

They certify nothing from above. The search uses them to compare matrices; what it then claims is
proved by other means.
"""

from __future__ import annotations

from pathlib import Path

import flint
import numpy as np

from capacity.exact.types import Indices
from capacity.kept_code import pays_to_compile

# sums of products of two residues fit 64 bits
PRIME = 2**31 - 1
# steps of `capacity.kept_code` for an entry that flint reads and eliminates
ENTRY = 3
# with which all of its module is compiled
_KERNEL = (Path(__file__).with_name("compiled_rank.py"), "row_rank")


def rank_modulo(matrix: Indices, *, above: int = 0, enough: int | None = None) -> int:
    """Rank of an integer matrix modulo the prime, as far as it lies between two numbers.

    Parameters
    ----------
    matrix : ndarray of int64, shape (m, n)
        The matrix.
    above : int
        A rank of at most this may be returned as any smaller number.
    enough : int, optional
        A rank of at least this may be returned as any number from this on.

    Returns
    -------
    int
        The rank modulo the prime, or within the limits a number that is no larger.

    Examples
    --------
    >>> rank_modulo(np.array([[1, 2], [2, 4], [0, 2**31 - 1]]))
    1
    """
    m, n = matrix.shape
    if not pays_to_compile(ENTRY * m * n, *_KERNEL):
        return flint.nmod_mat(m, n, (matrix % PRIME).ravel().tolist(), PRIME).rank()
    from capacity.exact.compiled_rank import residues, row_rank

    return int(row_rank(residues(matrix), above, min(m, n) if enough is None else enough))


def ranks_of_differences(matrices: Indices) -> Indices:
    """Ranks modulo the prime of some matrices, and of the differences of any two.

    Parameters
    ----------
    matrices : ndarray of int64, shape (k, m, n)
        The matrices.

    Returns
    -------
    ndarray of int64, shape (k + 1, k + 1)
        At [i, j], for i < j, the rank of matrix j - 1 less matrix i - 1, where matrix -1 is zero;
        0 elsewhere.

    Examples
    --------
    >>> ranks_of_differences(np.array([[[1, 0], [0, 1]], [[1, 0], [0, 2]]])).tolist()
    [[0, 2, 2], [0, 0, 1], [0, 0, 0]]
    """
    k, m, n = matrices.shape
    nodes = np.concatenate([np.zeros_like(matrices[:1]), matrices])
    ranks = np.zeros((k + 1, k + 1), np.int64)
    if pays_to_compile(ENTRY * k * (k + 1) // 2 * m * n, *_KERNEL):
        from capacity.exact.compiled_rank import difference_ranks, residues

        difference_ranks(residues(nodes), ranks)
        return ranks
    for i in range(k):
        for j in range(i + 1, k + 1):
            entries = ((nodes[j] - nodes[i]) % PRIME).ravel().tolist()
            ranks[i, j] = flint.nmod_mat(m, n, entries, PRIME).rank()
    return ranks
