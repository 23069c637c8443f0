"""Lower bound by a published theorem about a named tensor that a sub-tensor is, in other bases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.exact.types import Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.entries import Entries, Refuted, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.theorems import published
from capacity.rank.verifier.view import UNOBSERVED, view_tensor
from capacity.tensor.names import named_tensor


@dataclass(frozen=True, eq=False, repr=False)
class Published(FromBelow):
    """A named tensor, the sub-tensor that is the same, and the bound that a theorem states.

    Attributes
    ----------
    name : str
        The named tensor, such as ``matrices:3x3x3`` (`capacity.tensor.named_tensor`).
    view : View
        Sub-tensor, in other bases if given, that is the named tensor.
    value : int
        The bound.
    """

    kind: ClassVar[str] = "published"
    forms: ClassVar[Forms] = {"name": "name", "view": "view", "value": "integer"}
    name: str
    view: View
    value: int


def check_published(argument: Published, entries: Entries) -> Touched:
    """Check that the view is the named tensor, and that the table of theorems has the bound.

    The rank of the view is at most that of the tensor, whatever the bases are.
    """
    found = published(argument.name)
    if found is None:
        raise Refuted("there is no published theorem about a tensor of this name")
    shape, bound = found
    require(argument.value == bound.value, f"the theorem's bound is {bound.value}")
    tensor, known = view_tensor(argument.view, entries)
    require(known.all(), UNOBSERVED)
    # the shape comes first: a tensor of this name might not fit into memory
    require(tensor.shape == shape, f"the sub-tensor isn't {argument.name}")
    named = named_tensor(argument.name)
    same = np.count_nonzero(tensor) == named.n_entries and np.array_equal(
        tensor[tuple(named.indices.T)], named.values
    )
    require(same, f"the sub-tensor isn't {argument.name}")
    return argument.view.indices


def source_of(argument: Published) -> str | None:
    """Return who proved the theorem; None if there is none."""
    found = published(argument.name)
    return None if found is None else found[1].source


def below_complex(argument: Published) -> bool:
    """Return whether the theorem holds over the complex numbers."""
    found = published(argument.name)
    return found is not None and found[1].complex


KIND = Kind(Published, lower=check_published, below_complex=below_complex, source=source_of)
