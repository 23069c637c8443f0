"""Random arguments for upper bounds by pairs of slices."""

from __future__ import annotations

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank import PairedSlices, pencil_rank
from capacity.testing.choices import Choices

# most pairs; in some draws, one entry of this many is omitted
MOST_PAIRS, OMITTED = 3, 3


def paired_slices(
    choose: Choices, tensor: Indices, places: Indices, mine: Mask
) -> PairedSlices | None:
    """Choose entries of pairs of slices.

    Parameters
    ----------
    choose : Choices
        Source of the choices.
    tensor : ndarray of int64, of order 3
        The dense tensor.
    places : ndarray of int64, shape (n_entries, 3)
        Places of its nonzero entries.
    mine : ndarray of bool, of the shape of the tensor
        Places that may be chosen.
    """
    mode = choose.integer(0, 2)
    whole = choose.chance(1, 2)
    slices = choose.order(np.unique(np.argwhere(mine)[:, mode]).tolist())
    label, value = np.full(tensor.shape, -1), 0
    for number in range(choose.integer(1, MOST_PAIRS)):
        # of one slice alone, too
        two = slices[2 * number : 2 * number + choose.one([2, 2, 2, 1])]
        part = np.zeros(tensor.shape, np.int64)
        for place in np.argwhere(mine):
            if place[mode] in two and (whole or not choose.chance(1, OMITTED)):
                part[tuple(place)] = tensor[tuple(place)]
        if part.any():
            both = np.moveaxis(part, mode, 0)[[two[0], two[-1]]]
            both[1] *= len(two) - 1
            label[part != 0] = number
            value += pencil_rank(*both)
    pair = label[tuple(places.T)]
    return PairedSlices(mode, pair, value) if value else None
