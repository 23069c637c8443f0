"""The number n of objects as a rank, where each known fiber has at most one object.

It is the rank if and only if vectors g whose partial matrix has a completion of rank one span the
space of objects. The verifier (`capacity.rank.verifier.kinds.rank_one_completion`) shows two kinds
of objects at which they don't: those where every g is zero, and classes of objects with equal
entries in every g. A linear form shows either, and proves n + 1.

If there are none of these, a basis is drawn. Let S(v) be the objects that v has in tow, and D(v)
those of them with the same entry as v in every g with support S(v): such g span the vectors that
are constant on these classes, as different characters of a group are independent. So the indicators
of all D(v) are spanned. If w is in D(v), then S(w) is in S(v), and D(w) is in D(v). So the D(v) are
the principal ideals of an order of the objects, for D(v) = D(w) would make v and w a class. Hence
their indicators are a basis. In the same way n completions are a basis if, for each group of
objects that have each other in tow, as many of them have this support, and are independent there.
They are a decomposition of n terms; it may need larger numbers than those that are drawn.

**Completions.** Vectors g of the space of objects have a *completion* if a simple tensor M has the
entry g[v] in the place of each observed fiber of v
(`capacity.rank.verifier.kinds.rank_one_completion`). If n of them are a basis, with dual basis c_r,
then sum_r M_r (x) c_r represents the facts: its fiber there is sum_r g_r[v] c_r, the unit vector of
v.

The completions with one support are +-exp(w), with w in the kernel of a matrix of integers, and the
signs in its kernel modulo 2. Drawn are products of powers of 2, 3 and 5 with small exponents: those
of 2 alone are few points of a curve, and the decompositions by Toom and Cook need n - 2 of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.modular_rank import PRIME
from capacity.exact.types import Indices, Mask, Term, term, vector
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.shares import OF_AN_END
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import CheckBudget, steps_of_rank
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.rank_one_completion import (
    Fibers,
    RankOneCompletion,
    Solutions,
    fibers_of,
    grouped,
    solutions,
    supports,
    work_of,
)

# bases of powers, their largest exponent, and draws for each completion that is wanted
PRIMES, LARGEST_EXPONENT, DRAWS = (2, 3, 5), 24, 24
# vectors of a basis with larger exponents are omitted
LARGEST_POWER = 2**31
# powers modulo a prime, by the number of PRIMES and the exponent
RESIDUES = np.array(
    [[pow(p, w, PRIME) for w in range(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1)] for p in PRIMES]
)
# steps for each coefficient that is drawn, or is written as a fraction, for each product of an
# inverse, and for a round of draws
DRAWN, WRITTEN, PRODUCT, ROUND = 200, 4_000, 100, 150_000


@dataclass(frozen=True)
class Completion:
    """A simple tensor, and its entry at the fibers of each object.

    Attributes
    ----------
    entries : dict of int to Fraction
        Entries that aren't zero, by objects.
    factors : dict of int to Fraction
        Coefficients that aren't zero, by the numbers that `Fibers.places` has.
    """

    entries: dict[int, Fraction]
    factors: dict[int, Fraction]


def ones(fibers: Fibers, support: Mask) -> Completion:
    """Return the completion with ones at a support, and at all indices of its fibers."""
    places = fibers.places[np.append(support, False)[fibers.objects]]
    one = Fraction(1)
    return Completion(
        dict.fromkeys(np.flatnonzero(support).tolist(), one),
        dict.fromkeys(np.unique(places).tolist(), one),
    )


def independent(
    solutions: Solutions, objects: Indices, rng: np.random.Generator, budget: CheckBudget
) -> list[Completion]:
    """Draw completions whose entries at some objects are independent, the simplest first.

    Parameters
    ----------
    solutions : Solutions
        The completions with one support.
    objects : ndarray of int64
        Objects of the support.
    rng : numpy.random.Generator
        Generator of the combinations.
    budget : CheckBudget
        Work that is left.

    Returns
    -------
    list of Completion
        As many as there are objects, or fewer if some were only with larger numbers.

    Raises
    ------
    MemoryBudgetError
        If the work is too much.
    """
    n, n_indices = len(objects), len(solutions.indices)
    mine = n_indices + np.searchsorted(solutions.support, objects)
    # exponents and signs at the indices, then at the objects, of those that were kept
    exponents, negative = _with_objects(
        solutions, np.zeros((0, len(PRIMES) + 1, n_indices), np.int64)
    )
    for drawn in _draws(solutions, n, rng, budget):
        more, minus = _with_objects(solutions, drawn)
        small = np.abs(more).max(axis=(1, 2)) <= LARGEST_EXPONENT
        exponents = np.concatenate([exponents, more[small]])
        negative = np.concatenate([negative, minus[small]])
        budget.spend(steps_of_rank(n, len(exponents)))
        first = _independent_rows(_residues(exponents[:, :, mine], negative[:, mine]))
        exponents, negative = exponents[first], negative[first]
        if len(first) == n:
            break
    budget.spend(WRITTEN * negative.size)
    completions: list[Completion] = []
    for powers, minus in zip(exponents, negative.tolist(), strict=True):
        values = [
            math.prod((Fraction(p) ** w for p, w in zip(PRIMES, of_one, strict=True) if w),
                      start=Fraction(-1 if sign else 1))
            for of_one, sign in zip(powers.T.tolist(), minus, strict=True)
        ]  # fmt: skip
        completions.append(
            Completion(
                dict(zip(solutions.support.tolist(), values[n_indices:], strict=True)),
                dict(zip(solutions.indices.tolist(), values[:n_indices], strict=True)),
            )
        )
    return completions


def _draws(
    solutions: Solutions, wanted: int, rng: np.random.Generator, budget: CheckBudget
) -> Iterator[Indices]:
    """Yield exponents of each of PRIMES, and of -1, at the indices, in rounds of draws."""
    powers = solutions.powers[(np.abs(solutions.powers) < LARGEST_POWER).all(axis=1)].astype(
        np.int64
    )
    n, last = len(powers), 1 + len(powers) + DRAWS * wanted
    size = n + 2 * wanted
    for start in range(0, last, size):
        numbers = np.arange(start, min(start + size, last))
        budget.spend(
            ROUND + DRAWN * len(numbers) * len(solutions.indices) * (n + len(solutions.signs))
        )
        # ones, each vector of the basis, then any combination for one prime or for all of them,
        # or of signs alone
        combinations = rng.integers(-1, 2, (len(numbers), len(PRIMES), n))
        alone = rng.integers(len(PRIMES), size=(len(numbers), 1)) != np.arange(len(PRIMES))
        combinations[alone & (numbers % 4 > 1)[:, None]] = 0
        combinations[(numbers % 4 == 0) | (numbers <= n)] = 0
        basis = numbers[(numbers > 0) & (numbers <= n)]
        combinations[basis - start, 0, basis - 1] = 1
        signs = rng.integers(0, 2, (len(numbers), len(solutions.signs)))
        signs[numbers == 0] = 0
        yield np.concatenate([combinations @ powers, (signs @ solutions.signs)[:, None]], axis=1)


def _with_objects(solutions: Solutions, drawn: Indices) -> tuple[Indices, Indices]:
    """Return exponents of PRIMES, and whether each is negative, at the indices and the objects."""
    both = np.concatenate([drawn, drawn[:, :, solutions.fibers].sum(axis=3)], axis=2)
    return both[:, :-1], both[:, -1] % 2


def _residues(exponents: Indices, negative: Indices) -> Indices:
    """Return products of powers of PRIMES modulo a prime, a row for each draw."""
    found = np.where(negative, PRIME - 1, 1)
    for i, table in enumerate(RESIDUES):
        found = found * table[exponents[:, i] + LARGEST_EXPONENT] % PRIME
    return found


def _independent_rows(M: Indices) -> list[int]:
    """Return the first rows that are independent modulo a prime."""
    n_rows, n_columns = M.shape
    reduced, rank = flint.nmod_mat(n_columns, n_rows, M.T.ravel().tolist(), PRIME).rref()
    echelon = np.array(reduced.tolist(), object).reshape(n_columns, n_rows)[:rank] != 0
    return echelon.argmax(axis=1).tolist()


def terms_of(
    basis: list[Completion], shape: tuple[int, ...], mode: int, budget: CheckBudget
) -> tuple[Term, ...]:
    """Write the sum of simple tensors that n completions yield, whose entries are a basis.

    Parameters
    ----------
    basis : list of Completion
        The completions; none of their numbers is of the mode.
    shape : tuple of int
        Shape of the tensor.
    mode : int
        Mode of the objects.
    budget : CheckBudget
        Work that is left.

    Raises
    ------
    MemoryBudgetError
        If the work is too much.
    """
    n = len(basis)
    budget.spend(WRITTEN * n * sum(shape) + PRODUCT * n**3)
    entries = flint.fmpq_mat(n, n)
    for r, completion in enumerate(basis):
        for v, x in completion.entries.items():
            entries[r, v] = flint.fmpq(x.numerator, x.denominator)
    dual = entries.inv()
    others = [size for m, size in enumerate(shape) if m != mode]
    first: Indices = np.cumsum([0, *others])
    terms: list[Term] = []
    for r, completion in enumerate(basis):
        column = [dual[w, r] for w in range(n)]
        across = [Fraction(int(x.p), int(x.q)) if x else Fraction(0) for x in column]
        sides = [
            vector(
                range(size), [completion.factors.get(int(at) + i, Fraction(0)) for i in range(size)]
            )
            for at, size in zip(first, others, strict=False)
        ]
        terms.append(term(mode, vector(range(n), across), *sides))
    return tuple(terms)


def rank_one_completions(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Prove that the rank exceeds the number of objects, or find as many terms."""
    part = problem.parts[0]
    tensor, known = problem.part(part)
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
                yield (RankOneCompletion(View(part), mode, form),)
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
    for (objects, _), solved_group in zip(groups, solved, strict=True):
        for some in solved_group.classes(objects) if solved_group else []:
            if len(some) > 1:
                form[some[:2]] = 1, -1
                return [], form
    rng = np.random.default_rng(seed)
    basis: list[Completion] = []
    for (objects, support), solved_group in zip(groups, solved, strict=True):
        if solved_group is None:
            basis.append(ones(fibers, support))
        else:
            basis += independent(solved_group, objects, rng, budget)
    return basis, None


RANK_ONE_COMPLETION = Method(
    "rank-one completion",
    rank_one_completions,
    any_order=True,
    effective="yes",
)
