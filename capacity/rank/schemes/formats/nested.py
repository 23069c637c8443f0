"""Schemes as lists of terms with a matrix for each mode: Mathematica (``.m``) and Maple (``.mpl``).

Mathematica has ``{{A, B, C}, ...}`` with matrices such as ``{{1, 0}, {0, -1/2}}``, and Maple
``Triad([Matrix(2, 2, [[1, 0], [0, 1]]), ...])`` in a ``TriadSet``. C is usually p x n there, that
is, transposed. Nothing is evaluated.
"""

from __future__ import annotations

import re
from typing import Any

from capacity.checks import shown
from capacity.rank.schemes.format import (
    Matrices,
    SchemeFile,
    SchemeFormat,
    by_columns,
    register_scheme_format,
)
from capacity.rank.schemes.numbers import NotRationalError, rational

_TOKEN = re.compile(r"\s*(?:([{}\[\],])|([^{}\[\],\s][^{}\[\],]*))")
_ASSIGNED = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9]*\s*:?=)?\s*")
_COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
_SET = re.compile(r"TriadSet\s*\(")
_MATRIX = re.compile(r"\s*Matrix\s*\(\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*,\s*(?=\[)")
# terms, modes, rows, numbers
_DEEPEST = 4


def read_mathematica(file: SchemeFile) -> list[Matrices]:
    """Read a list of terms."""
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), file.text())
    begin = _ASSIGNED.match(text)
    start = begin.end() if begin else 0
    terms, end = _nested(file, text, start, "{}")
    if text[end:].strip(" \t\r\n;"):
        raise file.error(
            f"nothing may follow the list of terms; got {shown(text[end:].strip())}",
            line=_line(text, end),
        )
    return _of_terms(file, terms)


def read_maple(file: SchemeFile) -> list[Matrices]:
    """Read the triads of a set; what is before and behind it isn't read."""
    text = file.text()
    begin = _SET.search(text)
    if begin is None:
        raise file.error("it has no TriadSet([Triad([Matrix(n, m, [[...]]), ...]), ...])")
    at = _after(file, text, begin.end(), r"\s*\[")
    terms: list[list[Any]] = []
    while True:
        at = _after(file, text, at, r"\s*Triad\s*\(\s*\[")
        term: list[Any] = []
        while True:
            found = _MATRIX.match(text, at)
            if found is None:
                raise file.error("a triad must have Matrix(n, m, [[...]])", line=_line(text, at))
            rows, at = _nested(file, text, found.end(), "[]")
            n_rows, n_columns = int(found[1]), int(found[2])
            lengths = [len(row) if isinstance(row, list) else -1 for row in rows]
            if lengths != [n_columns] * n_rows:
                raise file.error(
                    f"a matrix must have the sizes of its header, {n_rows} x {n_columns}",
                    line=_line(text, at),
                )
            term.append(rows)
            at = _after(file, text, at, r"\s*\)\s*")
            if not text.startswith(",", at):
                break
            at += 1
        terms.append(term)
        at = _after(file, text, at, r"\]\s*\)\s*")
        if not text.startswith(",", at):
            _after(file, text, at, r"\]\s*\)")
            return _of_terms(file, terms)
        at += 1


def _after(file: SchemeFile, text: str, at: int, pattern: str) -> int:
    found = re.compile(pattern).match(text, at)
    if found is None:
        raise file.error(
            f"a set must be TriadSet([Triad([...]), ...]); got {shown(text[at : at + 40])}",
            line=_line(text, at),
        )
    return found.end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _nested(file: SchemeFile, text: str, at: int, brackets: str) -> tuple[list[Any], int]:
    """Read a list of lists of numbers, and return where it ends."""
    opening, closing = brackets
    if not text.startswith(opening, at):
        raise file.error(
            f"a list must begin with {opening}; got {shown(text[at : at + 40])}",
            line=_line(text, at),
        )
    stack: list[list[Any]] = [[]]
    n_numbers, wants_one = 0, True
    for match in _TOKEN.finditer(text, at):
        sign, number = match[1], match[2]
        if sign == "," and not wants_one:
            wants_one = True
            continue
        if sign == closing and not (wants_one and stack[-1]) and len(stack) > 1:
            whole = stack.pop()
            stack[-1].append(whole)
            if len(stack) == 1:
                return whole, match.end()
            wants_one = False
        elif sign == opening and wants_one and len(stack) <= _DEEPEST:
            stack.append([])
        elif number is not None and wants_one:
            try:
                stack[-1].append(rational(number))
            except NotRationalError as error:
                raise file.error(error, line=_line(text, match.start(2))) from None
            n_numbers, wants_one = n_numbers + 1, False
            if not n_numbers % 10_000:
                file.require_cells(n_numbers)
        else:
            raise file.error(
                f"lists must be divided by commas, and at most {_DEEPEST} deep; got "
                f"{shown(match[0].strip())}",
                line=_line(text, match.start()),
            )
    raise file.error("its lists must be closed: the file is truncated", line=_line(text, len(text)))


def _of_terms(file: SchemeFile, terms: list[Any]) -> list[Matrices]:
    """Make a matrix for each mode of terms with a matrix for each."""
    flat: list[list[list[Any]]] = []
    shapes: set[tuple[tuple[int, int], ...]] = set()
    for number, term in enumerate(terms, start=1):
        sizes: list[tuple[int, int]] = []
        if not isinstance(term, list) or len(term) < 2:
            raise file.error(f"term {number} must be a list of matrices; got {shown(term)}")
        for matrix in term:
            rows: list[Any] = matrix if isinstance(matrix, list) and matrix else [None]
            # a vector is a matrix of one row
            rows = [rows] if not any(isinstance(row, list) for row in rows) else rows
            if not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
                raise file.error(f"term {number} must have matrices; got {shown(matrix)}")
            if any(isinstance(x, list) or x is None for row in rows for x in row):
                raise file.error(f"term {number} must have matrices of numbers")
            sizes.append((len(rows), len(rows[0])))
        shapes.add(tuple(sizes))
        flat.append([_flattened(matrix) for matrix in term])
    if len(shapes) != 1:
        raise file.error(f"all terms must have matrices of the same sizes; got {len(shapes)} kinds")
    order = len(flat[0])
    made = [file.empty(len(flat[0][mode]), len(flat)) for mode in range(order)]
    for r, term in enumerate(flat):
        for mode in range(order):
            made[mode][:, r] = term[mode]
    return list(by_columns(made))


def _flattened(matrix: list[Any]) -> list[Any]:
    return [x for row in matrix for x in (row if isinstance(row, list) else [row])]


register_scheme_format(SchemeFormat("mathematica", (".m",), read_mathematica))
register_scheme_format(SchemeFormat("maple", (".mpl",), read_maple))
