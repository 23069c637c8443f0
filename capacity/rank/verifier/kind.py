"""A kind of argument: its data, a checker for each side, and its additivity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from capacity.rank.types import Indices, Touched
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.facts import Facts
from capacity.rank.verifier.view import Removed

# each ends the check by `capacity.rank.verifier.facts.require` if the argument fails. A checker of
# lower bounds returns the indices that the argument is about, one of upper bounds the rows of the
# facts that it gives
LowerChecker: TypeAlias = Callable[[Any, Facts], Touched]
UpperChecker: TypeAlias = Callable[[Any, Facts], Indices]
RemovalsChecker: TypeAlias = Callable[[Any, Facts, Removed | None], None]


@dataclass(frozen=True, repr=False)
class Kind:
    """A kind of argument, registered by `capacity.rank.verifier.kinds.register_kind`.

    Attributes
    ----------
    argument : type
        A frozen dataclass with the members of `Argument`. Its `forms` determine how it is written
        to JSON and read back, and how its fields are converted before a checker sees it.
    lower : callable, optional
        ``lower(argument, facts)`` returns indices of the three modes. It proves, where necessary
        together with `removals`, that the rank of their sub-tensor, and so that of the facts, is at
        least ``argument.value``; if ``facts.effective``, for every tensor that represents the
        facts.
    upper : callable, optional
        ``upper(argument, facts)`` returns rows of facts. It proves that these facts are a sum of
        ``argument.value`` simple tensors, which is 0 where there is no fact; if
        ``facts.effective``, it need only be 0 where an observed fiber has no fact.
    removals : callable, optional
        ``removals(argument, facts, removed)`` is called after all `lower`, if the argument removes
        slices one by one (the substitution method). `removed` are slices that an unfolding removed
        earlier, or None: multiples of them were subtracted wherever they don't vanish, and those
        entries are unknown (`view_tensor` with ``before=removed``). Whenever a slice is removed,
        the entries of the other slices must be taken as unknown wherever it isn't known to be zero.
    adds : bool
        True if the argument removes as many slices as its value, one by one, each nonzero when its
        turn comes, and the tensor is zero at every triple of removed slices of the three modes. Its
        value then adds to bounds of other components (`capacity.rank.verifier.checker` has the
        proof). A certificate may have at most one argument whose value doesn't add.
    alone : bool
        True if a certificate may have at most one argument of this kind.
    """

    argument: type[Argument]
    lower: LowerChecker | None = None
    upper: UpperChecker | None = None
    removals: RemovalsChecker | None = None
    adds: bool = False
    alone: bool = False

    def __repr__(self) -> str:
        return f"Kind({self.name})"

    @property
    def name(self) -> str:
        """Name of the kind in JSON."""
        return self.argument.kind
