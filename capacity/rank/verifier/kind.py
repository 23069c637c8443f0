"""A kind of argument: its data, a checker for each side, and its additivity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from capacity.exact.types import Touched
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.entries import Entries, Given
from capacity.rank.verifier.view import Removed

# each ends the check by `capacity.rank.verifier.entries.require` if the argument fails. A checker
# of lower bounds returns the indices that the argument is about, one of upper bounds the values
# that it contributes to the sum
LowerChecker: TypeAlias = Callable[[Any, Entries], Touched]
UpperChecker: TypeAlias = Callable[[Any, Entries], Given]
RemovalsChecker: TypeAlias = Callable[[Any, Entries, Removed | None], None]


@dataclass(frozen=True, repr=False)
class Kind:
    """A kind of argument, registered by `capacity.rank.verifier.kinds.register_kind`.

    Attributes
    ----------
    argument : type
        A frozen dataclass with the members of `Argument`. Its `forms` determine how it is written
        to JSON and read back, and how its fields are converted before a checker sees it.
    lower : callable, optional
        ``lower(argument, entries)`` returns indices of each mode. It proves, where necessary
        together with `removals`, that the rank of their sub-tensor, and so that of the tensor, is
        at least ``argument.value``; if ``entries.effective``, for every tensor that agrees with it
        on the observed fibers.
    upper : callable, optional
        ``upper(argument, entries)`` returns a `Given`: values at some entries of the tensor. It
        proves that a tensor with these entries, and 0 everywhere else, is a sum of
        ``argument.value`` simple tensors; if ``entries.effective``, it need only be 0 in the
        observed fibers. The values of all arguments must add up to the tensor.
    removals : callable, optional
        ``removals(argument, entries, removed)`` is called after all `lower`, if the argument
        removes slices in steps (the substitution method). `removed` are slices that an unfolding
        removed earlier, or None: multiples of them were subtracted wherever they don't vanish, and
        those entries are unknown (`view_tensor` with ``before=removed``). Whenever a slice is
        removed, the entries of the other slices must be taken as unknown wherever it isn't known to
        be zero.
    adds : bool
        True if the argument removes as many slices as its value, in steps: one that is nonzero when
        its turn comes, or several of one mode that are independent then; and the tensor is zero
        wherever slices of all modes are removed. Its value then adds to bounds of other components
        (`capacity.rank.verifier.checker` has the proof). A certificate may have at most one
        argument whose value doesn't add.
    alone : bool
        True if a certificate may have at most one argument of this kind.
    below_complex : bool
        True if `lower` and `removals` prove the bound over every field that contains the rational
        numbers, and not over the real numbers and their subfields alone.
    above_rational : bool
        True if `upper` proves that there is a decomposition over the rational numbers, and not only
        one over the real numbers.
    border : bool
        True if `lower` also proves a bound of the border rank (`capacity.rank.verifier.fields`).
    """

    argument: type[Argument]
    lower: LowerChecker | None = None
    upper: UpperChecker | None = None
    removals: RemovalsChecker | None = None
    adds: bool = False
    alone: bool = False
    below_complex: bool = False
    above_rational: bool = False
    border: bool = False

    def __repr__(self) -> str:
        return f"Kind({self.name})"

    @property
    def name(self) -> str:
        """Name of the kind in JSON."""
        return self.argument.kind
