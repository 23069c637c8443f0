"""Bounds of a dimension that have no certificate: what the theorems prove, counted again.

The rank and the effective rank are what certificates prove of them, which `capacity.rank.verifier`
has checked, or at least the trivial: a simple tensor for each fact. Nothing is searched, so that no
effort matters; counts and exact ranks come from the code that the search has, too
(`capacity.embedding.graph_counts`), and are made once for all claims about some facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from capacity.embedding.estimate import Estimate, estimate
from capacity.embedding.graph_counts import Counts
from capacity.embedding.models import MODELS
from capacity.embedding.proofs import SignProof
from capacity.embedding.results.result import Dimension
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.entries import Refuted, require

# steps for the sums of a family's bounds, for each subject and relation and for each reason
GROUP, REASON = 20, 20_000
# steps and bytes for a fact that is counted for the estimate
FACT, FACT_BYTES = 150, 100


@dataclass
class Ends:
    """The best ends of ranks that certificates prove, by quantity and side."""

    proved: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def add(self, one: Certificate) -> None:
        """Keep the end of a certificate that is proved, if it is the best by now."""
        best = max if one.side == "lower" else min
        key = one.quantity, one.side
        self.proved[key] = best(one.value, self.proved.get(key, one.value))


@dataclass(frozen=True, eq=False)
class Known(Counts):
    """Counts within a budget, with the ends of ranks that certificates prove.

    Attributes
    ----------
    db, graph : Database, QueryGraph
        The facts.
    ends : Ends
        What is proved of the ranks by now.
    budget : CheckBudget
        Budget of all checks.
    """

    ends: Ends
    budget: CheckBudget

    def spend(self, steps: int, memory: int) -> None:
        """Charge work to the budget, before it is done."""
        self.budget.spend(steps, memory)

    @property
    def rank_lower(self) -> int:
        """The best proved lower bound of the rank; there is a fact."""
        return max(1, self.ends.proved.get(("rank", "lower"), 1))

    @property
    def rank_upper(self) -> int:
        """The best proved upper bound of the rank."""
        n = self.graph.n_facts
        return min(n, self.ends.proved.get(("rank", "upper"), n))

    @property
    def effective_upper(self) -> int:
        """The best proved upper bound of the effective rank, which is at most the rank."""
        rank = self.rank_upper
        return min(rank, self.ends.proved.get(("effective_rank", "upper"), rank))

    @property
    def signs_of_objects(self) -> Sequence[SignProof]:
        """None: a bound by signs has its certificate."""
        return ()

    @property
    def signs_of_subjects(self) -> Sequence[SignProof]:
        """None, as of objects."""
        return ()


def check_counts(claim: Dimension, known: Known) -> None:
    """End the check unless the bounds without a certificate follow from what is known.

    A bound holds if one of the theorems proves as much; they are tried in turn.
    """
    claimed = [one for one in claim.reasons if one.certificate is None]
    known.spend(REASON * (1 + len(claimed)) + GROUP * sum(known.graph.shape[:2]), 0)
    # the strongest of each side
    low = max((one.value for one in claimed if one.side == "necessary"), default=1)
    high = min((one.value for one in claimed if one.side == "sufficient"), default=math.inf)
    least, most = 1, math.inf
    bounds = MODELS[claim.model].bounds(known, claim.task)
    while low > least or high < most:
        given = next(bounds, None)
        if given is None:
            end = f"{low} as necessary" if low > least else f"{high} as sufficient"
            which = "are proved" if claim.ranks else "are proved, of which it carries none"
            raise Refuted(f"the facts don't yield {end}, with the ranks that {which}")
        least = max(least, given.value) if given.side == "necessary" else least
        most = min(most, given.value) if given.side == "sufficient" else most


def check_estimate(claimed: Estimate | None, known: Known) -> None:
    """End the check unless an estimate is what it is claimed to be."""
    if claimed is None:
        return
    known.spend(REASON + FACT * known.graph.n_facts, FACT_BYTES * known.graph.n_facts)
    right = estimate(known)
    same = claimed.dimension == right.dimension and math.isclose(claimed.bits, right.bits)
    require(same, f"the estimate is {right.dimension}, by {right.bits:.1f} bits")
