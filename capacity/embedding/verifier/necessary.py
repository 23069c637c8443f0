"""Bounds of a dimension counted again, and impossible ones: signs at points, facts of one way.

The proofs are in `capacity.embedding.signs`: points on which rows show all patterns of signs, and
matrices of signs with a small norm. Both are about strict signs, which every task but exact scores
demands: at objects and queries, of scores less a threshold for each row if they are only ranked; at
comparisons of two objects, of differences. Facts without reverses, which no symmetric scores can
rank, are those of `capacity.embedding.one_way`.

The rank and the effective rank are what certificates prove of them, which `capacity.rank.verifier`
has checked, or at least the trivial: a simple tensor for each fact. Nothing is searched, so that no
effort matters; counts and exact ranks come from the code that the search has, too
(`capacity.embedding.graph_counts`), and are made once for all claims about some facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from capacity.embedding.estimate import Estimate, estimate
from capacity.embedding.graph_counts import Counts
from capacity.embedding.models import MODELS
from capacity.embedding.one_way import Obstruction
from capacity.embedding.proofs import Shattered, SignProof
from capacity.embedding.queries import Task
from capacity.embedding.results.result import Dimension
from capacity.embedding.verifier.numbered_facts import LOOKUP, Facts
from capacity.exact.types import Indices
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.entries import Refuted, require

# numbers of an object and of a subject for each dimension
NUMBERS = {"linear": 1, "attention": 1, "CP": 1, "DistMult": 1, "ComplEx": 2, "SimplE": 2,
           "RESCAL": 1, "TuckER": 1}  # fmt: skip
# families without vectors of subjects
ENCODERS = ("linear", "attention")
# steps for a product of integers of matrices, and for a large integer
PRODUCT, LONG_NUMBER = 3, 1_000


def proved_by_signs(
    proof: SignProof, model: str, task: Task, facts: Facts, budget: CheckBudget
) -> int:
    """Return the lower bound that signs prove for a family and a task; end the check if none.

    The numbers of the proof must be within the facts' (`conversion`).
    """
    require(task != "exact", "exact scores aren't bounded by signs here")
    compared = proof.kind == "comparisons"
    require(not compared or model not in ENCODERS, f"{model} has no vectors of subjects")
    m = _dimension(proof, facts, budget)
    if task in ("ranking", "both-sides") and not compared:
        # the thresholds take one
        m -= 1
    return max(1, -(-m // NUMBERS[model]))


def _dimension(proof: SignProof, facts: Facts, budget: CheckBudget) -> int:
    W = _signs(proof, facts, budget)
    if isinstance(proof, Shattered):
        # a pattern and its negation agree relative to their first sign; at most 20 bits each
        seen = np.unique((W * W[:, :1] > 0) @ (1 << np.arange(W.shape[1])))
        require(len(seen) == 2 ** (W.shape[1] - 1), "a pattern of signs is missing")
        return W.shape[1]
    W = W if len(W) <= W.shape[1] else W.T
    short, long = W.shape
    budget.spend(PRODUCT * short**2 * (long + 2 * short) + LONG_NUMBER * short**2)
    A2 = (W @ W.T) @ (W @ W.T)
    A4 = (A2 @ A2).tolist()
    # the 8th power of ||W||^2 is at most these
    largest = min(max(sum(map(abs, row)) for row in A4) ** 2, sum(x * x for row in A4 for x in row))
    d = proof.dimension
    require((d - 1) ** 16 * largest < W.size**8, f"the norm of the signs doesn't prove {d}")
    return d


def _signs(proof: SignProof, facts: Facts, budget: CheckBudget) -> Indices:
    """Return the signs of rows at points, which must all be demanded by the facts."""
    points, rows = proof.points, proof.rows[:, None]
    size = len(rows) * len(points)
    budget.spend(2 * LOOKUP * size, 100 * size)
    if proof.kind == "comparisons":
        relation, first, second = points.T
        one, other = (facts.are_facts(rows, relation, o).astype(np.int64) for o in (first, second))
        W = one - other
    else:
        query, o = (rows, points) if proof.kind == "objects" else (points, rows)
        s, q = facts.queries[query, 0], facts.queries[query, 1]
        W = np.where(facts.are_facts(s, q, o), 1, -1)
    require(W.all(), "no sign is demanded of a row at a point")
    return W


def check_obstruction(one: Obstruction, task: Task, placed: Facts, budget: CheckBudget) -> None:
    """End the check unless facts stop symmetric scores from a task.

    The numbers must be within those of the facts by entities (`conversion`).
    """
    way = np.array(one.entities, np.int64)
    budget.spend(2 * LOOKUP * len(way))
    relation = np.array(one.relation)
    there = placed.are_facts(way[:-1], relation, way[1:])
    back = placed.are_facts(way[1:], relation, way[:-1])
    require((there & ~back).all(), "a step is no fact, or has a reverse")
    if task in ("exact", "signs"):
        require(len(way) >= 2, "there is no one-way fact")
    elif task == "ranking":
        require(len(way) >= 2 and way[0] == way[-1], "the facts are no cycle")
    else:
        require(len(way) >= 3, "the facts are no path of two")


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
