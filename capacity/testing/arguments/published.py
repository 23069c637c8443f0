"""Random arguments that cite a published theorem about a named tensor."""

from __future__ import annotations

import numpy as np

from capacity.rank import Published, View
from capacity.rank.reductions.relabelling import relabelling
from capacity.rank.verifier.procedures.theorems import named, published
from capacity.tensor import from_dense, named_tensor
from capacity.testing.arguments.area import Area
from capacity.testing.choices import Choices


def published_bound(choose: Choices, area: Area) -> Published | None:
    """Choose a component that is a named tensor, in another order and with other signs."""
    for component in choose.order(area.components):
        mine = area.of_components([component])
        if not mine.sure().all():
            continue
        T, sides = mine.part(), [np.array(side, np.int64) for side in mine.indices]
        for name in choose.order(list(named(T.shape))):
            known, found = published(name), relabelling(from_dense(T), named_tensor(name))
            if known is not None and found is not None:
                indices = tuple(side[of] for side, of in zip(sides, found.indices, strict=True))
                bases = tuple(np.diag(signs) for signs in found.signs)
                return Published(name, View(indices, bases), known[1].value)
    return None
