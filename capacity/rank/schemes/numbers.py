"""Coefficients of published schemes: integers, fractions, short decimals, complex numbers, exact.

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
from capacity.rank.coefficients import GaussianRational

Rational: TypeAlias = int | Fraction
# a complex number of a file whose imaginary part isn't 0, or a rational one
Number: TypeAlias = Rational | GaussianRational

# signs of a number as text, and bits of one that is computed
LONGEST, MOST_BITS = 400, 4096
# parts of a whole number that decimals may say; more of them are those of a numerical fit
_PARTS = 64
_FRACTION = re.compile(r"\(?([+-]?\s*[0-9]+)(?:\s*/\s*([0-9]+))?\)?")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][+-]?[0-9]{1,2})?")
# x + y i, x - y*I, y i, 2I: the parts
_COMPLEX = re.compile(r"\(?(?:([^ijI]*[0-9).])\s*(?=[+-]))?([+-]?\s*[^ijI+-]*?)\s*\*?\s*[ijI]\)?")
_IMAGINARY = re.compile(r"(.*[0-9.)\s*+-])?[ijI]\)?|[ijI]\s*\*.*", re.DOTALL)

COMPLEX = "it is a complex scheme, and these are read from .json, .npy and .npz alone"


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


def number_of(value: object) -> Number:
    """Return a number of a file, or of its text, that may be complex.

    Raises
    ------
    NotRationalError
        With what must hold of its parts.

    Examples
    --------
    >>> number_of(0.5 - 1j), number_of([0, "1/2"]), number_of("1/2 + 3*I"), number_of([3, 0])
    (1/2 - i, 1/2 i, 1/2 + 3 i, 3)
    """
    parts: list[object]
    if isinstance(value, complex | np.complexfloating):
        parts = [float(value.real), float(value.imag)]
    elif isinstance(value, list) and len(value) == 2:
        parts = list(value)
    elif (
        isinstance(value, str)
        and len(value) <= LONGEST
        and (found := _COMPLEX.fullmatch(value.strip()))
    ):
        size = found[2].replace(" ", "")
        parts = [found[1] or 0, size + "1" if size in ("", "+", "-") else size]
    else:
        return rational(value)
    real, imag = map(rational, parts)
    return GaussianRational(real, imag) if imag else real


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


def divided(number: Number, divisor: Rational) -> Number:
    """Return a number divided by a rational one."""
    if isinstance(number, GaussianRational):
        return GaussianRational(
            shortened(Fraction(number.real) / divisor), shortened(Fraction(number.imag) / divisor)
        )
    return shortened(Fraction(number) / divisor)


def rational_array(values: Iterable[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """Return numbers of a file as an array of integers and fractions.

    Raises
    ------
    NotRationalError
        If one isn't rational.
    """
    return _array(map(rational, values), shape)


def number_array(values: Iterable[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """Return numbers of a file, which may be complex, as `rational_array` returns others."""
    return _array(map(number_of, values), shape)


def _array(numbers: Iterable[Number], shape: tuple[int, ...]) -> NDArray[np.object_]:
    array = np.empty(int(np.prod(shape, dtype=object)), dtype=object)
    array[:] = list(numbers)
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
