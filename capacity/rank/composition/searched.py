"""Short decompositions of the parts of a tensor, by methods that find explicit terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from capacity.exact.types import Indices, Term
from capacity.rank.cp.exact_fits import LEAST_SQUARES
from capacity.rank.method import Goal, Method, Problem, findings
from capacity.rank.upper.binary_search import BINARY_FLIPS
from capacity.rank.upper.walk_starts import as_terms, first_decompositions
from capacity.rank.verifier.kinds.decomposition import Decomposition

# methods that search a part, in order
SEARCHES = (BINARY_FLIPS, LEAST_SQUARES)


def first_terms(tensor: Indices, goal: Goal) -> list[Term]:
    """Return a decomposition of a part that needs no search."""
    starts = first_decompositions(tensor, np.random.default_rng(goal.seed), work=goal.work)
    return as_terms(min(starts, key=lambda factors: len(factors[0])))


def shortest_terms(
    tensor: Indices,
    goal: Goal,
    start: list[Term],
    methods: Sequence[Method] = SEARCHES,
) -> list[Term]:
    """Search for a decomposition of a part with few terms, over the rationals.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The part.
    goal : Goal
        The work that it may take, limits and seed; bounds and start are those of the whole.
    start : list of Term
        A decomposition of the part.
    methods : sequence of Method
        Methods that yield terms.

    Returns
    -------
    list of Term
        The shortest decomposition found, which may be `start`.
    """
    problem = Problem(tensor)
    best, lower = start, max(problem.core.tensor.shape)
    for method in methods:
        if len(best) <= lower or (method.limit and not getattr(goal.limits, method.limit)):
            continue
        mine = replace(goal, lower=lower, upper=len(best), start=tuple(best))
        for found in findings(method, problem, mine):
            if isinstance(found[0], Decomposition) and found[0].value < len(best):
                best = list(found[0].terms)
    return best
