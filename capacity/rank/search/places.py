"""Places of a search: entries with their small tensors."""

from __future__ import annotations

from dataclasses import dataclass

from capacity.exact.types import Indices
from capacity.rank.problem import Component, Problem
from capacity.rank.reductions.subtensor import Finding, Part

# reasons, for explanations, why components or the whole aren't searched
TOO_LARGE = "too large to search at this effort: only bounds that need no search apply"
NOT_DENSE = "too large at this effort for the methods that need a dense tensor"
AS_A_WHOLE = "too large to search as a whole: its components are searched one by one"
TOO_MANY = "not searched: more components are open than this effort searches"


@dataclass(frozen=True)
class Place:
    """Entries of whole components, as a problem for methods of either kind.

    Attributes
    ----------
    number : int
        Number of the place in its ledger.
    rows : ndarray of int64
        Row numbers of the entries.
    part : Part or None
        The entries as a small tensor; None for methods that need none.
    problem : Problem or None
        The problem that this tensor poses; None for methods that need none.
    component : Component or None
        The entries themselves, for methods that need no dense tensor.
    """

    number: int
    rows: Indices
    part: Part | None = None
    problem: Problem | None = None
    component: Component | None = None

    def relocated(self, found: Finding) -> Finding:
        """Translate arguments that a method found here to indices of the whole."""
        return found if self.part is None else self.part.relocated(found)
