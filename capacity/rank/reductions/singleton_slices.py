"""Exact removal of slices with a single entry, for the rank and for the effective rank.

Let the slice i of a mode have one nonzero entry, at (a, b) in the other two modes. Then

    rank(T) = 1 + the lowest rank of the other slices, over all values of their fiber (a, b).

Lower bound: removing the slice subtracts unknown multiples of it from the others, which changes
that fiber alone. Upper bound: one simple tensor, e_a x e_b x (any vector), yields the slice and
corrects the fiber, whatever values a decomposition of the other slices has there. So the rest is a
smaller tensor with unknown fibers, as for the effective rank; slices whose known entries are all
zero are dropped from it too. On real data most objects occur in a single fact.

For the effective rank the same holds for object slices, whose unobserved fibers are free anyway.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices, Mask, lifted
from capacity.rank.coefficients import Explicit, coefficients_of
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.kinds.substitution import Substitution
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.tensor.coordinates import distinct


@briefly_shown
@dataclass(frozen=True)
class Peeled:
    """The rest of a tensor without its slices of a single entry, and the slices removed.

    Attributes
    ----------
    order : tuple of int
        Modes of the rest, as modes of the whole; slices of the last one were removed.
    kept : tuple of three ndarrays of int64
        Indices in the whole of the rest's indices, for each of its modes.
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The rest.
    known : ndarray of bool, shape (n_0, n_1, n_2)
        True at its known entries; whole fibers of the last mode are known or unknown.
    taken : tuple of (slice, (a, b))
        Removed slices, in order, with the fibers that they leave unknown.
    fibers : dict
        For each of these fibers, the entries of the whole along it, by index.
    """

    order: tuple[int, int, int]
    kept: tuple[Indices, Indices, Indices]
    tensor: Indices
    known: Mask
    taken: tuple[tuple[int, tuple[int, int]], ...]
    fibers: dict[tuple[int, int], dict[int, int]]

    def minor(self) -> Unfolding:
        """Minor of the unfolding that the removed slices yield: a pivot is alone in its row.

        A slice's entries in fibers of slices removed earlier lie in earlier columns.
        """
        rows = np.array([i for i, _ in self.taken], np.int64)
        columns = np.array([place for _, place in self.taken], np.int64)
        none = np.zeros(0, np.int64)
        return Unfolding(self.order[2], rows, columns, none, none, 2)

    def of_whole(self, found: Finding) -> Finding:
        """Convert an argument about the rest to arguments about the whole.

        Raises
        ------
        InvalidArgumentError
            If there are several arguments, or it is of another kind than substitution,
            decomposition, algebraic decomposition and enclosure.
        """
        argument, *others = found
        if others:
            raise InvalidArgumentError(
                "About a tensor without its slices of a single entry, a method must find one "
                f"argument at a time; got {len(found)} together."
            )
        if isinstance(argument, Substitution):
            return self.minor(), self.raised(argument)
        if isinstance(argument, Enclosure):
            return (self.enclosed(argument),)
        if isinstance(argument, Decomposition | AlgebraicDecomposition):
            return (self.completed(argument),)
        raise InvalidArgumentError(
            "An argument about a tensor without its slices of a single entry must be of the kind "
            f"substitution, (algebraic) decomposition or enclosure; got {argument.kind!r}."
        )

    def raised(self, argument: Substitution) -> Substitution:
        """Convert a substitution in the rest to one in the whole, which follows the minor."""
        removals: list[tuple[int, int]] = argument.removals.tolist()
        turned = np.array([(self.order[mode], i) for mode, i in removals], np.int64).reshape(-1, 2)
        return Substitution(self._view(argument.view), turned)

    def _view(self, view: View) -> View:
        """Convert a view of the rest to one of the whole."""
        indices: list[Indices] = [np.zeros(0, np.int64)] * 3
        bases: list[Indices | None] = [None] * 3
        for mode, whole in enumerate(self.order):
            indices[whole] = self.kept[mode][view.indices[mode]]
            bases[whole] = view.bases[mode]
        return View(tuple(indices), tuple(bases))

    def enclosed(self, found: Enclosure) -> Enclosure:
        """Convert an enclosure for the known entries of the rest to one for the whole."""
        place = [self.order.index(mode) for mode in range(3)]
        a, b, c = (found.factors[m] for m in place)
        numbers = np.split(
            np.arange(sum(f.size for f in found.factors)),
            np.cumsum([f.size for f in found.factors[:2]]),
        )
        turned = np.argsort(np.concatenate([numbers[m] for m in place]))[found.varying]
        free = np.array([fiber for _, fiber in self.taken], np.int64)
        view = self._view(found.view)
        return Enclosure(view, (a, b, c), turned, found.radius, self.order[2], free)

    def completed(self, rest: Explicit) -> Explicit:
        """Complete a decomposition of the known entries of the rest to one of the whole."""
        found = lifted(rest.terms, self.kept)
        coefficients = coefficients_of(rest)
        number, zero = coefficients.number, coefficients.rational(Fraction(0))
        one = coefficients.coefficient(coefficients.rational(Fraction(1)))
        given: defaultdict[tuple[int, int], defaultdict[int, Any]] = defaultdict(
            lambda: defaultdict(lambda: zero)
        )
        for (ks, x), (qs, y), (vs, z) in found:
            for a, s in zip(ks, x, strict=True):
                for b, t in zip(qs, y, strict=True):
                    if (a, b) in self.fibers:
                        for i, u in zip(vs, z, strict=True):
                            given[a, b][i] += number(s) * number(t) * number(u)
        for (a, b), entries in self.fibers.items():
            made = given[a, b]
            where = sorted({*entries, *made})
            difference = {i: entries.get(i, 0) - made.get(i, zero) for i in where}
            found.append((((a,), (one,)), ((b,), (one,)), coefficients.vector(difference)))
        places = [self.order.index(mode) for mode in range(3)]
        return replace(rest, terms=tuple(tuple(term[m] for m in places) for term in found))


def peel_singles(
    places: Indices,
    values: Indices,
    shape: tuple[int, ...],
    *,
    effective: bool = False,
    largest: int = 10**10,
) -> Peeled | None:
    """Remove slices with a single entry, in the mode where most can be removed.

    Parameters
    ----------
    places : ndarray of int64, shape (n, 3)
        Positions of the nonzero entries.
    values : ndarray of int64, shape (n,)
        The entries.
    shape : tuple of int
        Shape of the tensor.
    effective : bool
        True for the effective rank; only slices of the last mode are removed then.
    largest : int
        Largest product of entries and slices for which the rest is made dense.

    Returns
    -------
    Peeled or None
        None if there is no such slice, or the rest is too large.
    """
    found = [_taken(places, shape, mode) for mode in ((2,) if effective else (0, 1, 2))]
    mode, taken, left = max(found, key=lambda one: len(one[1]))
    if not len(taken):
        return None
    a, b = (m for m in range(3) if m != mode)
    order = (a, b, mode)
    k, q, v = (distinct(places[left, m]) for m in order)
    if len(k) * len(q) * len(v) * (len(k) + len(q) + len(v)) > largest:
        return None
    mine: list[Indices] = [places[left, m] for m in order]
    at = [np.searchsorted(of, x) for of, x in zip((k, q, v), mine, strict=True)]
    tensor = np.zeros((len(k), len(q), len(v)), np.int64)
    tensor[tuple(at)] = values[left]
    known = np.full(tensor.shape[:2], not effective)
    if effective:
        seen = np.isin(places[:, a], k) & np.isin(places[:, b], q)
        known[np.searchsorted(k, places[seen, a]), np.searchsorted(q, places[seen, b])] = True
    free = places[taken][:, [a, b]]
    inside = np.isin(free[:, 0], k) & np.isin(free[:, 1], q)
    known[np.searchsorted(k, free[inside, 0]), np.searchsorted(q, free[inside, 1])] = False
    fibers: dict[tuple[int, int], dict[int, int]] = {(x, y): {} for x, y in free.tolist()}
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        if (place[a], place[b]) in fibers:
            fibers[place[a], place[b]][place[mode]] = value
    return Peeled(
        order,
        (k, q, v),
        tensor,
        np.broadcast_to(known[:, :, None], tensor.shape),
        tuple((row[mode], (row[a], row[b])) for row in places[taken].tolist()),
        fibers,
    )


def _taken(places: Indices, shape: tuple[int, ...], mode: int) -> tuple[int, Indices, Indices]:
    """Return the mode, the entries of the removed slices, in order, and the remaining entries."""
    a, b = (m for m in range(3) if m != mode)
    fiber = np.unique(places[:, a] * shape[b] + places[:, b], return_inverse=True)[1].ravel()
    free = np.zeros(int(fiber.max(initial=-1)) + 1, bool)
    taken: list[Indices] = []
    left = np.arange(len(places))
    while len(left):
        counts = np.bincount(places[left, mode], minlength=shape[mode])
        singles = left[counts[places[left, mode]] == 1]
        if not len(singles):
            break
        # of two slices with their single entry in one fiber, the second becomes zero
        singles = singles[np.unique(fiber[singles], return_index=True)[1]]
        taken.append(singles)
        free[fiber[singles]] = True
        left = left[~free[fiber[left]]]
    return mode, np.concatenate([np.zeros(0, np.int64), *taken]), left
