"""How much work an effort is: budgets in steps, so that a seed gives the same on any machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Effort: TypeAlias = Literal["quick", "standard", "thorough"]
# the fields of `Limits` that count tries
Limit: TypeAlias = Literal["games", "bases", "annealing", "flips", "fits"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True)
class Limits:
    """Largest numbers of tries of a method on one tensor.

    Attributes
    ----------
    games, bases, annealing, flips, fits : int
        Greedy games, changes of bases, steps of annealing, steps in the flip graph, and numerical
        fits for each number of terms.
    pencil : int
        Entries of the largest block of two slices; the verifier takes no more than 2,000.
    """

    games: int
    bases: int
    annealing: int
    flips: int
    fits: int
    pencil: int


@dataclass(frozen=True)
class Budget:
    """What an effort may cost, counted in steps: the same on every machine.

    Attributes
    ----------
    work : int
        Of each method, over all components, in units of about a nanosecond.
    largest : int
        Entries times slices of the largest tensor that is searched.
    problems : int
        How many different tensors are searched, the smallest first.
    limits : Limits
    """

    work: int
    largest: int
    problems: int
    limits: Limits


BUDGETS: dict[Effort, Budget] = {
    "quick": Budget(3 * 10**8, 10**7, 300, Limits(8, 0, 0, 0, 0, 500)),
    "standard": Budget(10**10, 10**9, 3_000, Limits(50, 4, 20_000, 10**7, 16, 2_000)),
    "thorough": Budget(3 * 10**10, 10**10, 30_000, Limits(200, 12, 100_000, 3 * 10**7, 40, 2_000)),
}
