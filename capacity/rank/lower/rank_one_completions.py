"""The number n of objects as a rank, where each known fiber has at most one object.

It is the rank if and only if vectors g whose partial matrix has a completion of rank one span the
space of objects. The verifier (`capacity.rank.verifier.kinds.rank_one_completion`) shows two kinds
of objects at which they don't: those where every g is zero, and classes of objects with equal
entries in every g. A linear form tells either, and proves n + 1.

If there are none of these, a basis is drawn. Let S(v) be the objects that v has in tow, and D(v)
those of them with the same entry as v in every g with support S(v): such g span the vectors that
are constant on these classes, as different characters of a group are independent. So the indicators
of all D(v) are spanned. If w is in D(v), then S(w) is in S(v), and D(w) is in D(v). So the D(v) are
the principal ideals of an order of the objects, for D(v) = D(w) would make v and w a class. Hence
their indicators are a basis. In the same way n completions are a basis if, for each group of
objects that have each other in tow, as many of them have this support, and are independent there.
They are a decomposition of n terms; it may need larger numbers than those that are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.types import Indices
from capacity.rank.lower.completions import Completion, independent, ones, terms_of
from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.shares import OF_AN_END
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.rank_one_completion import (
    Fibers,
    RankOneCompletion,
    fibers_of,
    grouped,
    solutions,
    supports,
    work_of,
)


def rank_one_completions(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Prove that the rank exceeds the number of objects, or find as many terms."""
    of = problem.parts[0]
    tensor, known = problem.part(of)
    last = tensor.ndim - 1
    for mode in [last] if problem.known is not None else range(tensor.ndim):
        n = tensor.shape[mode]
        # either end can move only if n is between them
        if not goal.lower <= n < goal.upper:
            continue
        budget = CheckBudget(min(OF_AN_END, goal.work, goal.limits.completions))
        try:
            budget.spend(*work_of(tensor.shape, mode))
            fibers = fibers_of(tensor, known, mode)
            if fibers is None or not fibers.complete:
                continue
            basis, form = spanning(fibers, budget, seed=goal.seed)
            if form is not None:
                yield (RankOneCompletion(View(of), mode, form),)
            elif len(basis) == n:
                yield (Decomposition(terms_of(basis, tensor.shape, mode, budget)),)
        except MemoryBudgetError:
            continue


def spanning(
    fibers: Fibers, budget: CheckBudget, *, seed: int = 0
) -> tuple[list[Completion], Indices | None]:
    """Find completions that span the space of objects, or a form that vanishes at all of them.

    Parameters
    ----------
    fibers : Fibers
        The known fibers, at least one of each object.
    budget : CheckBudget
        Work that is left.
    seed : int
        Seed of the completions that are drawn.

    Returns
    -------
    list of Completion
        Completions whose entries are independent. They are fewer than the objects if some were only
        with larger numbers, and none if there is a form.
    ndarray of int64, shape (n_objects,), or None
        Coefficients of the form; None if there is none but zero.

    Raises
    ------
    MemoryBudgetError
        If the work is too much.
    """
    towed = supports(fibers, budget)
    form = np.zeros(fibers.n_objects, np.int64)
    zero = np.flatnonzero(~towed.diagonal())
    if len(zero):
        form[zero[0]] = 1
        return [], form
    groups = [(objects, towed[objects[0]]) for objects in grouped(towed)]
    solved = [
        solutions(fibers, support, budget) if len(objects) > 1 else None
        for objects, support in groups
    ]
    for (objects, _), of in zip(groups, solved, strict=True):
        for some in of.classes(objects) if of else []:
            if len(some) > 1:
                form[some[:2]] = 1, -1
                return [], form
    rng = np.random.default_rng(seed)
    basis: list[Completion] = []
    for (objects, support), of in zip(groups, solved, strict=True):
        if of is None:
            basis.append(ones(fibers, support))
        else:
            basis += independent(of, objects, rng, budget)
    return basis, None


RANK_ONE_COMPLETION = Method(
    "rank-one completion",
    rank_one_completions,
    any_order=True,
    effective="yes",
)
