"""Schemes as three sparse matrices in text, ``NAME_L.sms``, ``NAME_R.sms`` and ``NAME_P.sms``.

Of each product L and R have a row, and P a column: with them a bilinear map is P (L a * R b). A
file has a line with both sizes and a letter, a line ``row column value`` for each entry, counted
from 1, and ``0 0 0`` at its end; comments begin with ``#``.

References
----------
J.-G. Dumas, C. Pernet, A. Sedoglavic, PLinOpt, whose files hold these matrices; the format is that
of LinBox, and J.-G. Dumas's Sparse Integer Matrix Collection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.rank.schemes.format import Matrices, SchemeFile, SchemeFormat, register_scheme_format
from capacity.rank.schemes.numbers import NotRationalError, rational

PARTS = ("_L.sms", "_R.sms", "_P.sms")
_SIZES = re.compile(r"([0-9]{1,9})\s+([0-9]{1,9})(?:\s+[A-Za-z]+)?")


def read_sms(file: SchemeFile) -> list[Matrices]:
    """Read L, R and P."""
    if len(file.others) != 2:
        raise file.error(
            "a scheme is three files, of L, R and P",
            advice="Pass the one that ends in _L.sms, beside the others, or all three in a list.",
        )
    left, right, post = (matrix_of(one) for one in (file, *file.others))
    n_products = {len(left), len(right), post.shape[1]}
    if len(n_products) > 1:
        raise file.error(
            f"rows of L, rows of R and columns of P must be as many, one for each product; got "
            f"{len(left)}, {len(right)} and {post.shape[1]}"
        )
    return [(left.T, right.T, post)]


def matrix_of(file: SchemeFile) -> NDArray[Any]:
    """Read one matrix."""
    lines = _lines(file)
    number, first = next(lines, (1, ""))
    sizes = _SIZES.fullmatch(first)
    if sizes is None:
        raise file.error(
            f"the first line must have the numbers of rows and columns; got {shown(first)}",
            line=number,
        )
    n_rows, n_columns = int(sizes[1]), int(sizes[2])
    matrix = file.empty(n_rows, n_columns)
    filled = np.zeros(matrix.shape, bool)
    for number, line in lines:
        fields = line.split(None, 2)
        if len(fields) != 3 or not (fields[0] + fields[1]).isascii():
            raise file.error(f"a line must be `row column value`; got {shown(line)}", line=number)
        if fields == ["0", "0", "0"]:
            if next(lines, None) is not None:
                raise file.error("nothing may follow the line `0 0 0`", line=number + 1)
            return matrix
        row, column = (int(x) if x.isdigit() and len(x) < 10 else 0 for x in fields[:2])
        if not (1 <= row <= n_rows and 1 <= column <= n_columns):
            raise file.error(
                f"indices must count from 1, within {n_rows} x {n_columns}; got "
                f"{shown(' '.join(fields[:2]))}",
                line=number,
            )
        if filled[row - 1, column - 1]:
            raise file.error(f"an entry must be given once; got {row} {column} again", line=number)
        filled[row - 1, column - 1] = True
        try:
            matrix[row - 1, column - 1] = rational(fields[2])
        except NotRationalError as error:
            raise file.error(error, line=number) from None
    raise file.error("the last line must be `0 0 0`: the file is truncated")


def _lines(file: SchemeFile) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(file.text().splitlines(), start=1):
        text = line.split("#", 1)[0].strip()
        if text:
            yield number, text


def write_sms(matrices: Matrices) -> list[bytes]:
    """Write L, R and P."""
    if len(matrices) != 3:
        raise NotRationalError(f"it holds bilinear maps, of three modes; got {len(matrices)}")
    left, right, post = matrices
    return [_written(of) for of in (left.T, right.T, post)]


def _written(matrix: NDArray[Any]) -> bytes:
    lines = [f"{matrix.shape[0]} {matrix.shape[1]} R"]
    for (row, column), x in np.ndenumerate(matrix):
        if x:
            lines.append(f"{row + 1} {column + 1} {x}")
    return "\n".join([*lines, "0 0 0", ""]).encode()


register_scheme_format(SchemeFormat("sms", (".sms",), read_sms, PARTS, write_sms))
