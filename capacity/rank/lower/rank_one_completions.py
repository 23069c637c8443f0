"""The number n of objects as a rank, where each known fiber has at most one object.

It is the rank if and only if vectors g whose partial matrix has a completion of rank one span the
space of objects. For each set of objects on which g may differ from zero they span the vectors that
are constant on classes (`capacity.rank.verifier.kinds.rank_one_completion`). If all of them span
less, a linear form that vanishes there proves n + 1. Otherwise a basis of completions is drawn, and
is a decomposition of n terms; it may need larger numbers than those that are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import flint
import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.rank.lower.completions import Completion, completions, terms_of
from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.shares import OF_AN_END
from capacity.rank.types import Indices
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.rank_one_completion import (
    Fibers,
    RankOneCompletion,
    classes,
    fibers_of,
    supports,
    work_of,
)
from capacity.tensor.graphs import connected_labels


def rank_one_completions(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Prove that the rank exceeds the number of objects, or find as many terms."""
    of = problem.parts[0]
    tensor, known = problem.part(of)
    last = tensor.ndim - 1
    for mode in [last] if problem.known is not None else range(tensor.ndim):
        n = tensor.shape[mode]
        budget = CheckBudget(min(OF_AN_END, goal.work))
        try:
            # either end can move only if n is between them
            if not goal.lower <= n < goal.upper:
                continue
            budget.spend(*work_of(tensor.shape, mode))
        except MemoryBudgetError:
            continue
        fibers = fibers_of(tensor, known, mode)
        if fibers is None or not all(fibers.of_object):
            continue
        parts = list(components(fibers))
        basis: list[Completion] = []
        for part, objects in parts:
            try:
                found, form = spanning(part, budget, seed=goal.seed)
            except MemoryBudgetError:
                break
            if form is not None:
                # of several components this is a bound of one
                if len(parts) == 1:
                    yield (RankOneCompletion(View(of), mode, form),)
                break
            basis += [_among(one, objects, n) for one in found]
        else:
            if len(basis) == n:
                yield (Decomposition(terms_of(basis, tensor.shape, mode)),)


def components(fibers: Fibers) -> Iterator[tuple[Fibers, list[int]]]:
    """Yield the fibers of each component, with numbers of their own for objects, and these objects.

    Fibers of zeros are with every component.
    """
    n = fibers.n_objects
    ends = [
        (v, n + index) for v, of in enumerate(fibers.of_object) for places in of for index in places
    ]
    first, second = np.array(ends).T
    labels = connected_labels(first, second, int(second.max()) + 1)[:n]
    for label in np.unique(labels):
        objects: list[int] = np.flatnonzero(labels == label).tolist()
        yield Fibers([fibers.of_object[v] for v in objects], fibers.zeros), objects


def spanning(
    fibers: Fibers, budget: CheckBudget, *, seed: int = 0
) -> tuple[list[Completion], Indices | None]:
    """Find completions that span the space of objects, or a form that vanishes at all of them.

    Parameters
    ----------
    fibers : Fibers
        The known fibers.
    budget : CheckBudget
        Work that the verifier may take for the form.
    seed : int
        Seed of the completions that are drawn.

    Returns
    -------
    list of Completion
        Completions whose entries are independent. They are fewer than the objects if some were only
        with larger numbers.
    ndarray of int64, shape (n_objects,), or None
        Coefficients of the form; None if there is none but zero.

    Raises
    ------
    MemoryBudgetError
        If the work is too much.
    """
    n, rng = fibers.n_objects, np.random.default_rng(seed)
    spanned = flint.fmpq_mat(0, n)
    basis: list[Completion] = []
    found = flint.fmpq_mat(0, n)
    for support in supports(fibers, budget):
        more = [
            [Fraction(v in some) for v in range(n)] for some in classes(fibers, support, budget)
        ]
        before = spanned.nrows()
        spanned = _joined(spanned, more)
        if spanned.nrows() == before:
            continue
        for one in completions(fibers, support, len(more), rng, budget):
            wider = _joined(found, [one.entries])
            if wider.nrows() > found.nrows():
                found, basis = wider, [*basis, one]
            if found.nrows() == spanned.nrows():
                break
        if spanned.nrows() == n:
            return basis, None
    return basis, _vanishing(spanned)


def _joined(reduced: flint.fmpq_mat, rows: list[list[Fraction]]) -> flint.fmpq_mat:
    """Reduce rows of a reduced matrix together with others, without rows of zeros."""
    n = reduced.ncols()
    flat = [*reduced.entries(), *(flint.fmpq(x.numerator, x.denominator) for r in rows for x in r)]
    whole, rank = flint.fmpq_mat(reduced.nrows() + len(rows), n, flat).rref()
    return flint.fmpq_mat(rank, n, whole.entries()[: rank * n])


def _vanishing(reduced: flint.fmpq_mat) -> Indices | None:
    """Find an integer form that vanishes at the rows of a reduced matrix, which lacks a pivot."""
    n, rows = reduced.ncols(), reduced.tolist()
    pivots = [next(i for i, x in enumerate(row) if x != 0) for row in rows]
    free = next(i for i in range(n) if i not in pivots)
    values = {pivot: -row[free] for pivot, row in zip(pivots, rows, strict=True)}
    common = math.lcm(*(int(x.q) for x in values.values()))
    form = np.zeros(n, np.int64)
    form[free] = common
    for pivot, x in values.items():
        form[pivot] = int(x * common)
    return form


def _among(one: Completion, objects: list[int], n: int) -> Completion:
    """Return a completion of a component as one of the whole."""
    entries = [Fraction(0)] * n
    for v, x in zip(objects, one.entries, strict=True):
        entries[v] = x
    return Completion(entries, one.factors)


RANK_ONE_COMPLETION = Method(
    "rank-one completion",
    rank_one_completions,
    any_order=True,
    effective="yes",
)
