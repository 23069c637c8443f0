"""Quantum states, and multilinear forms of rows, as tensors of any order."""

from __future__ import annotations

import itertools

import numpy as np

from capacity.checks import require_integer
from capacity.tensor.coordinates import LARGEST_ORDER
from capacity.tensor.dense import from_coo
from capacity.tensor.sparse import SparseTensor

# 184,756 entries
LARGEST_DICKE = 20
# 9! entries take 29 MB
LARGEST_DETERMINANT = 9


def w_state(n: int) -> SparseTensor:
    """Return the W state of n qubits: the sum of the n simple tensors with a single 1 among zeros.

    Its rank is n, and its border rank 2.

    Parameters
    ----------
    n : int
        Order.

    Returns
    -------
    SparseTensor, shape (2, ..., 2)
        Ones at the n places with one index 1.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 32.

    References
    ----------
    W. Dür, G. Vidal, J. I. Cirac, Three qubits can be entangled in two inequivalent ways, 2000.

    Examples
    --------
    >>> w_state(3).indices.tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    n = require_integer("n", n, most=LARGEST_ORDER)
    return from_coo(np.eye(n, dtype=np.int64), np.ones(n, np.int64), (2,) * n)


def dicke_state(n: int, k: int) -> SparseTensor:
    """Return the Dicke state of n qubits with k excitations, without its factor of normalisation.

    Parameters
    ----------
    n : int
        Order.
    k : int
        Number of indices 1; with k = 1 it is `w_state`.

    Returns
    -------
    SparseTensor, shape (2, ..., 2)
        Ones at the places with k indices 1.

    Raises
    ------
    InvalidArgumentError
        Unless `n` is an integer from 1 to 20, and `k` one from 1 to `n`.

    References
    ----------
    R. H. Dicke, Coherence in spontaneous radiation processes, Phys. Rev. 93, 1954.

    Examples
    --------
    >>> dicke_state(3, 2).indices.tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    n = require_integer("n", n, most=LARGEST_DICKE)
    k = require_integer("k", k, most=n)
    ones = list(itertools.combinations(range(n), k))
    places = np.zeros((len(ones), n), np.int64)
    np.put_along_axis(places, np.array(ones), 1, axis=1)
    return from_coo(places, np.ones(len(ones), np.int64), (2,) * n)


def ghz_state(n: int, levels: int = 2) -> SparseTensor:
    """Return the GHZ state: the diagonal tensor of ones of order n, whose rank is `levels`.

    Parameters
    ----------
    n : int
        Order.
    levels : int
        Number of indices of each mode, and of ones.

    Returns
    -------
    SparseTensor, shape (levels, ..., levels)
        Ones on the diagonal.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 32, or `levels` isn't one from 1 to 2^20.

    Notes
    -----
    A tensor of order one has rank one, so `levels` is its rank from order two on.

    Examples
    --------
    >>> ghz_state(3).indices.tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    n = require_integer("n", n, most=LARGEST_ORDER)
    levels = require_integer("levels", levels)
    diagonal = np.repeat(np.arange(levels)[:, None], n, axis=1)
    return from_coo(diagonal, np.ones(levels, np.int64), (levels,) * n)


def determinant(n: int) -> SparseTensor:
    """Return the determinant as a multilinear map of n rows, the Levi-Civita tensor.

    Parameters
    ----------
    n : int
        Number of rows, and order.

    Returns
    -------
    SparseTensor, shape (n, ..., n)
        The sign of the permutation at each of the n! places that is one.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 9.

    Examples
    --------
    >>> determinant(2).to_numpy().tolist()
    [[0, 1], [-1, 0]]
    """
    places = _permutations(n)
    signs = np.ones(len(places), np.int64)
    for i, j in itertools.combinations(range(n), 2):
        # the sign is that of the number of pairs in the wrong order
        signs[places[:, i] > places[:, j]] *= -1
    return from_coo(places, signs, (n,) * n)


def permanent(n: int) -> SparseTensor:
    """Return the permanent of an n x n matrix as a multilinear map of its rows.

    Parameters
    ----------
    n : int
        Number of rows, and order.

    Returns
    -------
    SparseTensor, shape (n, ..., n)
        Ones at the n! permutations.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 9.

    Examples
    --------
    >>> permanent(2).to_numpy().tolist()
    [[0, 1], [1, 0]]
    """
    places = _permutations(n)
    return from_coo(places, np.ones(len(places), np.int64), (n,) * n)


def _permutations(n: int) -> np.ndarray:
    n = require_integer("n", n, most=LARGEST_DETERMINANT)
    return np.array(list(itertools.permutations(range(n))), np.int64)
