"""Schemes as JSON: matrices ``u``, ``v`` and ``w``, or the products and sums of matrices as text.

A matrix is a list of rows, whose numbers are integers, decimals, or fractions as text, or complex
numbers: pairs of such, or text such as ``1/2 + 3*I``. Terms are its rows or its columns. ``halves``
means that all numbers are twice the coefficients, and ``denominator`` that they are multiples.
Sparse rows are lists of ``{"index": 4, "value": 1}``; with ``u_fresh``, ``v_fresh`` and
``w_fresh``, indices behind the last entry are common parts, which are expanded. ``multiplications``
and ``elements`` are products and sums, with ``n``: the three sizes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.rank.coefficients import GaussianRational
from capacity.rank.schemes.format import (
    Matrices,
    SchemeFile,
    SchemeFormat,
    by_columns,
    by_rows,
    register_scheme_format,
)
from capacity.rank.schemes.formats.products import of_lines
from capacity.rank.schemes.numbers import (
    NotRationalError,
    divided,
    number_array,
    rational,
)

_NAMES = (("u", "v", "w"), ("U", "V", "W"), ("A", "B", "C"))
_LARGEST_SIDE = 1000


def read_json(file: SchemeFile) -> list[Matrices]:
    """Read an object with matrices or products, or a list of matrices."""
    try:
        given = json.loads(file.text(), parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise file.error(f"it isn't JSON ({error.msg})", line=error.lineno) from None
    except (RecursionError, ValueError) as error:
        raise file.error(f"it isn't JSON ({error})") from None
    try:
        return list(_readings(file, given))
    except NotRationalError as error:
        raise file.error(error) from None


def _readings(file: SchemeFile, given: object) -> Iterator[Matrices]:
    if isinstance(given, list):
        given = {"matrices": given}
    if not isinstance(given, dict):
        raise NotRationalError(f"it must be an object with u, v and w; got {shown(given)}")
    names = next((names for names in _NAMES if set(names) <= set(given)), None)
    if names is None and "multiplications" in given:
        texts = [*_list(given, "multiplications"), *_list(given, "elements")]
        if not all(isinstance(text, str) for text in texts):
            raise NotRationalError("multiplications and elements must be texts")
        yield from of_lines(file, [(text, None) for text in texts], _sides(given))
        return
    if names and _is_sparse(given[names[0]]):
        yield _expanded(file, given, names)
        return
    parts = (
        [given[name] for name in names] if names else given.get("matrices", given.get("factors"))
    )
    if not isinstance(parts, list) or len(parts) < 2:
        raise NotRationalError("it must have u, v and w, multiplications, or a list of matrices")
    matrices = [_matrix(file, rows) for rows in parts]
    divisor = rational(given.get("denominator", 2 if given.get("halves") is True else 1))
    if not divisor:
        raise NotRationalError("a denominator must not be 0")
    if divisor != 1:
        for matrix in matrices:
            for place, number in np.ndenumerate(matrix):
                matrix[place] = divided(number, divisor)
    yield from by_columns(matrices)
    yield from by_rows(matrices)


def _list(given: dict[str, Any], name: str) -> list[Any]:
    found = given.get(name)
    if not isinstance(found, list):
        raise NotRationalError(f"{name} must be a list; got {shown(found)}")
    return found


def _sides(given: dict[str, Any]) -> tuple[int, int, int] | None:
    """Return n, m and p, if the file has them."""
    sides = given.get("n", given.get("format"))
    if sides is None:
        return None
    whole = isinstance(sides, list) and len(sides) == 3 and all(type(x) is int for x in sides)
    if not whole or not all(1 <= x <= _LARGEST_SIDE for x in sides):
        raise NotRationalError(
            f"n must be three sizes from 1 to {_LARGEST_SIDE}; got {shown(sides)}"
        )
    n, m, p = sides
    return n, m, p


def _matrix(file: SchemeFile, rows: object) -> NDArray[Any]:
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows)):
        raise NotRationalError(f"a matrix must be a list of rows; got {shown(rows)}")
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise NotRationalError("the rows of a matrix must have as many numbers each")
    file.require_cells(len(rows) * width)
    return number_array([x for row in rows for x in row], (len(rows), width))


def _is_sparse(rows: object) -> bool:
    return isinstance(rows, list) and any(
        isinstance(row, list) and any(isinstance(x, dict) for x in row) for row in rows
    )


def _expanded(file: SchemeFile, given: dict[str, Any], names: Sequence[str]) -> Matrices:
    """Expand sparse rows: of products in u and v, and of entries in w."""
    sides, n_terms = _sides(given), given.get("m", given.get("rank"))
    if sides is None or type(n_terms) is not int or n_terms < 1:
        raise NotRationalError("sparse rows need n, the three sizes, and m, the number of products")
    n, m, p = sides
    made: list[NDArray[Any]] = []
    widths, heights = (n * m, m * p, n_terms), (n_terms, n_terms, n * p)
    for name, width, height in zip(names, widths, heights, strict=True):
        rows = _list(given, name)
        if len(rows) != height:
            raise NotRationalError(f"{name} must have {height} rows; got {len(rows)}")
        fresh = _list(given, f"{name}_fresh") if f"{name}_fresh" in given else []
        file.require_cells((len(fresh) + height) * width)
        parts: list[NDArray[Any]] = []
        for row in fresh:
            parts.append(_sum(row, width, parts))
        made.append(np.array([_sum(row, width, parts) for row in rows], dtype=object))
    return made[0].T, made[1].T, made[2]


def _sum(row: object, width: int, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Add up entries, and the common parts that are known before."""
    total = np.zeros(width, dtype=object)
    for one in row if isinstance(row, list) else [row]:
        found: dict[str, Any] = one if isinstance(one, dict) else {}
        index = found.get("index")
        if type(index) is not int or not 0 <= index < width + len(parts) or "value" not in found:
            raise NotRationalError(
                f"a sparse entry must have an index from 0 to {width + len(parts) - 1} and a "
                f"value; got {shown(one)}"
            )
        number = rational(found["value"])
        if index < width:
            total[index] += number
        else:
            total = total + parts[index - width] * number
    if any(abs(x).numerator.bit_length() > 4096 for x in total.tolist()):
        raise NotRationalError("a coefficient must have at most 4096 bits")
    return total


def write_json(matrices: Matrices) -> list[bytes]:
    """Write u, v and w, or a list of matrices of another number of modes; terms are columns."""
    lists = [[[_written(x) for x in row] for row in of.tolist()] for of in matrices]
    given = dict(zip("uvw", lists, strict=True)) if len(lists) == 3 else {"matrices": lists}
    return [json.dumps(given).encode()]


def _written(number: int | Fraction | GaussianRational) -> Any:
    if isinstance(number, GaussianRational):
        return [_written(number.real), _written(number.imag)]
    return int(number) if number.denominator == 1 else str(number)


register_scheme_format(
    SchemeFormat("json", (".json",), read_json, write=write_json, is_complex=True)
)
