"""Upper bounds of whole components: two slices, diagonal slices, and theorems of their format."""

from __future__ import annotations

import itertools

import numpy as np

from capacity.rank import Diagonalization, MaximalRank, Pencil, View
from tests.second_checker.slices import diagonal, rank_of_two_slices, square_slices
from tests.second_checker.views import component_names, matrix_rank, of_components


def given_whole(
    argument: Pencil | Diagonalization | MaximalRank, T: np.ndarray
) -> np.ndarray | None:
    """The tensor of whole components, if they have the rank that is claimed."""
    if T.ndim != 3:
        return None
    if isinstance(argument, Pencil):
        return _given_by_two_slices(argument, T)
    if any(P is not None for P in argument.view.bases) or len(argument.view.indices) != 3:
        return None
    if isinstance(argument, MaximalRank):
        largest = largest_rank([len(set(of.tolist())) for of in argument.view.indices])
        if largest is None or argument.value < largest:
            return None
        return _spanned(argument.view, 0, T)
    slices = square_slices(argument, T)
    if slices is None or argument.value != slices[0].nrows() or not diagonal(argument, slices):
        return None
    return _spanned(argument.view, argument.mode, T)


def _given_by_two_slices(argument: Pencil, T: np.ndarray) -> np.ndarray | None:
    names = component_names(T)
    if len(set(argument.slices.tolist())) != 2 or argument.mode not in (0, 1, 2):
        return None
    if argument.slices.min() < 0:
        return None
    mine = {names[argument.mode, i] for i in argument.slices.tolist()}
    part = of_components(T, names, mine)
    two = np.moveaxis(part, argument.mode, 0)
    whole = two.reshape(len(two), -1)
    if matrix_rank(whole) > matrix_rank(whole[argument.slices]):
        return None
    return part if argument.value >= rank_of_two_slices(two[argument.slices]) else None


def _spanned(view: View, mode: int, T: np.ndarray) -> np.ndarray | None:
    """The components of a view, if its slices span all theirs in each mode."""
    names = component_names(T)
    if min(int(of.min()) for of in view.indices) < 0:
        return None
    part = of_components(T, names, {names[mode, i] for i in view.indices[mode].tolist()})
    for m in range(3):
        unfolded = np.moveaxis(part, m, 0).reshape(T.shape[m], -1)
        if matrix_rank(unfolded) > matrix_rank(unfolded[view.indices[m]]):
            return None
    return part


def largest_rank(shape: list[int]) -> int | None:
    """The largest rank of real tensors of a format.

    For two slices, by Kronecker and Jaja: blocks L_e have rank e + 1, and a regular part of size N
    at most N + floor(N / 2), for a real quadratic factor or a Jordan block needs two rows. So p
    blocks with E rows have E + p columns and rank, and q transposed ones the same the other way
    round. For 3 x 3 x 3 it is 5 (Kruskal 1989; Sumi, Miyazaki, Sakata 2010).
    """
    if sorted(shape) == [3, 3, 3]:
        return 5
    if min(shape) < 2 or 2 not in shape:
        return None
    m, n = sorted(shape)[1:]
    return max(
        E + p + H + q + N + N // 2
        for E, H, N in itertools.product(range(m + 1), range(n + 1), range(m + 1))
        for p, q in itertools.product(range(E + 1), range(H + 1))
        if E + H + q + N <= m and E + p + H + N <= n and bool(p) == bool(E) and bool(q) == bool(H)
    )
