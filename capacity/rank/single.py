"""Slices with a single entry come off exactly, for the rank and for the effective rank.

Let the slice i of a mode have one nonzero entry, at (a, b) in the other two modes. Then

    rank(T) = 1 + the lowest rank of the other slices, with the fiber (a, b) across them left free.

From below: removing the slice subtracts unknown multiples of it from the others, which changes that
fiber alone. From above: one simple tensor, e_a x e_b x (anything), gives the slice and puts the
fiber right, whatever a decomposition of the rest makes of it. So what is left is a tensor with
unknown fibers, as for the effective rank, and smaller; slices whose known entries are all zero
leave it too. On real data most objects are mentioned once.

For the effective rank the same holds for object slices, whose unobserved fibers are free anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from capacity.rank.certificate import Decomposition, Indices, Substitution, View
from capacity.rank.factor import Term, lifted, vector

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Peeled:
    """A tensor without its slices of a single entry.

    Attributes
    ----------
    shape : tuple of int
        Of the whole.
    order : tuple of int
        The modes of the rest, as modes of the whole; the last is the one that was peeled.
    kept : tuple of three ndarrays of int64
        Indices of the rest, in its modes.
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The rest.
    known : ndarray of bool, shape (n_0, n_1, n_2)
        Its entries that are known; whole fibers of the last mode.
    taken : tuple of (slice, (a, b))
        Slices that came off, in order, and the fibers that they left free.
    fibers : dict
        For each of these fibers the entries of the whole, by index.
    """

    shape: tuple[int, int, int]
    order: tuple[int, int, int]
    kept: tuple[Indices, Indices, Indices]
    tensor: Indices
    known: Mask
    taken: tuple[tuple[int, tuple[int, int]], ...]
    fibers: dict[tuple[int, int], dict[int, int]]

    def raised(self, game: Substitution) -> Substitution:
        """A game on the rest, in its own bases, as one on the whole: what came off goes first."""
        first = [(self.order[2], i) for i, _ in self.taken]
        moves: list[tuple[int, int]] = game.moves.tolist()
        then = [
            (self.order[mode], int(self.kept[mode][game.view.indices[mode][index]]))
            for mode, index in moves
        ]
        k, q, v = self.shape
        view = View((np.arange(k), np.arange(q), np.arange(v)))
        return Substitution(view, np.array([*first, *then], np.int64).reshape(-1, 2))

    def completed(self, terms: Iterable[Term]) -> Decomposition:
        """Terms that give the known entries of the rest, and those that give the whole."""
        found = lifted(list(terms), self.kept)
        given: defaultdict[tuple[int, int], defaultdict[int, Fraction]] = defaultdict(
            lambda: defaultdict(Fraction)
        )
        for (ks, x), (qs, y), (vs, z) in found:
            for a, s in zip(ks, x, strict=True):
                for b, t in zip(qs, y, strict=True):
                    if (a, b) in self.fibers:
                        for i, u in zip(vs, z, strict=True):
                            given[a, b][i] += s * t * u
        for (a, b), entries in self.fibers.items():
            made = given[a, b]
            where = sorted(set(entries) | set(made))
            difference = [entries.get(i, 0) - made.get(i, Fraction(0)) for i in where]
            found.append((vector([a], [1]), vector([b], [1]), vector(where, difference)))
        back: list[Term] = []
        for term in found:
            parts = [term[self.order.index(mode)] for mode in range(3)]
            back.append((parts[0], parts[1], parts[2]))
        return Decomposition(tuple(back))


def peel_singles(tensor: NDArray[np.integer], observed: Mask | None = None) -> Peeled | None:
    """Take off slices with a single known nonzero entry, in the mode that has most of them.

    Parameters
    ----------
    tensor : integer ndarray, shape (n0, n1, n2)
    observed : ndarray of bool, shape (n0, n1), optional
        For the effective rank: the observed fibers. Then only slices of the last mode come off.

    Returns
    -------
    Peeled or None
        None if there is no such slice.
    """
    modes = (0, 1, 2) if observed is None else (2,)
    best: Peeled | None = None
    for mode in modes:
        found = _peeled(tensor, mode, observed)
        if found.taken and (best is None or len(found.taken) > len(best.taken)):
            best = found
    return best


def _peeled(tensor: NDArray[np.integer], mode: int, observed: Mask | None) -> Peeled:
    a, b = (m for m in range(3) if m != mode)
    X = tensor.transpose(a, b, mode).astype(np.int64)
    known = np.ones(X.shape[:2], bool) if observed is None else observed.copy()
    alive = np.ones(X.shape[2], bool)
    taken: list[tuple[int, tuple[int, int]]] = []
    while True:
        entries = (X != 0) & known[:, :, None] & alive
        singles = np.flatnonzero(entries.sum(axis=(0, 1)) == 1)
        if not len(singles):
            break
        for i in singles.tolist():
            row, column = np.argwhere(entries[:, :, i])[0].tolist()
            # another slice may have left this fiber free by now
            if known[row, column]:
                taken.append((i, (row, column)))
                known[row, column] = False
                alive[i] = False
    kept = [np.flatnonzero(entries.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    rest = np.ix_(*kept)
    mask = np.broadcast_to(known[:, :, None], X.shape)[rest]
    fibers = {
        place: {int(i): int(X[(*place, i)]) for i in np.flatnonzero(X[place])} for _, place in taken
    }
    shape = (tensor.shape[0], tensor.shape[1], tensor.shape[2])
    return Peeled(
        shape,
        (a, b, mode),
        (kept[0], kept[1], kept[2]),
        np.where(mask, X[rest], 0),
        mask,
        tuple(taken),
        fibers,
    )
