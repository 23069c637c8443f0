"""Coefficients of published schemes: integers, fractions and short decimals, exact.

What a file writes as text is read by these patterns alone and never evaluated. A number that takes
a page, or an exponent that expands to one, is refused before it is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown

Rational: TypeAlias = int | Fraction

# signs of a number as text, and bits of one that is computed
LONGEST, MOST_BITS = 400, 4096
# parts of a whole number that decimals may say; more of them are those of a numerical fit
_PARTS = 64
_FRACTION = re.compile(r"\(?([+-]?\s*[0-9]+)(?:\s*/\s*([0-9]+))?\)?")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][+-]?[0-9]{1,2})?")
_IMAGINARY = re.compile(r"(.*[0-9.)\s*+-])?[ijI]\)?|[ijI]\s*\*.*", re.DOTALL)

COMPLEX = "it is a complex scheme, and only decompositions over the rationals are read"


class NotRationalError(Exception):
    """A number isn't one of a decomposition over the rationals; a reader adds the place."""


def rational(value: object) -> Rational:
    """Return an integer or a fraction for a number of a file, or its text.

    Raises
    ------
    NotRationalError
        With what must hold.

    Examples
    --------
    >>> rational("-3/6"), rational(0.5), rational("2e1"), rational(7)
    (Fraction(-1, 2), Fraction(1, 2), 20, 7)
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, Fraction):
        return shortened(value)
    if isinstance(value, complex | np.complexfloating):
        if value.imag:
            raise NotRationalError(COMPLEX)
        value = float(value.real)
    if isinstance(value, float | np.floating):
        return _few_parts(Fraction(float(value)), value) if np.isfinite(value) else _refuse(value)
    return _of_text(value) if isinstance(value, str) else _refuse(value)


def _of_text(text: str) -> Rational:
    text = text.strip()
    if len(text) > LONGEST:
        raise NotRationalError(f"a number must have at most {LONGEST} signs; got {shown(text)}")
    if found := _FRACTION.fullmatch(text):
        top, bottom = int(found[1].replace(" ", "")), int(found[2] or 1)
        if not bottom:
            raise NotRationalError(f"a denominator must not be 0; got {shown(text)}")
        return shortened(Fraction(top, bottom))
    if _DECIMAL.fullmatch(text):
        return _few_parts(Fraction(Decimal(text)), text)
    if _IMAGINARY.fullmatch(text):
        raise NotRationalError(COMPLEX)
    return _refuse(text)


def _few_parts(exact: Fraction, given: object) -> Rational:
    if exact.denominator > _PARTS:
        raise NotRationalError(
            f"a decimal must be a whole number or parts down to 1/{_PARTS}; got {shown(given)}, as "
            "of a numerical fit, which proves nothing"
        )
    return shortened(exact)


def _refuse(given: object) -> Rational:
    raise NotRationalError(f"a coefficient must be an integer or a fraction; got {shown(given)}")


def shortened(number: Rational) -> Rational:
    """Return a whole fraction as an integer."""
    return int(number) if number.denominator == 1 else number


def rational_array(values: Iterable[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """Return numbers of a file as an array of integers and fractions.

    Raises
    ------
    NotRationalError
        If one isn't rational.
    """
    array = np.empty(int(np.prod(shape, dtype=object)), dtype=object)
    array[:] = [rational(value) for value in values]
    return array.reshape(shape)


def fractions_of(tops: NDArray[Any], bottoms: NDArray[Any]) -> NDArray[np.object_]:
    """Return an array of fractions, from their numerators and denominators.

    Raises
    ------
    NotRationalError
        If the arrays differ in shape, hold other numbers, or a denominator is zero.
    """
    if tops.shape != bottoms.shape:
        raise NotRationalError(
            f"numerators must have denominators; got shapes {tops.shape} and {bottoms.shape}"
        )
    above, below = (rational_array(of.ravel().tolist(), of.shape) for of in (tops, bottoms))
    if any(not number for number in below.ravel()):
        raise NotRationalError("a denominator must not be 0")
    made = np.empty(above.shape, dtype=object)
    for place, top in np.ndenumerate(above):
        made[place] = shortened(Fraction(top) / below[place])
    return made
