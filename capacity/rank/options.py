"""The question of a bound: its field of numbers, and its budget of work.

Work is counted in steps, so that a machine's speed plays no part. The command line loads this
module before all else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Field: TypeAlias = Literal["Q", "R", "C"]
FIELDS: dict[Field, str] = {
    "Q": "the rational numbers",
    "R": "the real numbers",
    "C": "the complex numbers",
}


Effort: TypeAlias = Literal["quick", "standard", "thorough"]
# the fields of `Limits` that count attempts
Limit: TypeAlias = Literal["orders", "evolved", "bases", "annealing", "walks", "fits"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True)
class Limits:
    """Maximum number of attempts per method and tensor.

    Attributes
    ----------
    orders : int
        Greedy runs of the substitution method, or of merging.
    evolved : int
        Greedy runs of the substitution method on sparse entries.
    bases : int
        Changes of basis for the substitution method.
    annealing : int
        Steps of simulated annealing.
    walks : int
        Steps in the flip graph over F_2, over F_3, and over F_2 with a symmetry, each.
    fits : int
        Numerical fits for each number of terms.
    pencil : int
        Maximum number of entries of a connected block of a pencil; the verifier accepts at most
        2,000.
    completions : int
        Work of rank-one completion on a tensor, in units of about a nanosecond.
    """

    orders: int
    evolved: int
    bases: int
    annealing: int
    walks: int
    fits: int
    pencil: int
    completions: int


@dataclass(frozen=True)
class Budget:
    """Budget of a search, in steps and sizes.

    Attributes
    ----------
    work : int
        Work of each method over all components, in units of about a nanosecond.
    largest : int
        Maximum size of a tensor that is searched: its number of entries times its number of slices.
    problems : int
        Maximum number of different tensors that are searched, the smallest first.
    limits : Limits
        Maximum numbers of attempts per tensor.
    """

    work: int
    largest: int
    problems: int
    limits: Limits


BUDGETS: dict[Effort, Budget] = {
    "quick": Budget(3 * 10**8, 10**7, 300, Limits(8, 0, 0, 0, 0, 0, 500, 10**8)),
    "standard": Budget(
        10**10, 10**9, 3_000, Limits(50, 10_000, 4, 20_000, 10**8, 16, 2_000, 2 * 10**9)
    ),
    "thorough": Budget(
        3 * 10**10,
        10**10,
        30_000,
        Limits(200, 30_000, 12, 100_000, 10**9, 40, 2_000, 2 * 10**9),
    ),
}
