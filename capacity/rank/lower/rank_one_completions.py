"""Decide if the rank is the number n of objects, where each known fiber has at most one.

It is if and only if vectors g whose partial matrix has a completion of rank one span the space of
objects. For each set of objects on which g may differ from zero they span the vectors that are
constant on classes (`capacity.rank.verifier.kinds.rank_one_completion`). Completions that span it
are a decomposition of n terms; otherwise a linear form that vanishes at all of them proves n + 1.
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
    NONE,
    Fibers,
    RankOneCompletion,
    classes,
    fibers_of,
    supports,
)
from capacity.tensor.graphs import connected_labels


def rank_one_completions(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decide whether the rank is the number of objects, if that improves a bound."""
    of = problem.parts[0]
    tensor, known = problem.part(of)
    last = tensor.ndim - 1
    for mode in [last] if problem.known is not None else range(tensor.ndim):
        n = tensor.shape[mode]
        fibers = fibers_of(tensor, known, mode) if n >= goal.lower else None
        if fibers is None or len({*fibers.object_of} - {NONE}) < n:
            continue
        budget = CheckBudget(min(OF_AN_END, goal.work))
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
            if n < goal.upper and len(basis) == n:
                yield (Decomposition(terms_of(basis, tensor.shape, mode)),)


def components(fibers: Fibers) -> Iterator[tuple[Fibers, list[int]]]:
    """Yield the fibers of each component, with numbers of their own for objects, and these objects.

    Fibers of zeros are with every component.
    """
    n = fibers.n_objects
    ends = [
        (v, n + i)
        for v, places in zip(fibers.object_of, fibers.indices, strict=True)
        if v != NONE
        for i in places
    ]
    first, second = np.array(ends).T
    labels = connected_labels(first, second, int(second.max()) + 1)[:n]
    for label in np.unique(labels):
        objects: list[int] = np.flatnonzero(labels == label).tolist()
        number = {NONE: NONE} | {v: i for i, v in enumerate(objects)}
        kept = [i for i, v in enumerate(fibers.object_of) if v in number]
        yield (
            Fibers(
                [number[fibers.object_of[i]] for i in kept],
                [fibers.indices[i] for i in kept],
                len(objects),
            ),
            objects,
        )


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
        for one in completions(fibers, support, len(more), rng):
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
