"""A kind of argument: its data, a checker for each side, its additivity, and where it holds.

A tensor of integers has a rank over the rationals Q, the real numbers R and the complex numbers C,
none of them larger than the one before: a decomposition over a field is one over a larger field. So

* a lower bound over R is one over Q. It is one over C as well if its proof uses no more of R than
  that it is a field that contains Q (`Kind.below_complex`);
* an upper bound over R is one over C. It is one over Q as well if its terms are rational
  (`Kind.above_rational`). One by complex terms holds over C alone (`Kind.above_real`).

The *border rank* over a field is the least r such that the tensor is a limit of tensors of rank r.
It is at most the rank, so an upper bound of the rank is one of it. A lower bound is one of it if it
is the rank of a matrix whose entries are linear in the tensor's, by a factor: where a minor of that
size isn't 0, it isn't 0 nearby (`Kind.border`). The substitution method has no such reason: W has
rank 3 and border rank 2. Nor do bounds of components add: Schönhage's sum of a k x 1 x n and a
1 x m x 1 product of matrices, m = (k - 1)(n - 1), has border rank k n + 1, while different
unfoldings of its summands have the ranks k n and m. So one argument proves a lower bound of the
border rank, or several unfoldings of the same mode, which are parts of one minor.

References
----------
A. Schönhage, Partial and total matrix multiplication, SIAM J. Computing 10, 1981 (border ranks
don't add); P. Bürgisser, M. Clausen, M. A. Shokrollahi, Algebraic Complexity Theory, 1997, chapters
14 and 15; J. M. Landsberg, Tensors: Geometry and Applications, 2012, sections 3.8 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from capacity.exact.types import Touched
from capacity.rank.options import Field
from capacity.rank.verifier.argument import Argument, Side
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
    below_complex : bool or callable
        True if `lower` and `removals` prove the bound over every field that contains the rational
        numbers, and not over the real numbers and their subfields alone; or
        ``below_complex(argument)``, where that depends on the argument.
    above_rational : bool
        True if `upper` proves that there is a decomposition over the rational numbers, and not only
        one over the real numbers.
    above_real : bool
        True if `upper` proves that there is a decomposition over the real numbers, and not only one
        over the complex numbers.
    border : bool
        True if `lower` also proves a bound of the border rank.
    source : callable, optional
        ``source(argument)`` returns who published the theorem that the argument rests on and the
        library doesn't prove. None if each step of the proof is checked.
    border_by_mode : bool
        True if bounds of the border rank by arguments with the same `mode` add.
    """

    argument: type[Argument]
    lower: LowerChecker | None = None
    upper: UpperChecker | None = None
    removals: RemovalsChecker | None = None
    adds: bool = False
    alone: bool = False
    below_complex: bool | Callable[[Any], bool] = False
    above_rational: bool = False
    above_real: bool = True
    border: bool = False
    border_by_mode: bool = False
    source: Callable[[Any], str | None] | None = None

    def __repr__(self) -> str:
        return f"Kind({self.name})"

    @property
    def name(self) -> str:
        """Name of the kind in JSON."""
        return self.argument.kind


def sources_of(arguments: Sequence[Argument], kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Return who published the theorems that arguments rest on, each once."""
    found = (kind.source and kind.source(a) for a, kind in zip(arguments, kinds, strict=True))
    return tuple(dict.fromkeys(source for source in found if source))


def why_not_over(
    arguments: Sequence[Argument], kinds: Sequence[Kind], side: Side, field: Field, *, border: bool
) -> str | None:
    """Return the reason why arguments prove nothing over a field, or of the border rank, if any.

    Parameters
    ----------
    arguments : sequence of Argument
        Arguments that prove a bound of the rank over the real numbers.
    kinds : sequence of Kind
        The registered kind of each.
    side : {'lower', 'upper'}
        Side of the bound.
    field : {'Q', 'R', 'C'}
        The field.
    border : bool
        Whether the border rank is bounded.
    """
    for argument, kind in zip(arguments, kinds, strict=True):
        below = kind.below_complex
        holds = (
            field != "C" or (below(argument) if callable(below) else below)
            if side == "lower"
            else {"Q": kind.above_rational, "R": kind.above_real, "C": True}[field]
        )
        if not holds:
            return f"an argument of the kind {kind.name!r} proves no {side} bound over {field}"
    if not border or side == "upper":
        return None
    limits = [kind.name for kind in kinds if not kind.border]
    if limits:
        return f"an argument of the kind {limits[0]!r} proves no bound of the border rank"
    modes = {getattr(one, "mode", None) if kind.border_by_mode else None
             for one, kind in zip(arguments, kinds, strict=True)}  # fmt: skip
    if len(arguments) > 1 and (len(modes) > 1 or None in modes):
        return "bounds of the border rank don't add, but for unfoldings of one mode"
    return None
