"""A minor of an unfolding as an argument."""

from __future__ import annotations

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import MODES, Mode
from capacity.rank.exact.ranks import Minor
from capacity.rank.verifier.kinds.unfolding import Unfolding


def as_unfolding(db: Database, mode: Mode, minor: Minor) -> tuple[Unfolding, ...]:
    """The argument that a minor of an unfolding is; none if it is empty."""
    if not len(minor.rows):
        return ()
    width = db.shape[max(m for m in MODES if m != mode)]
    pairs = np.stack(np.divmod(minor.columns, width), axis=1)
    return (Unfolding(mode, minor.rows, pairs, minor.blocks, minor.eliminated, minor.prime),)
