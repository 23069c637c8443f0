"""Headers of tables, and tables with one column per property: recognised where it is certain.

A first row is a header if it reads ``subject predicate object`` (``key_1 ... object`` where facts
have another number of columns). It is one as well if no other row repeats its words in their
columns, and it holds

* a word for each role, in any order and in upper or lower case: for the subject subj, head, source,
  src, from, start, node1, entity1; for the predicate pred, relation, rel, relationship, property,
  attribute, edge, and between words for the others label and type; for the object obj, tail,
  target, dst, to, end, value, node2, entity2; each also with ``_id`` or ``_entity``, or the letters
  s p o or h r t, also beside such words; in French sujet, prédicat, objet, in German Subjekt,
  Prädikat, Objekt, in Spanish sujeto, predicado, objeto; Neo4j's ``:START_ID``, ``:TYPE``,
  ``:END_ID``; or
* variables, ``?film ?by ?who``, as SPARQL results in TSV do. Cells are then terms of RDF.

A row of these words as literals, ``"subject" "predicate" "object"``, over terms of RDF is a header
as well, and one of other literals there is refused, for no subject is a literal. So it is over
labels if no other cell begins with a quote.

The columns are read by their roles: ``source target relation`` is a header of (subject, object,
predicate). A first row that may be a header and may be a fact is refused: one with some of these
words; one of words that don't occur again, over a column that holds numbers, or IRIs, in all other
rows; and ``0 1 2``, which pandas writes over columns without names, unless all cells are numbers.
So is a table of three columns without a header that looks as if it had one column per property.
Every other first row is a fact.

References
----------
Neo4j, Operations Manual, "Neo4j-admin import", CSV header format.
SPARQL 1.1 Query Results CSV and TSV Formats, W3C 2013, section 4.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TypeAlias

from capacity.checks import cut
from capacity.database.arity import role_names
from capacity.database.io.files.pieces import UnsuitedError
from capacity.database.io.table_options import TableOptions

Row: TypeAlias = tuple[int, tuple[str, ...]]

_WORDS = (
    {"subject", "subj", "head", "source", "src", "from", "start", "node1", "entity1",
     "sujet", "subjekt", "sujeto"},
    {"predicate", "pred", "relation", "rel", "relationship", "property", "attribute", "edge",
     "prédicat", "predicat", "prädikat", "praedikat", "predicado"},
    {"object", "obj", "tail", "target", "dst", "to", "end", "value", "node2", "entity2",
     "objet", "objekt", "objeto"},
)  # fmt: skip
# words that facts have for predicates, too: a header's only between words for the other roles
_KINDS = frozenset({"label", "type"})
_LETTERS = ("spo", "hrt")
_SSSOM = ("subject_id", "predicate_id", "object_id")
# a mapping with a value of it is denied
SSSOM_MODIFIER = "predicate_modifier"
# names among which roles are looked for: there are as many threes of them as 220
_MOST_NAMES = 12
_VARIABLE = re.compile(r"\?\w+")
# Neo4j's, with the name of a space of identifiers: :START_ID(Person)
_NEO4J = re.compile(r":(START|END)_ID(?:\([^()]*\))?|:(TYPE)", re.IGNORECASE)
_IRI = re.compile(r"<?https?://")
_LITERAL = re.compile(r'"[^"\\]*"')
NUMBER = re.compile(r"[+-]?\d[\d.,:/ -]*(?:[eE][+-]?\d+)?[ ]?%?")


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
    """Find the columns of subject, predicate and object by their names; None if they don't show it.

    Examples
    --------
    >>> role_order(["Source", "target", "relation"]), role_order(["city", "month", "weather"])
    ((0, 2, 1), None)
    """
    return _order([_word(name) for name in names], _KINDS)


def roles_among(names: Sequence[object]) -> tuple[int, ...] | None:
    """Find the columns of subject, predicate and object among more; None if they don't show it.

    Examples
    --------
    >>> roles_among(["id", "source", "target", "relation", "weight"])
    (1, 3, 2)
    >>> roles_among(["source", "target", "from", "relation"]) is None
    True
    """
    words = [_word(name) for name in names[:_MOST_NAMES]]
    for kinds in (frozenset[str](), _KINDS):
        threes = combinations(range(len(words)), 3)
        orders = [(three, _order([words[i] for i in three], kinds)) for three in threes]
        found = [tuple(three[i] for i in order) for three, order in orders if order is not None]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def sssom_order(names: Sequence[object]) -> tuple[int, ...] | None:
    """Find subject, predicate and object in the header of SSSOM; None if it is another.

    Examples
    --------
    >>> sssom_order(["subject_id", "predicate_id", "object_id", "mapping_justification"])
    (0, 1, 2)

    References
    ----------
    N. Matentzoglu et al., A Simple Standard for Sharing Ontological Mappings (SSSOM), 2022.
    """
    known = list(names)
    if not all(known.count(name) == 1 for name in (*_SSSOM, "mapping_justification")):
        return None
    return tuple(known.index(name) for name in _SSSOM)


def _order(words: Sequence[str], kinds: frozenset[str]) -> tuple[int, ...] | None:
    # letters of one header, such as s and o, also beside a word
    lettered = [
        [letters.index(word) if word in {*letters} else _role(word) for word in words]
        for letters in _LETTERS
    ]
    for roles in (*lettered, [1 if word in kinds else _role(word) for word in words]):
        if sorted(map(str, roles)) == [*"012"]:
            return tuple(map(roles.index, range(3)))
    return None


def _word(name: object) -> str:
    text = unicodedata.normalize("NFC", str(name)).strip()
    if neo4j := _NEO4J.fullmatch(text):
        return (neo4j[1] or neo4j[2]).lower()
    word = re.sub(r"[\s-]+", "_", text.lower().lstrip("?#"))
    return re.sub(r"(?<=.)_(?:id|entity)$", "", word)


def role_of(name: object) -> int | None:
    """Return the role that a name is a word for: 0 subject, 1 predicate, 2 object; None if none.

    Examples
    --------
    >>> role_of("Relation"), role_of("year") is None
    (1, True)
    """
    return _role(_word(name))


def _role(word: str) -> int | None:
    return next((role for role, words in enumerate(_WORDS) if word in words), None)


def find_header(rows: Sequence[Row], arity: int) -> Header | None:
    """Return what the first row of a table is; None if it may be a header and may be a fact.

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
    if (bare := _without_quotes(rows)) is not None:
        # no subject is a literal, and quotes of the first row alone are those of a program
        header = find_header([(rows[0][0], bare), *islice(rows, 1, None)], arity)
        return None if header is None or not header.rows else header
    variables = all(map(is_variable, first))
    order = role_order(first) if arity == 3 else None
    if variables or order is not None:
        repeated = repeats(first, rows, as_is)
        return None if repeated else Header(1, order or as_is, variables)
    if arity == 3:
        # "relation" is hardly the name of a relation, and two such words are hardly a fact
        said = [i for i in as_is if _role(_word(first[i])) == i]
        if (1 in said or len(said) > 1) and not repeats(first, rows, said):
            return None
    return Header(0, as_is)


def find_header_of(rows: Sequence[Row], columns: Sequence[int]) -> Header | None:
    """Return what the first row is, where only some of its cells are read; None as `find_header`.

    Parameters
    ----------
    rows : sequence of Row
        Whole rows, at least one.
    columns : sequence of int
        The columns that are read.

    Examples
    --------
    >>> rows = [(1, ("head", "relation", "tail", "w")), (2, ("Ann", "knows", "Bob", "0.9"))]
    >>> find_header_of(rows, [0, 1, 3]).rows, find_header_of(rows[1:], [0, 1, 3]).rows
    (1, 0)
    """
    first = rows[0][1]
    header = find_header(rows, len(first))
    if header is None or header.rows:
        return header
    roles = roles_among(first)
    if roles is not None:
        return None if repeats(first, rows, roles) else Header(1, roles)
    return find_header([(n, tuple(row[i] for i in columns)) for n, row in rows], len(columns))


def is_variable(cell: str) -> bool:
    """Return whether a cell is a variable of SPARQL, such as ``?film``.

    Examples
    --------
    >>> is_variable("?film"), is_variable("film")
    (True, False)
    """
    return _VARIABLE.fullmatch(cell) is not None


def _without_quotes(rows: Sequence[Row]) -> tuple[str, ...] | None:
    """Return the words of a first row of literals over nodes of RDF, or over cells without quotes.

    None if it is another row.
    """
    first = rows[0][1]
    if not all(map(_LITERAL.fullmatch, first)):
        return None
    over_nodes = alone = False
    for number, (_, row) in enumerate(islice(rows, 1, None)):
        # a missing cell is None, which the types don't tell
        over_nodes = (over_nodes or not number) and str(row[0]).startswith(("<", "_:"))
        alone = (alone or not number) and not any(str(cell).startswith('"') for cell in row)
        if not (over_nodes or alone):
            return None
    return tuple(cell[1:-1] for cell in first) if over_nodes or alone else None


def repeats(first: tuple[str, ...], rows: Sequence[Row], columns: Iterable[int]) -> bool:
    """Return whether a later row has a word of the first one in the same column.

    Examples
    --------
    >>> repeats(("head", "tail"), [(1, ("head", "tail")), (2, ("Ann", "TAIL"))], [0, 1])
    True
    """
    words = [(i, first[i].strip().lower()) for i in columns]
    # rows that are shorter are refused when they are read
    return any(
        row[i].strip().lower() == word for _, row in rows[1:] for i, word in words if i < len(row)
    )


def looks_wide(rows: Iterable[Row], first: tuple[str, ...]) -> bool:
    """Return whether a table of three columns looks as if it had one column per property.

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
    return bool(_wide(rows, first))


def never_wide(rows: Iterable[Row], first: tuple[str, ...]) -> bool:
    """Return whether a table that begins with some rows doesn't look wide, whatever follows.

    Examples
    --------
    >>> never_wide([(2, ("Bob", "1980", "Rome"))], ("name", "born", "city"))
    False
    >>> never_wide([(2, ("Bob", "knows", "Ann")), (3, ("Bob", "likes", "Rome"))], ("A", "p", "B"))
    True
    """
    return _wide(rows, first) is False


def _wide(rows: Iterable[Row], first: tuple[str, ...]) -> bool | None:
    """Return True if a table looks wide, False if more rows change nothing, and None else."""
    if not all(isinstance(name, str) for name in first):
        # columns of a DataFrame that has only numbered them
        return False
    names, subjects, predicates = set(first), set[str](), set[str]()
    numbers, apart = not NUMBER.fullmatch(first[1]), True
    for _, row in rows:
        numbers = numbers and bool(NUMBER.fullmatch(row[1]))
        apart = apart and row[0] not in subjects and names.isdisjoint(row)
        if not (numbers or apart):
            return False
        subjects.add(row[0])
        predicates.add(row[1])
    return True if subjects and (numbers or len(predicates) > 1) else None


def unlike_the_rest(rows: Sequence[Row]) -> str | None:
    """Explain why the first row, which no word makes a header, may be one by the cells below it.

    It may be one if it holds words that don't occur again in their columns, and one of these holds
    numbers, or IRIs, in all other rows; or if it reads ``0 1 2``, as pandas has it over columns
    without names, and some other cell is no number.

    Parameters
    ----------
    rows : sequence of Row
        Rows of one length, at least one.

    Returns
    -------
    str or None
        The reason; None if it looks like the other rows, or there are none.

    Examples
    --------
    >>> unlike_the_rest([(1, ("country", "of", "value")), (2, ("Chad", "area", "1284"))])
    'the other rows hold numbers below value'
    >>> unlike_the_rest([(1, ("Ann", "knows", "Bob")), (2, ("Ann", "age", "42"))]) is None
    True
    """
    first, below = rows[0][1], rows[1:]
    if first == tuple(map(str, range(len(first)))):
        words = any(not NUMBER.fullmatch(cell) for _, row in below for cell in row)
        return "pandas writes it over columns without names" if words else None
    if not below or not all(map(_is_word, first)):
        return None
    for i, word in enumerate(first):
        for kind, holds in (("numbers", NUMBER.fullmatch), ("IRIs", _IRI.match)):
            if all(holds(row[i]) for _, row in below):
                again = repeats(first, rows, range(len(first)))
                return None if again else f"the other rows hold {kind} below {cut(word)}"
    return None


def rows_of_header(rows: Sequence[Row], options: TableOptions) -> int:
    """Return the number of rows of the header of a plain table, by its first rows.

    What these rules deny of the first rows, they deny of all: each needs all rows to agree.

    Raises
    ------
    UnsuitedError
        If another reader must decide.
    """
    if options.wide or options.columns is not None or options.terms == "n3":
        raise UnsuitedError
    # a longer row takes more than the first piece
    if len(rows) < 2:
        raise UnsuitedError
    arity, first = options.arity, rows[0][1]
    if first == role_names(arity):
        return 1
    # a row of literals over terms may be a header
    if all(cell.startswith('"') for cell in first):
        raise UnsuitedError
    # alone, so that it doesn't matter whether a word of it occurs again
    header = find_header(rows[:1], arity)
    if header is None or header.rows:
        raise UnsuitedError
    if options.wide is not None:
        return 0
    may_be_wide = arity == 3 and not never_wide(rows[1:], first)
    numbered = first == tuple(map(str, range(arity)))
    if may_be_wide or numbered or unlike_the_rest(rows) is not None:
        raise UnsuitedError
    return 0


def _is_word(cell: str) -> bool:
    return not (NUMBER.fullmatch(cell) or _IRI.match(cell) or cell.startswith(('"', "<", "_:")))
