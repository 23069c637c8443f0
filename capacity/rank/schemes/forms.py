"""Products of linear forms as text: ``m1 = (a11 + 2a12) * (b21 - 1/2 b22)``.

A name is a letter with an index (``a7``, ``m12``) or two (``a12``, ``a_1_2``, ``a1,2``,
``a[1,2]``). Two digits are a row and a column, unless other names of the letter show that they are
one number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from capacity.checks import shown
from capacity.rank.schemes.numbers import COMPLEX, MOST_BITS, NotRationalError, Rational, shortened

# a letter and its indices, as they are written
Name: TypeAlias = tuple[str, tuple[str, ...]]
Form: TypeAlias = dict[Name, Rational]

_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<number>[0-9]+\.[0-9]+|[0-9]+)"
    r"|(?P<letter>[A-Za-z]+)_?(?:\[\s*(?P<inside>[0-9]+(?:\s*,\s*[0-9]+)?)\s*\]"
    r"|\{\s*(?P<braced>[0-9]+(?:\s*,\s*[0-9]+)?)\s*\}|(?P<plain>[0-9]+(?:[_,][0-9]+)?))"
    r"|(?P<sign>[-+*/()=])"
    r"|(?P<other>\S+))"
)
_IMAGINARY = re.compile(r"[ijI](?![A-Za-z0-9_\[{])")


@dataclass(frozen=True)
class Token:
    """A number, a name, or a sign."""

    kind: str
    text: str
    name: Name | None = None


def tokens_of(text: str) -> list[Token]:
    """Split a text into numbers, names and signs.

    Raises
    ------
    NotRationalError
        At what is none of them.
    """
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        if match["number"]:
            found.append(Token("number", match["number"]))
        elif match["letter"]:
            inside = match["inside"] or match["braced"] or match["plain"]
            name = (match["letter"], tuple(re.split(r"\s*[,_]\s*", inside)))
            found.append(Token("name", match[0].strip(), name))
        elif match["sign"]:
            found.append(Token(match["sign"], match["sign"]))
        else:
            if _IMAGINARY.match(match["other"]):
                raise NotRationalError(COMPLEX)
            raise NotRationalError(
                "a form must consist of numbers, names such as a12, and the signs + - * / ( ); got "
                f"{shown(match['other'])}"
            )
    return found


def defined(tokens: list[Token]) -> tuple[Name | None, list[Token]]:
    """Split ``m1 = ...`` into the name and what it is; None for a text without ``=``."""
    if len(tokens) > 1 and tokens[1].kind == "=" and tokens[0].name is not None:
        return tokens[0].name, tokens[2:]
    return None, tokens


def form_of(tokens: Sequence[Token]) -> Form:
    """Read a sum of multiples of names.

    Raises
    ------
    NotRationalError
        If it is none, or has a name twice.

    Examples
    --------
    >>> form_of(tokens_of("-a11 + 1/2 a12 + 3*a2"))
    {('a', ('11',)): -1, ('a', ('12',)): Fraction(1, 2), ('a', ('2',)): 3}
    """
    if [token.text for token in tokens] == ["0"]:
        return {}
    form: Form = {}
    at = 0
    while at < len(tokens) or not form:
        sign = 1
        if at < len(tokens) and tokens[at].kind in "+-":
            sign, at = (-1 if tokens[at].kind == "-" else 1), at + 1
        elif form:
            raise NotRationalError(f"a sum must have a sign before {shown(tokens[at].text)}")
        name, coefficient, at = _multiple(tokens, at)
        if name in form:
            raise NotRationalError(
                f"a form must have each name once; it has {_written(name)} twice"
            )
        form[name] = shortened(Fraction(sign) * coefficient)
    return form


def _multiple(tokens: Sequence[Token], at: int) -> tuple[Name, Fraction, int]:
    """Read a multiple of a name, such as ``1/2 a12``, ``2*a12`` or ``a12/2``."""
    coefficient, name = Fraction(1), None
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "name" and name is None:
            name = token.name
        elif token.kind == "number" and name is None:
            coefficient *= _number(token)
        elif token.kind in "*/" and at + 1 < len(tokens):
            follows = tokens[at + 1]
            if token.kind == "/":
                divisor = _number(follows) if follows.kind == "number" else Fraction(0)
                if not divisor:
                    raise NotRationalError("what divides must be a number other than 0")
                coefficient, at = coefficient / divisor, at + 1
            elif follows.kind not in ("name", "number"):
                raise NotRationalError(f"a multiple must have no {shown(follows.text)} behind *")
        else:
            break
        at += 1
    if name is None:
        got = f"; got {shown(tokens[at].text)}" if at < len(tokens) else ""
        raise NotRationalError(f"a sum must consist of multiples of names such as a12{got}")
    return name, coefficient, at


def product_of(tokens: list[Token]) -> list[Form]:
    """Read a product of forms, such as ``(a11 + a12) b21 (c11 - c22)``.

    Raises
    ------
    NotRationalError
        If it is none.
    """
    factor = Fraction(1)
    forms: list[Form] = []
    at = 0
    while at < len(tokens):
        kind = tokens[at].kind
        if kind == "(":
            end = next((i for i in range(at, len(tokens)) if tokens[i].kind == ")"), 0)
            if not end:
                raise NotRationalError("a bracket must be closed")
            forms.append(form_of(tokens[at + 1 : end]))
            at = end
        elif kind == "name":
            forms.append({tokens[at].name or ("", ()): 1})
        elif kind == "number":
            factor *= _number(tokens[at])
        elif kind == "/" and at + 1 < len(tokens) and tokens[at + 1].kind == "number":
            at += 1
            factor /= _number(tokens[at]) or _zero()
        elif kind in "+-" and at == 0:
            factor *= -1 if kind == "-" else 1
        elif kind != "*":
            raise NotRationalError(
                f"a product must consist of factors in brackets; got {shown(tokens[at].text)}"
            )
        at += 1
    if forms:
        forms[0] = {name: shortened(factor * x) for name, x in forms[0].items()}
    return forms


def grouped_by_letter(tokens: Sequence[Token]) -> list[Form]:
    """Read a product of unbalanced brackets, as some published ones: letters denote factors.

    Raises
    ------
    NotRationalError
        If a number or a sign precedes a bracket, which may be about all of it, or a letter
        comes again behind another.

    Examples
    --------
    >>> len(grouped_by_letter(tokens_of("(a11 - a12) -b13 (-c13 + c33))")))
    3
    """
    runs: list[tuple[str, list[Token]]] = []
    ahead: list[Token] = []
    for token in tokens:
        if token.kind in "()":
            if ahead:
                raise NotRationalError(f"brackets must be balanced behind {shown(ahead[-1].text)}")
            continue
        ahead.append(token)
        if token.name is not None:
            if not runs or runs[-1][0] != token.name[0]:
                runs.append((token.name[0], []))
            runs[-1][1].extend(ahead)
            ahead = []
    letters = [letter for letter, _ in runs]
    if ahead or len(set(letters)) != len(letters):
        raise NotRationalError("brackets must be balanced")
    return [form_of(run) for _, run in runs]


def _number(token: Token) -> Fraction:
    if len(token.text) > MOST_BITS // 4:
        raise NotRationalError(f"a number must be shorter; got {shown(token.text)}")
    return Fraction(token.text)


def _zero() -> Fraction:
    raise NotRationalError("what divides must be a number other than 0")


def _written(name: Name) -> str:
    return name[0] + "_".join(name[1])


def places(names: Iterable[Name], columns: int | None = None) -> dict[Name, tuple[int, ...]]:
    """Return the indices of all names of a letter, from 0: one for each, or a row and a column.

    Parameters
    ----------
    names : iterable of Name
        All names of the letter.
    columns : int, optional
        Number of columns, if it is known: three digits are then a row and a column that fit.

    Raises
    ------
    NotRationalError
        If an index is missing, or the names may be both.

    Examples
    --------
    >>> places([("a", ("12",)), ("a", ("21",))])
    {('a', ('12',)): (0, 1), ('a', ('21',)): (1, 0)}
    >>> places([("a", ("12",)), ("a", ("1",))])
    {('a', ('12',)): (11,), ('a', ('1',)): (0,)}
    """
    every = list(dict.fromkeys(names))
    if any(len(digits) > 5 for _, indices in every for digits in indices):
        raise NotRationalError("an index must have at most five digits")
    split = {len(indices) for _, indices in every}
    if split == {2}:
        return {name: _from_one(name, tuple(map(int, name[1]))) for name in every}
    if split - {1}:
        raise NotRationalError("the names of a letter must have as many indices each")
    digits = [indices[0] for _, indices in every]
    wide = columns is not None and columns > 9
    # a1 beside a12, or a10, which no row and column from 1 has
    if not wide and (any(len(d) == 1 for d in digits) or _skips(digits)):
        return {name: _from_one(name, (int(name[1][0]),)) for name in every}
    zero = any(d[0] == "0" for d in digits)
    return {name: _row_and_column(name, columns if wide else None, zero=zero) for name in every}


def _skips(digits: Sequence[str]) -> bool:
    """Return whether two digits are one number: one ends in 0, and none begins with it."""
    return any(d[-1] == "0" for d in digits) and not any(d[0] == "0" for d in digits)


def _row_and_column(name: Name, columns: int | None, *, zero: bool) -> tuple[int, ...]:
    digits = name[1][0]
    if columns is None and len(digits) == 2:
        pair = int(digits[0]), int(digits[1])
        return pair if zero else _from_one(name, pair)
    found = [
        (int(digits[:i]), int(digits[i:]))
        for i in range(1, len(digits))
        if digits[i] != "0" and int(digits[i:]) <= (columns or 0)
    ]
    if len(found) != 1:
        raise NotRationalError(
            f"the row and the column of {_written(name)} can't be distinguished: write them as "
            f"{name[0]}_1_12"
        )
    return _from_one(name, found[0])


def _from_one(name: Name, indices: tuple[int, ...]) -> tuple[int, ...]:
    if min(indices) < 1:
        raise NotRationalError(f"indices must count from 1; got {_written(name)}")
    return tuple(i - 1 for i in indices)


def letters_of(forms: Iterable[Form]) -> Iterator[str]:
    """Yield the letter of each form that isn't zero, which must be one.

    Raises
    ------
    NotRationalError
        If a form has names of several letters.
    """
    for form in forms:
        letters = {letter for letter, _ in form}
        if len(letters) > 1:
            raise NotRationalError(f"a factor must have names of one letter; got {sorted(letters)}")
        yield next(iter(letters), "")
