"""Facts that are searched as small tensors."""

from __future__ import annotations

from dataclasses import dataclass

from capacity.rank.problem import Component, Problem
from capacity.rank.reductions.subtensor import Finding, Part
from capacity.rank.types import Indices

# why a component isn't searched
TOO_LARGE = "too large for the searches of this effort: only bounds that scale"
AS_A_WHOLE = "too large as a whole: only components are searched, one by one"
TOO_MANY = "not searched: more components are open than this effort takes on"


@dataclass(frozen=True)
class Place:
    """Facts of whole components, with their tensor as a problem, or with none.

    Attributes
    ----------
    number : int
        Of the place, in its ledger.
    facts : ndarray of int64
        Rows of ``Database.triples``.
    part : Part or None
    problem : Problem or None
        None for methods that look at facts alone.
    component : Component or None
        For these methods.
    """

    number: int
    facts: Indices
    part: Part | None = None
    problem: Problem | None = None
    component: Component | None = None

    def relocated(self, found: Finding) -> Finding:
        """Arguments that a method found here, as arguments about the database."""
        return found if self.part is None else self.part.relocated(found)
