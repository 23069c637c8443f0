"""`Dimension`: what is proved about the dimension that a family of models needs for a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from capacity.display import briefly_shown
from capacity.embedding.estimate import Estimate
from capacity.embedding.model import Reason, Side
from capacity.embedding.proofs import Witness
from capacity.embedding.queries import Task
from capacity.rank.options import Effort
from capacity.rank.verifier.certificate import Certificate
from capacity.visible import visible

WORDS: dict[Task, str] = {
    "exact": "to have the score 1 at every fact of this graph and 0 everywhere else",
    "signs": "to have a score above 0 at every fact of this graph and below 0 everywhere else",
    "ranking": "to rank every fact of this graph above all non-facts, query by query (s, q, ?)",
    "both-sides": "to rank every fact of this graph in the queries (s, q, ?) and (?, q, o)",
}


@briefly_shown
@dataclass(frozen=True, eq=False)
class Dimension:
    """An interval of the least dimension, with its reasons.

    It is about the graph itself, and not about predicting new facts: the least dimension that fits
    a graph needn't be the best one.

    Attributes
    ----------
    model : str
        The family of models.
    task : {'exact', 'signs', 'ranking', 'both-sides'}
        What scores must do.
    shared : bool
        Whether an entity has the same vectors as subject and as object.
    reasons : tuple of Reason
        All bounds, the best first on each side.
    witness : Witness or None
        A model with integer factors that does it; None if none was found or searched.
    estimate : Estimate or None
        An estimate, for CP and rankings alone.
    notes : tuple of str
        What wasn't searched, and why.
    effort, seed : str, int
        Work for ranks, and the seed of all searches.
    facts_sha256, multi : str
        The facts, and the policy for several objects of a pair.
    ranks : tuple of Certificate
        Bounds of the rank and of the effective rank, which reasons rest on.
    """

    model: str
    task: Task
    shared: bool
    reasons: tuple[Reason, ...]
    witness: Witness | None
    estimate: Estimate | None
    notes: tuple[str, ...]
    effort: Effort
    seed: int
    facts_sha256: str
    multi: str
    ranks: tuple[Certificate, ...] = ()

    @cached_property
    def impossible(self) -> Reason | None:
        """The reason why no dimension does, with the relations that stop it; None if one does."""
        return self.best("impossible")

    @property
    def necessary(self) -> int | None:
        """The best lower bound; None if no dimension does."""
        if self.impossible is not None:
            return None
        return max((one.value for one in self.reasons if one.side == "necessary"), default=1)

    @property
    def sufficient(self) -> int | None:
        """The best upper bound; None if no dimension does, or none is known to."""
        if self.impossible is not None:
            return None
        values = [one.value for one in self.reasons if one.side == "sufficient"]
        if self.witness is not None:
            values.append(self.witness.dimension)
        return min(values, default=None)

    def best(self, side: Side) -> Reason | None:
        """Return the reason of the best bound of a side; None if it has none."""
        mine = [one for one in self.reasons if one.side == side]
        of = max if side == "necessary" else min
        return of(mine, key=lambda one: one.value, default=None)

    def __str__(self) -> str:
        if self.impossible is not None:
            return f"{visible(self.model)}: no dimension does"
        if self.sufficient is None:
            return f"{visible(self.model)}: at least {self.necessary}"
        return f"{visible(self.model)}: [{self.necessary}, {self.sufficient}]"
