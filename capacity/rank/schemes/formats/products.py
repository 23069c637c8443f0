"""Schemes as text: one product per line (``.exp``), and products with their sums (``.txt``).

``.exp`` has a line ``(a11 + a12) (b11) (c11 - c21)`` for each term, whose last factor shows by its
names where the product goes. With sums, products are named, ``m1 = (a11 + a12) * (b11)``, and
entries of the result are ``c11 = m1 - m4``. A name with two indices is an entry of a matrix, and
one with a single index that of a vector. In ``.exp`` C is usually transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.rank.schemes.format import Matrices, SchemeFile, SchemeFormat, register_scheme_format
from capacity.rank.schemes.forms import (
    Form,
    Name,
    Token,
    defined,
    form_of,
    grouped_by_letter,
    letters_of,
    places,
    product_of,
    tokens_of,
)  # fmt: skip
from capacity.rank.schemes.numbers import NotRationalError

# a text and its line, if it has one
Line = tuple[str, int | None]


def read_products(file: SchemeFile) -> list[Matrices]:
    """Read the lines of a file, with comments behind ``#``."""
    lines = [
        (text.strip().rstrip(";"), number)
        for number, line in enumerate(file.text().splitlines(), start=1)
        if (text := line.split("#", 1)[0]).strip()
    ]
    return of_lines(file, lines)


def of_lines(
    file: SchemeFile, lines: Sequence[Line], sides: tuple[int, int, int] | None = None
) -> list[Matrices]:
    """Read products, and the sums that they make if there are any.

    Parameters
    ----------
    file : SchemeFile
        For limits and messages.
    lines : sequence of (str, int or None)
        Products and sums, with their lines.
    sides : (int, int, int), optional
        n, m and p, if the file contains them.
    """
    terms: list[list[Form]] = []
    names: dict[Name, int] = {}
    sums: dict[Name, Form] = {}
    for text, number in lines:
        try:
            name, tokens = defined(tokens_of(text))
            if _unbalanced(tokens):
                terms.append(grouped_by_letter(tokens))
            elif any(token.kind == "(" for token in tokens) or name is None:
                terms.append(product_of(tokens))
                if name is not None and names.setdefault(name, len(names)) != len(terms) - 1:
                    raise NotRationalError(
                        f"a product must have a name of its own; got {shown(text)}"
                    )
            elif len(bare := _bare(tokens)) > 1:
                terms.append(bare)
                names[name] = len(terms) - 1
            else:
                if name in sums:
                    raise NotRationalError(f"an entry must be given once; got {shown(text)}")
                sums[name] = form_of(tokens)
        except (NotRationalError, ZeroDivisionError) as error:
            raise file.error(error, line=number) from None
    if not terms:
        raise file.error("it has no product such as (a11 + a12) * (b11)")
    orders = {len(term) for term in terms}
    if len(orders) > 1 or min(orders) < 2:
        raise file.error(f"all products must have as many factors, two at least; got {orders}")
    try:
        return _matrices(file, terms, names, sums, sides)
    except NotRationalError as error:
        raise file.error(error) from None


def _unbalanced(tokens: list[Token]) -> bool:
    """Return whether brackets are nested, or aren't closed."""
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        if depth not in (0, 1):
            return True
    return depth != 0


def _bare(tokens: list[Token]) -> list[Form]:
    """Factors of a product without brackets, ``a11 * b11``; a sum has one."""
    try:
        return product_of(tokens)
    except NotRationalError:
        return []


def _matrices(
    file: SchemeFile,
    terms: list[list[Form]],
    names: dict[Name, int],
    sums: dict[Name, Form],
    sides: tuple[int, int, int] | None,
) -> list[Matrices]:
    letters = [
        next((x for x in letters_of(column) if x), "") for column in zip(*terms, strict=True)
    ]
    for mode, letter in enumerate(letters):
        if any(x not in ("", letter) for x in letters_of(term[mode] for term in terms)):
            raise NotRationalError(
                f"factor {mode + 1} of all products must have names of one letter"
            )
    columns: list[list[tuple[Name, int, object]]] = [
        [(name, r, x) for r, term in enumerate(terms) for name, x in term[mode].items()]
        for mode in range(len(letters))
    ]
    if sums:
        columns.append(_of_sums(sums, names))
    order = len(columns)
    known = [None] * order if sides is None or order != 3 else [sides[1], sides[2], sides[2]]
    at = [
        places([name for name, _, _ in column], wide)
        for column, wide in zip(columns, known, strict=True)
    ]
    sizes = _sizes(file, at, sides)
    file.require_cells(sum(int(np.prod(size)) for size in sizes) * len(terms))
    made: list[NDArray[np.object_]] = []
    for column, size, where in zip(columns, sizes, at, strict=True):
        matrix = file.empty(int(np.prod(size)), len(terms))
        for name, r, x in column:
            matrix[np.ravel_multi_index(where[name], size), r] = x
        made.append(matrix)
    return [tuple(made)]


def _of_sums(sums: dict[Name, Form], names: dict[Name, int]) -> list[tuple[Name, int, object]]:
    """Entries of the last factor: in which sum, of which product, with which coefficient."""
    found: list[tuple[Name, int, object]] = []
    for name, form in sums.items():
        for product, x in form.items():
            if product not in names:
                raise NotRationalError(
                    f"a sum must be one of products; {product[0]}{product[1][0]} is none"
                )
            found.append((name, names[product], x))
    return found


def _sizes(
    file: SchemeFile,
    at: Sequence[dict[Name, tuple[int, ...]]],
    sides: tuple[int, int, int] | None,
) -> list[tuple[int, ...]]:
    """Shapes of the matrices or vectors whose entries the names of each letter are."""
    least = [_extent(where.values()) for where in at]
    if len(least) == 3 and all(len(size) == 2 for size in least):
        (a, b), (c, d), (e, f) = least
        n, m, p = sides or (a, max(b, c), d)
        # names that no product has don't count, and C may be transposed
        for wanted in ((n, p), (p, n)):
            if e <= wanted[0] and f <= wanted[1] and a <= n and max(b, c) <= m and d <= p:
                return [(n, m), (m, p), wanted]
        if sides is not None:
            raise NotRationalError(f"the indices must be those of matrices {n} x {m} and {m} x {p}")
    shape = file.shape
    if shape is not None and len(shape) == len(least):
        return [
            (size,) if len(of) == 1 and of[0] <= size else of
            for size, of in zip(shape, least, strict=True)
        ]
    return least


def _extent(places: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    found = list(places)
    if not found:
        raise NotRationalError("each factor must have a name that isn't zero")
    if len({len(place) for place in found}) > 1:
        raise NotRationalError("the names of a letter must have as many indices each")
    return tuple(max(column) + 1 for column in zip(*found, strict=True))


register_scheme_format(SchemeFormat("products", (".exp", ".txt"), read_products))
