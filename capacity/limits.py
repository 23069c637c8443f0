"""Limits of the numbers in configurations: a slip is refused, and not allocated. No torch in here.

A size of 10^9 is a typing error or an attack, and asking for its memory can end the process. So
sizes have a largest value each, and the weights of a model have a budget that is held against
their shapes before any of them is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import TypeAlias

import numpy as np

from capacity.errors import InvalidArgumentError, MemoryBudgetError

# where random numbers start: an integer, or a generator that goes on from where it is
Seed: TypeAlias = int | np.random.Generator

# of dimensions, heads and positions
MAX_SIZE = 2**20
# token ids are int32
MAX_TOKENS = 2**31 - 1
# tables keep seeds in int64
MAX_SEED = 2**63 - 1
# of all weights in float64, in which they are drawn
WEIGHTS_BUDGET = 8 * 2**30


def shown(value: object) -> str:
    """The beginning of a wrong value, for a message.

    Examples
    --------
    >>> shown("x" * 100) == repr("x" * 100)[:60]
    True
    >>> shown(10**5000)
    'a value of type int that is too long to write'
    """
    try:
        return f"{value!r:.60}"
    # Python writes no integers of over 4,300 digits, and no lists in lists in lists without end
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__} that is too long to write"


def in_a_line(error: Exception) -> str:
    """The beginning of what another library says is wrong.

    Examples
    --------
    >>> in_a_line(KeyError("a"))
    "KeyError: 'a'"
    """
    return f"{type(error).__name__}: {' '.join(str(error).split()):.160}"


def require_integer(name: str, value: object, *, least: int = 1, most: int = MAX_SIZE) -> None:
    """Refuse what isn't an integer between two limits, both allowed.

    Raises
    ------
    InvalidArgumentError
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgumentError(
            f"`{name}` must be an integer of at least {least}; got {shown(value)}."
        )
    if value > most:
        raise InvalidArgumentError(f"`{name}` must be at most {most:,}; got {shown(value)}.")


def generator(seed: Seed) -> np.random.Generator:
    """The generator that a seed stands for; a generator stands for itself.

    Raises
    ------
    InvalidArgumentError
        For an integer below 0 or above 2^63 - 1.
    """
    if isinstance(seed, int):
        require_integer("seed", seed, least=0, most=MAX_SEED)
    return np.random.default_rng(seed)


def integer_seed(seed: Seed) -> int:
    """An integer from 0 to 2^32 - 1: the seed itself, or one that a generator draws.

    Raises
    ------
    InvalidArgumentError
        For any other seed.
    """
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**32))
    try:
        number = index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**32:
        raise InvalidArgumentError(
            f"`seed` must be an integer from 0 to 2^32 - 1, or a numpy.random.Generator; got "
            f"{shown(seed)}."
        )
    return number


def require_affordable(shapes: Iterable[tuple[int, ...]]) -> None:
    """Refuse weights that would take more than `WEIGHTS_BUDGET` bytes in float64.

    Raises
    ------
    MemoryBudgetError
    """
    n_bytes = 8 * sum(math.prod(shape) for shape in shapes)
    if n_bytes > WEIGHTS_BUDGET:
        raise MemoryBudgetError(
            f"The weights must take at most {WEIGHTS_BUDGET:,} bytes in float64; they would take "
            f"{n_bytes:,}. Choose smaller sizes."
        )
