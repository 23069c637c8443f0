"""The part of a tensor that an argument is about, and the entries known there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices, Mask
from capacity.rank import Argument, Unfolding, View
from capacity.tensor import SparseTensor
from capacity.tensor.structure import component_labels, is_complete
from capacity.testing.choices import Choices

# most entries of a tensor
LARGEST = 2**16
# some indices of each mode
Sides: TypeAlias = tuple[list[int], ...]


@dataclass(frozen=True)
class Area:
    """Some indices of each mode of a tensor.

    Attributes
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, ...)
        The whole tensor T.
    labels : tuple of ndarrays of int64
        Component of each index, by mode; -1 for an index without entries.
    known : ndarray of bool, of the same shape as the tensor
        Entries that an argument may use.
    effective : bool
        True if tensors other than T agree with it on the observed fibers.
    indices : tuple of lists
        The indices, by mode.
    """

    tensor: Indices
    labels: tuple[Indices, ...]
    known: Mask
    effective: bool
    indices: Sides

    @classmethod
    def of(cls, tensor: SparseTensor, quantity: str) -> Area:
        """Take all indices of a tensor.

        Raises
        ------
        InvalidArgumentError
            If the tensor has more than 65,536 entries.
        """
        if math.prod(tensor.shape) > LARGEST:
            raise InvalidArgumentError(
                f"Certificates are drawn for tensors of {LARGEST:,} entries at most; got one of "
                f"shape {tensor.shape}. Draw a smaller one."
            )
        dense = tensor.to_numpy()
        effective = quantity == "effective_rank" and not is_complete(tensor)
        observed = dense.any(axis=-1, keepdims=True)
        known = np.broadcast_to(observed if effective else np.True_, dense.shape)
        labels = [np.full(n, -1, np.int64) for n in tensor.shape]
        for mode, of in enumerate(labels):
            of[tensor.indices[:, mode]] = component_labels(tensor)
        sides = tuple(list(range(n)) for n in tensor.shape)
        return cls(dense, tuple(labels), known, effective, sides)

    @property
    def order(self) -> int:
        """Number of modes."""
        return self.tensor.ndim

    def within(self, sides: Sequence[list[int]]) -> Area:
        """Restrict the area to fewer indices."""
        return replace(self, indices=tuple(sides))

    def of_components(self, components: Iterable[int]) -> Area:
        """Restrict the area to some components."""
        wanted = list(components)
        return self.within(
            [
                [i for i in side if labels[i] in wanted]
                for side, labels in zip(self.indices, self.labels, strict=True)
            ]
        )

    @property
    def components(self) -> list[int]:
        """Labels of its components."""
        return [int(x) for x in np.unique(self.labels[0][self.indices[0]]) if x >= 0]

    def part(self) -> Indices:
        """Sub-tensor of its indices."""
        return self.tensor[np.ix_(*self.indices)]

    def sure(self) -> Mask:
        """Mask of the known entries of its sub-tensor."""
        return self.known[np.ix_(*self.indices)]

    def some(self, choose: Choices, *, most: int | None = None) -> Area:
        """Choose some of its indices, at most `most` in each mode."""
        return self.within([choose.some(side, most=most) for side in self.indices])

    def all_known(self, choose: Choices) -> Area:
        """Choose indices of all modes but the last, all of whose fibers are known.

        No indices are left if no fiber is known.
        """
        if self.sure().all():
            return self
        *sides, last = self.indices
        known = self.known[..., last[0]]
        fibers = np.argwhere(known[np.ix_(*sides)]).tolist()
        if not fibers:
            return self.within([[] for _ in self.indices])
        chosen = [[side[i]] for side, i in zip(sides, choose.one(fibers), strict=True)]
        others = [(m, i) for m, side in enumerate(sides) for i in side if i != chosen[m][0]]
        for mode, i in choose.order(others):
            if known[np.ix_(*chosen[:mode], [i], *chosen[mode + 1 :])].all():
                chosen[mode].append(i)
        return self.within([*map(sorted, chosen), last])

    def after(self, minor: Unfolding, *, by_substitution: bool) -> Area:
        """Area that an unfolding leaves to a later argument: the slices that it removes are gone.

        For the substitution method (`by_substitution`), entries that these slices may have changed
        are unknown. Other arguments need indices where these slices vanish.
        """
        mode, rows = minor.mode, minor.rows.tolist()
        sides = list(self.indices)
        sides[mode] = [i for i in sides[mode] if i not in rows]
        gone = self.tensor.take(rows, axis=mode).any(axis=mode)
        if by_substitution:
            known = self.known & ~np.expand_dims(gone, mode)
            return replace(self, known=known, indices=tuple(sides))
        *some, last = (m for m in range(self.order) if m != mode)
        across = gone[np.ix_(*(sides[m] for m in some))].reshape(-1, gone.shape[-1]).any(axis=0)
        sides[last] = [j for j in sides[last] if not across[j]]
        return self.within(sides)


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


# chooses an argument about an area; None if it finds none
Maker: TypeAlias = Callable[[Choices, Area], Argument | None]
