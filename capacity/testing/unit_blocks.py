"""Unit tensors in a drawn area."""

from __future__ import annotations

import numpy as np

from capacity.rank.lower.unit_tensor import unit_tensors
from capacity.rank.problem import Problem
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.unit_tensor import UnitTensor
from capacity.testing.area import Area, seen
from capacity.testing.choices import Choices


def unit_block(choose: Choices, area: Area) -> UnitTensor | None:
    """A unit tensor among some of the facts."""
    small = area.all_known(choose)
    if not all(small.indices):
        return None
    k, q, v = (np.array(of, np.int64) for of in small.indices)
    tensor = seen(area, View((k, q, v)))[0]
    ((found,),) = unit_tensors(Problem(tensor), None)  # type: ignore[arg-type]
    a, b, c = (of[i] for of, i in zip((k, q, v), found.view.indices, strict=True))  # type: ignore[attr-defined]
    return UnitTensor(View((a, b, c))) if len(a) else None
