"""Necessary dimensions, and impossible ones, by facts: signs at some points, facts of one way.

The proofs are in `capacity.embedding.signs`: points on which rows show all patterns of signs, and
matrices of signs with a small norm. Both are about strict signs, which every task but exact scores
demands: at objects and queries, of scores less a threshold for each row if they are only ranked; at
comparisons of two objects, of differences. Facts without reverses, which no symmetric scores can
rank, are those of `capacity.embedding.one_way`.
"""

from __future__ import annotations

import numpy as np

from capacity.embedding.one_way import Obstruction
from capacity.embedding.proofs import Shattered, SignProof
from capacity.embedding.queries import Task
from capacity.embedding.verifier.numbered_facts import LOOKUP, Facts
from capacity.exact.types import Indices
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import require

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
