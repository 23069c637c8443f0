"""Algebras: whether an n x n x n core is the product of an associative algebra, in some bases."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.algebra import AlderStrassen, n_maximal_ideals


def algebras(problem: Problem, _goal: Goal) -> Iterable[Finding]:
    """Bound the rank of each algebra that a cubic core is, by its dimension and its ideals."""
    core = problem.core
    for one in problem.algebras:
        value = 2 * len(core.tensor) - n_maximal_ideals(one.products)
        yield (AlderStrassen(View(core.chosen), one.mode, one.left, one.right, value),)


ALGEBRA = Method(
    "Alder-Strassen",
    algebras,
    sides=("lower",),
    cost=lambda problem: 60 * max(problem.tensor.shape) ** 5,
    effective="observed",
    cites=True,
)
