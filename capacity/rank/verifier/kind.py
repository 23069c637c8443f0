"""A kind of argument: its data, the checkers of its sides, and how it goes with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from capacity.rank.types import Indices, Touched
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.facts import Facts
from capacity.rank.verifier.view import Removed

# each refuses an argument by `capacity.rank.verifier.facts.require`, or returns the indices that it
# is about, or the rows of the facts that it gives
LowerChecker: TypeAlias = Callable[[Any, Facts], Touched]
UpperChecker: TypeAlias = Callable[[Any, Facts], Indices]
GameChecker: TypeAlias = Callable[[Any, Facts, Removed | None], None]


@dataclass(frozen=True)
class Kind:
    """A kind of argument, registered by `capacity.rank.verifier.kinds.register_kind`.

    Attributes
    ----------
    argument : type
        A frozen dataclass with the members of `Argument`. It goes to JSON and back by its `forms`,
        and its fields are converted by them before a checker sees it.
    lower : callable, optional
        ``lower(argument, facts)`` proves, maybe together with `game`, that the rank of the
        sub-tensor of the indices that it returns, and so that of the facts, is at least
        ``argument.value``. If ``facts.effective``, it proves that of every tensor that represents
        the facts.
    upper : callable, optional
        ``upper(argument, facts)`` proves that the facts it returns the rows of are a sum of
        ``argument.value`` simple tensors, which give 0 where there is no fact, or, if
        ``facts.effective``, where an observed fiber has none.
    game : callable, optional
        ``game(argument, facts, removed)``, called after all `lower`, if the argument removes
        slices one by one. `removed` are slices that an unfolding removed before, or None: multiples
        of them were subtracted wherever they don't vanish, and those entries aren't known any
        more (`view_tensor` with ``before=removed``). With each slice that goes, the entries of
        the others must be taken for unknown wherever it isn't known to be zero.
    adds : bool
        The argument removes as many slices as its value, one by one, each not zero when its turn
        comes, and the tensor is zero at every triple of removed slices of the three modes: so it
        adds to bounds of other components (`capacity.rank.verifier.checker` has the proof). Of
        arguments that don't add, a certificate may have one.
    alone : bool
        A certificate may have one argument of this kind at most.
    """

    argument: type[Argument]
    lower: LowerChecker | None = None
    upper: UpperChecker | None = None
    game: GameChecker | None = None
    adds: bool = False
    alone: bool = False

    @property
    def name(self) -> str:
        """The name of the kind in JSON."""
        return self.argument.kind
