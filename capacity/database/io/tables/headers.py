"""Headers of tables, and tables with one column a property: recognised where it is certain.

A first row is a header if it reads ``subject predicate object`` (``key_1 ... object`` where facts
have another number of columns). It is one as well if no other row repeats its words in their
columns, and it holds

* a word for each role, in any order and in upper or lower case: for the subject subj, head, source,
  src, from, node1, entity1; for the predicate pred, relation, rel, relationship, property,
  attribute, edge; for the object obj, tail, target, dst, to, value, node2, entity2; each also with
  ``_id`` or ``_entity``, or the letters s p o or h r t; or
* variables, ``?film ?by ?who``, as SPARQL results in TSV do. Cells are then terms of RDF.

The columns are read by their roles: ``source target relation`` is a header of (subject, object,
predicate). A first row that may be a header and may be a fact is refused, and so is a table of
three columns without a header that looks as if it had one column a property.

References
----------
SPARQL 1.1 Query Results CSV and TSV Formats, W3C 2013, section 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from capacity.database.arity import role_names

Row: TypeAlias = tuple[int, tuple[str, ...]]

_WORDS = (
    {"subject", "subj", "head", "source", "src", "from", "node1", "entity1"},
    {"predicate", "pred", "relation", "rel", "relationship", "property", "attribute", "edge"},
    {"object", "obj", "tail", "target", "dst", "to", "value", "node2", "entity2"},
)
_LETTERS = ("spo", "hrt")
_VARIABLE = re.compile(r"\?\w+")
_NUMBER = re.compile(r"[+-]?\d[\d.,:/ -]*(?:[eE][+-]?\d+)?[ ]?%?")


@dataclass(frozen=True)
class Header:
    """First row of a table, as a header or as a fact.

    Attributes
    ----------
    rows : int
        1 if it is a header, 0 if it is a fact.
    order : tuple of int
        Column of each role.
    variables : bool
        Whether it names variables of SPARQL, so that the cells are terms of RDF.
    """

    rows: int
    order: tuple[int, ...]
    variables: bool = False


def role_order(names: Sequence[object]) -> tuple[int, ...] | None:
    """Find the columns of subject, predicate and object by their names; None if they don't tell.

    Examples
    --------
    >>> role_order(["Source", "target", "relation"]), role_order(["city", "month", "weather"])
    ((0, 2, 1), None)
    """
    words = [_word(name) for name in names]
    for letters in _LETTERS:
        if sorted(words) == sorted(letters):
            return tuple(words.index(letter) for letter in letters)
    found = [_role(word) for word in words]
    return tuple(found.index(i) for i in range(3)) if sorted(map(str, found)) == [*"012"] else None


def _word(name: object) -> str:
    word = re.sub(r"[\s-]+", "_", str(name).strip().lower().lstrip("?#"))
    return re.sub(r"(?<=.)_(?:id|entity)$", "", word)


def _role(word: str) -> int | None:
    return next((role for role, words in enumerate(_WORDS) if word in words), None)


def find_header(rows: Sequence[Row], arity: int) -> Header | None:
    """Tell what the first row of a table is; None if it may be a header and may be a fact.

    Parameters
    ----------
    rows : sequence of Row
        Rows of `arity` cells, at least one.
    arity : int
        Number of columns.

    Examples
    --------
    >>> find_header([(1, ("head", "relation", "tail")), (2, ("Ann", "knows", "Bob"))], 3)
    Header(rows=1, order=(0, 1, 2), variables=False)
    >>> find_header([(1, ("Ann", "knows", "Bob"))], 3).rows
    0
    >>> find_header([(1, ("head", "relation", "tail")), (2, ("head", "of", "body"))], 3) is None
    True
    """
    first = rows[0][1]
    as_is = tuple(range(arity))
    if first == role_names(arity):
        return Header(1, as_is)
    variables = all(map(is_variable, first))
    order = role_order(first) if arity == 3 else None
    if variables or order is not None:
        repeated = _repeats(first, rows, as_is)
        return None if repeated else Header(1, order or as_is, variables)
    if arity == 3:
        # "relation" is hardly the name of a relation, and two such words are hardly a fact
        said = [i for i in as_is if _role(_word(first[i])) == i]
        if (1 in said or len(said) > 1) and not _repeats(first, rows, said):
            return None
    return Header(0, as_is)


def is_variable(cell: str) -> bool:
    """Tell whether a cell is a variable of SPARQL, such as ``?film``.

    Examples
    --------
    >>> is_variable("?film"), is_variable("film")
    (True, False)
    """
    return _VARIABLE.fullmatch(cell) is not None


def _repeats(first: tuple[str, ...], rows: Sequence[Row], columns: Iterable[int]) -> bool:
    words = [(i, first[i].strip().lower()) for i in columns]
    return any(row[i].strip().lower() == word for _, row in rows[1:] for i, word in words)


def looks_wide(rows: Iterable[Row], first: tuple[str, ...]) -> bool:
    """Tell whether a table of three columns looks as if it had one column a property.

    It does if the second column holds numbers below a name; or if no cell of the first row occurs
    in another one, no other subject occurs twice, and there are several predicates.

    Parameters
    ----------
    rows : iterable of Row
        The rows but the first.
    first : tuple of str
        The cells of the first row.

    Examples
    --------
    >>> rows = [(2, ("Bob", "1980", "Rome")), (3, ("Ann", "1990", "Oslo"))]
    >>> looks_wide(rows, ("name", "born", "city"))
    True
    >>> looks_wide([(2, ("Bob", "knows", "Ann")), (3, ("Bob", "likes", "Rome"))], ("A", "p", "B"))
    False
    """
    if not all(isinstance(name, str) for name in first):
        # columns of a DataFrame that has only numbered them
        return False
    names, subjects, predicates = set(first), set[str](), set[str]()
    numbers, apart = not _NUMBER.fullmatch(first[1]), True
    for _, row in rows:
        numbers = numbers and bool(_NUMBER.fullmatch(row[1]))
        apart = apart and row[0] not in subjects and names.isdisjoint(row)
        if not (numbers or apart):
            return False
        subjects.add(row[0])
        predicates.add(row[1])
    return bool(subjects) and (numbers or len(predicates) > 1)
