"""Minors of unfoldings as arguments."""

from __future__ import annotations

from capacity.exact.ranks import Minor
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.tensor.structure import places_of


def as_unfolding(shape: tuple[int, ...], mode: int, minor: Minor) -> tuple[Unfolding, ...]:
    """Write a nonsingular minor of an unfolding as an argument; none if it is empty.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor that the unfolding belongs to.
    mode : int
        Mode of the unfolding, whose rows are slices.
    minor : Minor
        Rows and columns, numbered as `unfolding_entries` does.

    Returns
    -------
    tuple of Unfolding
        Of length 1, or 0 for an empty minor.
    """
    if not len(minor.rows):
        return ()
    columns = places_of(minor.columns, [n for m, n in enumerate(shape) if m != mode])
    return (Unfolding(mode, minor.rows, columns, minor.blocks, minor.eliminated, minor.prime),)
