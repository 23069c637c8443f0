"""Minors of unfoldings as arguments."""

from __future__ import annotations

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import MODES, Mode
from capacity.rank.exact.ranks import Minor
from capacity.rank.verifier.kinds.unfolding import Unfolding


def as_unfolding(db: Database, mode: Mode, minor: Minor) -> tuple[Unfolding, ...]:
    """Write a nonsingular minor of an unfolding as an argument; none if it is empty.

    Parameters
    ----------
    db : Database
        The database that the unfolding belongs to.
    mode : {0, 1, 2}
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
    width = db.shape[max(m for m in MODES if m != mode)]
    pairs = np.stack(np.divmod(minor.columns, width), axis=1)
    return (Unfolding(mode, minor.rows, pairs, minor.blocks, minor.eliminated, minor.prime),)
