"""The size of a unit tensor among the facts, from below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.rank.types import Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.facts import Facts, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import UNOBSERVED, view_tensor


@dataclass(frozen=True, eq=False)
class UnitTensor(FromBelow):
    """A sub-tensor of n x n x n that is the unit tensor, as its indices stand.

    Attributes
    ----------
    view : View
    """

    kind: ClassVar[str] = "unit block"
    forms: ClassVar[Forms] = {"view": "view"}
    view: View

    @property
    def value(self) -> int:
        """The size n."""
        return len(self.view.indices[0])


def check_unit_tensor(argument: UnitTensor, facts: Facts) -> Touched:
    """rank(X) >= n if X is the unit tensor: its unfoldings are n different unit vectors."""
    tensor, known = view_tensor(argument.view, facts)
    require(known.all(), UNOBSERVED)
    n = argument.value
    require(tensor.shape == (n, n, n), "the sub-tensor must be n x n x n")
    i = np.arange(n)
    require((tensor[i, i, i] == 1).all(), "an entry of the diagonal isn't 1")
    require(np.count_nonzero(tensor) == n, "an entry beside the diagonal isn't 0")
    return argument.view.indices


KIND = Kind(UnitTensor, lower=check_unit_tensor)
