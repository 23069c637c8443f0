"""The part of a database's tensor that an argument is about, and the entries known there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.rank import (
    Unfolding,
    View,
)
from capacity.rank.types import Indices, Mask
from capacity.tensor.structure import component_labels, is_complete
from capacity.testing.choices import Choices

# most entries of a tensor
LARGEST = 2**16
Sides: TypeAlias = tuple[list[int], list[int], list[int]]


@dataclass(frozen=True)
class Area:
    """Some indices of each mode of a database's tensor.

    Attributes
    ----------
    tensor : ndarray of int64, shape (n_subjects, n_predicates, n_objects)
        The whole tensor D.
    labels : tuple of three ndarrays of int64
        Component of each index.
    known : ndarray of bool, of the same shape as the tensor
        Entries that an argument may use.
    effective : bool
        True if tensors other than D represent the facts.
    indices : tuple of three lists
        The indices, by mode.
    """

    tensor: Indices
    labels: tuple[Indices, Indices, Indices]
    known: Mask
    effective: bool
    indices: Sides

    @classmethod
    def of(cls, db: Database, quantity: str) -> Area:
        """Take all indices of a database.

        Raises
        ------
        InvalidArgumentError
            If the tensor has more than 65,536 entries.
        """
        if np.prod([float(n) for n in db.shape]) > LARGEST:
            raise InvalidArgumentError(
                f"Certificates are drawn for tensors of {LARGEST:,} entries at most; got one of "
                f"shape {db.shape}. Draw a smaller database."
            )
        tensor = db.to_numpy().astype(np.int64)
        effective = quantity == "effective_rank" and not is_complete(db.tensor())
        observed = tensor.any(axis=2, keepdims=True)
        known = np.broadcast_to(observed if effective else np.True_, tensor.shape)
        labels = [np.zeros(n, np.int64) for n in db.shape]
        for mode, of in enumerate(labels):
            of[db.triples[:, mode]] = component_labels(db.tensor())
        k, q, v = (list(range(n)) for n in db.shape)
        return cls(tensor, (labels[0], labels[1], labels[2]), known, effective, (k, q, v))

    def within(self, sides: Sides) -> Area:
        """Restrict the area to fewer indices."""
        return replace(self, indices=sides)

    def of_components(self, components: Iterable[int]) -> Area:
        """Restrict the area to some components."""
        wanted = list(components)
        k, q, v = (
            [i for i in side if labels[i] in wanted]
            for side, labels in zip(self.indices, self.labels, strict=True)
        )
        return self.within((k, q, v))

    @property
    def components(self) -> list[int]:
        """Labels of its components."""
        return np.unique(self.labels[0][self.indices[0]]).tolist()

    def part(self) -> Indices:
        """Sub-tensor of its indices."""
        return self.tensor[np.ix_(*self.indices)]

    def sure(self) -> Mask:
        """Mask of the known entries of its sub-tensor."""
        return self.known[np.ix_(*self.indices)]

    def some(self, choose: Choices, *, most: int | None = None) -> Area:
        """Choose some of its indices, at most `most` in each mode."""
        k, q, v = (choose.some(side, most=most) for side in self.indices)
        return self.within((k, q, v))

    def all_known(self, choose: Choices) -> Area:
        """Choose subjects and predicates all of whose pairs are known; empty if no pair is."""
        if self.sure().all():
            return self
        sure = self.known[:, :, self.indices[2][0]]
        pairs = [(k, q) for k in self.indices[0] for q in self.indices[1] if sure[k, q]]
        if not pairs:
            return self.within(([], [], []))
        k, q = choose.one(pairs)
        subjects, predicates = [k], [q]
        modes = [(0, i) for i in self.indices[0] if i != k]
        modes += [(1, i) for i in self.indices[1] if i != q]
        for mode, i in choose.order(modes):
            if mode == 0 and sure[i, predicates].all():
                subjects.append(i)
            elif mode == 1 and sure[subjects, i].all():
                predicates.append(i)
        return self.within((sorted(subjects), sorted(predicates), self.indices[2]))

    def after(self, minor: Unfolding, *, by_substitution: bool) -> Area:
        """Area that an unfolding leaves to a later argument: the slices that it removes are gone.

        For the substitution method (`by_substitution`), entries that these slices may have changed
        are unknown. Other arguments need indices where these slices vanish.
        """
        mode, rows = minor.mode, minor.rows.tolist()
        sides = [list(side) for side in self.indices]
        sides[mode] = [i for i in sides[mode] if i not in rows]
        gone = self.tensor.take(rows, axis=mode).any(axis=mode)
        if by_substitution:
            known = self.known & ~np.expand_dims(gone, mode)
            return replace(self, known=known, indices=(sides[0], sides[1], sides[2]))
        a, b = (m for m in range(3) if m != mode)
        sides[b] = [j for j in sides[b] if not gone[sides[a], j].any()]
        return self.within((sides[0], sides[1], sides[2]))


def seen(area: Area, view: View) -> tuple[Indices, Mask]:
    """Tensor of a view, and the mask of its known entries.

    In another basis an entry is known if all entries that it combines are.
    """
    place = np.ix_(*view.indices)
    tensor, unknown = area.tensor[place], (~area.known[place]).astype(np.int64)
    for mode, P in enumerate(view.bases):
        if P is not None:
            tensor = np.moveaxis(np.tensordot(P, tensor, axes=(1, mode)), 0, mode)
            hides = np.tensordot((P != 0).astype(np.int64), unknown, axes=(1, mode))
            unknown = np.moveaxis(hides, 0, mode)
    return tensor, unknown == 0
