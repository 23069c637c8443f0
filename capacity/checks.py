"""Checks of arguments: sizes, seeds and choices by name are refused with what must hold.

A size of 10^9 is a typing error or an attack, and allocating its memory can end the process. So
every size has a maximum, and the shapes of a model's weights are compared with a memory budget
before any weight is made. A choice that there isn't is refused with the nearest one. This module
needs no torch.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from operator import index
from typing import Any, TypeAlias, TypeVar

import numpy as np

from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError, MemoryBudgetError
from capacity.visible import visible

# seed of random numbers: an integer, or a generator, which is used in its present state
Seed: TypeAlias = int | np.random.Generator

# characters of one value in a message
SHOWN = 60
# maximum of dimensions, heads and positions
MAX_SIZE = 2**20
# token ids are int32
MAX_TOKENS = 2**31 - 1
# tables keep seeds in int64
MAX_SEED = 2**63 - 1
# bytes of all weights in float64, in which they are drawn
WEIGHTS_BUDGET = 8 * 2**30


def shown(value: object) -> str:
    """Beginning of the repr of a wrong value, for a message.

    Examples
    --------
    >>> shown("x" * 100)[-6:], len(shown("x" * 100))
    ('xxx...', 60)
    >>> shown(10**5000)
    'a value of type int that is too long to write'
    """
    return cut(written(value))


def written(value: object) -> str:
    """Return the repr of a value, or a sentence if Python doesn't write it.

    Examples
    --------
    >>> written([1, 2])
    '[1, 2]'
    """
    try:
        return repr(value)
    # Python writes no integers of over 4,300 digits, and no lists in lists in lists without end
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__} that is too long to write"


def cut(text: str) -> str:
    """Shorten a text, as it is shown (`capacity.visible`), to at most 60 characters.

    Examples
    --------
    >>> cut("abc"), len(cut("abc" * 60))
    ('abc', 60)
    """
    # escapes are longer than what they stand for
    text = visible(text[: SHOWN + 1])
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def in_a_line(error: Exception) -> str:
    """Type and beginning of an error of another library, in one line.

    Examples
    --------
    >>> in_a_line(KeyError("a"))
    "KeyError: 'a'"
    """
    return visible(f"{type(error).__name__}: {' '.join(str(error).split()):.160}")


def megabytes(n_bytes: int) -> str:
    """Write a number of bytes in MB, or in GB.

    Examples
    --------
    >>> megabytes(512 * 10**6), megabytes(12 * 10**9)
    ('512 MB', '12 GB')
    """
    giga, mega = n_bytes / 1e9, n_bytes / 1e6
    return f"{giga:.3g} GB" if giga >= 1 else f"{mega:.0f} MB"


def require_integer(name: str, value: object, *, least: int = 1, most: int = MAX_SIZE) -> int:
    """Return an integer, such as one of numpy, as an int; refuse any other, and other values.

    Raises
    ------
    InvalidArgumentError
        With the name, the limits, which are both included, and the value.

    Examples
    --------
    >>> require_integer("d_model", np.int64(4))
    4
    """
    try:
        number = least - 1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise InvalidArgumentError(
            f"`{name}` must be an integer of at least {least}; got {shown(value)}."
        )
    if number > most:
        raise InvalidArgumentError(f"`{name}` must be at most {most:,}; got {shown(value)}.")
    return number


def require_seconds(name: str, value: object) -> float:
    """Return a positive number of seconds, at most a year, as a float.

    Raises
    ------
    InvalidArgumentError
        For any other value.

    Examples
    --------
    >>> require_seconds("timeout", 5)
    5.0
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # threads wait no longer than this, and NaN compares with nothing
    if not (number and 0 < value <= 366 * 86400):  # type: ignore[operator]
        raise InvalidArgumentError(
            f"`{name}` must be a positive number of seconds; got {shown(value)}."
        )
    return float(value)  # type: ignore[arg-type]


def require_bool(name: str, value: object) -> None:
    """Refuse what is neither True nor False.

    Raises
    ------
    InvalidArgumentError
        With the name and the value.
    """
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"`{name}` must be a bool; got {shown(value)}.")


def generator(seed: Seed) -> np.random.Generator:
    """Return the generator that a seed denotes; a generator is its own.

    Raises
    ------
    InvalidArgumentError
        For anything but a generator and an integer from 0 to 2^63 - 1.

    Examples
    --------
    >>> int(generator(0).integers(10)), generator(np.random.default_rng(0)) is None
    (8, False)
    """
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(_whole_seed(seed))


def integer_seed(seed: Seed) -> int:
    """Return an integer below 2^32 for a seed: itself, or one that a larger seed determines.

    A generator draws one.

    Raises
    ------
    InvalidArgumentError
        For anything but a generator and an integer from 0 to 2^63 - 1.

    Examples
    --------
    >>> integer_seed(3)
    3
    """
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**32))
    number = _whole_seed(seed)
    if number < 2**32:
        return number
    return int(np.random.SeedSequence(number).generate_state(1)[0])


def _whole_seed(seed: object) -> int:
    """Return a whole number as an int, and refuse any other seed."""
    try:
        number = -1 if isinstance(seed, bool) else index(seed)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_SEED:
        raise InvalidArgumentError(
            "`seed` must be an integer from 0 to 2^63 - 1, or a numpy.random.Generator; got "
            f"{shown(seed)}."
        )
    return number


def require_affordable(shapes: Iterable[tuple[int, ...]]) -> None:
    """Refuse weights that would take more than `WEIGHTS_BUDGET` bytes in float64.

    Raises
    ------
    MemoryBudgetError
        With the number of bytes.
    """
    n_bytes = 8 * sum(math.prod(shape) for shape in shapes)
    if n_bytes > WEIGHTS_BUDGET:
        raise MemoryBudgetError(
            f"The weights must take at most {WEIGHTS_BUDGET:,} bytes in float64; they would take "
            f"{n_bytes:,}. Choose smaller sizes."
        )


_Class = TypeVar("_Class", bound=type[Any])


def nearest(value: object, choices: Iterable[str], *, most: int = 1) -> str:
    """Return a hint with the choices nearest to a wrong value, one by default; empty if none is.

    Examples
    --------
    >>> nearest("quik", ["quick", "standard"])
    ' Did you mean `quick`?'
    >>> nearest("cp", ["CP", "SimplE"])
    ' Did you mean `CP`?'
    >>> nearest("lr", ["learning_rate", "epochs"])
    ' Did you mean `learning_rate`?'
    >>> nearest("label", ["labels", "lable", "type"], most=2)
    ' Did you mean `labels` or `lable`?'
    >>> nearest("kozul", ["pencil", "Koszul flattening"])
    ' Did you mean `Koszul flattening`?'
    """
    given, names = str(value)[:60], list(choices)
    near = difflib.get_close_matches(given, names, n=most, cutoff=0.7)
    if not near:
        small = {name.lower(): name for name in names}
        alike = difflib.get_close_matches(given.lower(), small, n=most, cutoff=0.7)
        near = [small[one] for one in alike]
    if not near:
        # a word of a name of several
        words = {word.lower(): name for name in reversed(names) for word in re.split(r"\W", name)}
        alike = difflib.get_close_matches(given.lower(), words, n=most, cutoff=0.7)
        near = list(dict.fromkeys(words[one] for one in alike if len(one) > 2))
    near += [name for name in names if "".join(part[:1] for part in name.split("_")) == given]
    quoted = [f"`{name}`" for name in near[:most]]
    return f" Did you mean {' or '.join(quoted)}?" if quoted else ""


def require_choice(
    what: str,
    value: object,
    choices: Iterable[str],
    *,
    advice: str = "",
    error: type[CapacityError] = InvalidArgumentError,
) -> str:
    """Return a value that is one of the choices, and refuse any other.

    Raises
    ------
    InvalidArgumentError
        Or the given `error`, with all choices and the nearest.

    Examples
    --------
    >>> require_choice("`effort`", "quick", ["quick", "standard"])
    'quick'
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        hint = nearest(value, choices) if isinstance(value, str) else ""
        more = f" {advice}" if advice else ""
        raise error(f"{what} must be one of {', '.join(choices)}; got {shown(value)}.{hint}{more}")
    return value


def with_known_options(cls: _Class) -> _Class:
    """Decorate a dataclass so that an unknown option is refused, with a list of its options.

    Raises
    ------
    InvalidTypeError
        From the class's ``__init__``, for an unknown option.
    """
    names = [each.name for each in fields(cls) if each.init]
    init: Callable[..., None] = cls.__init__

    @functools.wraps(init)
    def known(self: Any, *values: Any, **options: Any) -> None:
        for name in options:
            if name not in names:
                raise InvalidTypeError(
                    f"{cls.__name__} has no option `{name:.60}`; it has {', '.join(names)}."
                    f"{nearest(name, names)}"
                )
        init(self, *values, **options)

    cls.__init__ = known
    return cls
