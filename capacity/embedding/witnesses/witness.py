"""`Witness`: a model whose integer factors do what was asked, which anybody can check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown


@briefly_shown
@dataclass(frozen=True, eq=False)
class Witness:
    """A model with integer factors whose scores do what was asked.

    Attributes
    ----------
    model : str
        Its family.
    dimension : int
        Its dimension d.
    factors : mapping of str to ndarray of int64
        Its factors, by the names in `capacity.embedding.witnesses.forms`.
    """

    model: str
    dimension: int
    factors: Mapping[str, NDArray[np.int64]]
