"""Tables as databases, cells as terms, and terms as cells: plain labels, or N-Triples terms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from capacity.database.facts import Database
from capacity.database.io.files.foreign import AS_TEXT
from capacity.database.io.table_options import TableOptions, TableTerms
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import layout_of
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.database.terms.grammar import XSD_STRING, is_term
from capacity.database.terms.nodes import n3_of, parse_n3
from capacity.database.terms.term import Term, label
from capacity.errors import DatabaseFormatError, InvalidArgumentError

_XSD = XSD_STRING.removesuffix("string")
_SCHEME = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:")
# Turtle's short forms of literals, which SPARQL results in TSV have
_SHORT = (
    (re.compile(r"[+-]?[0-9]+"), "integer"),
    (re.compile(r"[+-]?[0-9]*\.[0-9]+"), "decimal"),
    (re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++"), "double"),
    (re.compile(r"true|false"), "boolean"),
)
_UNBOUND = (
    "An empty cell among terms is a variable of SPARQL without a value: add FILTER(BOUND(?x)) to "
    "the query, or omit the row."
)


def recognised(cells: Iterable[str]) -> TableTerms | None:
    r"""Return the form of cells; None if they may be terms and may be labels.

    They are N-Triples terms if all of them are, and an IRI is among them; labels, if no cell is an
    IRI in angle brackets, and not all are N-Triples terms.

    Examples
    --------
    >>> recognised(["<http://x/a>", '"1"@en']), recognised(["a", '"1"']), recognised(['"a"', '"b"'])
    ('n3', 'label', None)
    """
    return form_of(*marks(cells))


def marks(cells: Iterable[str]) -> tuple[bool, bool]:
    """Return whether some cell is an IRI, and some is no term; those of parts can be united.

    If both are, the cells that follow aren't looked at.
    """
    some_iri = some_plain = False
    for cell in cells:
        term = _is_term(cell)
        some_iri = some_iri or (term and bool(_SCHEME.match(cell)))
        some_plain = some_plain or not term
        if some_iri and some_plain:
            break
    return some_iri, some_plain


def form_of(some_iri: bool, some_plain: bool) -> TableTerms | None:
    """Return the form of cells by their marks, as `recognised` does."""
    if some_iri and some_plain:
        return None
    return "n3" if some_iri else "label" if some_plain else None


def _is_term(cell: str) -> bool:
    # a relative IRI, as <Astrid>, is no term of N-Triples
    marked = cell.startswith(('"', "_:", "<<(")) or (cell[:1] == "<" and _SCHEME.match(cell))
    return bool(marked) and is_term(cell)


def read_rows(
    table: Table,
    options: TableOptions,
    *,
    multi: MultiPolicy | None = None,
    source: Source | None = None,
    allow_empty: bool = False,
) -> Database:
    """Read a table as facts.

    Parameters
    ----------
    table : Table
        Rows, with or without a header.
    options : TableOptions
        The caller's options for the table.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs.
    source : Source, optional
        The file.
    allow_empty : bool
        Whether a table without rows is an empty database, and no error.

    Raises
    ------
    DatabaseFormatError
        For rows of other lengths, a column that isn't there, a table without rows, a cell that
        isn't a term, and a table that can be read in two ways.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    layout = layout_of(table, options)
    rows = list(layout.facts(table))
    if not rows and allow_empty:
        none = np.zeros((0, options.arity), dtype=np.int64)
        return Database.from_ids([], none, arity=options.arity, source=source, allow_empty=True)
    if not rows:
        raise table.error("the table has no rows")
    return database_of_rows(
        table.name,
        rows,
        table.format,
        terms="n3" if layout.variables and options.terms is None else options.terms,
        short_forms=layout.variables,
        multi=multi,
        source=source,
    )


def database_of_rows(
    name: str,
    rows: Sequence[Row],
    format: str,
    *,
    terms: TableTerms | None = None,
    short_forms: bool = False,
    multi: MultiPolicy | None = None,
    source: Source | None = None,
) -> Database:
    """Make a database from rows of cells, at least one, that were checked to have one length.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    rows : sequence of Row
        Numbers of lines, and cells.
    format : str
        Format of the file.
    terms : {'label', 'n3'}, optional
        Form of the cells; by default it is recognised.
    short_forms : bool
        Whether ``42`` and ``true`` are literals, as in SPARQL results.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs.
    source : Source, optional
        The file.

    Raises
    ------
    DatabaseFormatError
        For a cell that isn't a term, or cells that may be labels and may be terms.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    ids: dict[str, int] = {}
    tuples = [[ids.setdefault(cell, len(ids)) for cell in row] for _, row in rows]
    numbers = np.array(tuples, dtype=np.int64)
    arity = numbers.shape[1]
    form = terms or recognised(ids)
    if form is None:
        raise uncertain(name, format, ids, rows)
    if form == "label":
        tokens = _labels(name, format, ids, rows)
        return Database.from_ids(tokens, numbers, arity=arity, multi=multi, source=source)
    full = {cell: in_full(cell) if short_forms else cell for cell in ids}
    try:
        parsed = parse_n3(dict.fromkeys(full.values()))
    except ValueError as error:
        wrong = next(cell for cell, term in full.items() if reason_against(term))
        raise no_term(name, format, wrong, str(error), rows) from None
    if arity == 3:
        _refuse_literal_predicates(name, format, rows, {c: parsed[full[c]].kind for c in ids})
    # "a" and "a"^^xsd:string are two cells and one term
    distinct = {term: i for i, term in enumerate(dict.fromkeys(parsed.values()))}
    renumber = np.array([distinct[parsed[full[cell]]] for cell in ids], dtype=np.int64)
    return Database.from_ids(
        list(distinct), renumber[numbers], arity=arity, multi=multi, source=source
    )


def _labels(name: str, format: str, cells: Iterable[str], rows: Iterable[Row]) -> list[Term]:
    tokens: list[Term] = []
    for cell in cells:
        try:
            tokens.append(label(cell))
        except InvalidArgumentError as error:
            raise no_term(name, format, cell, str(error), rows) from None
    return tokens


def _refuse_literal_predicates(
    name: str, format: str, rows: Iterable[Row], kinds: Mapping[str, str]
) -> None:
    wrong = next((row for row in rows if kinds[row[1][1]] == "literal"), None)
    if wrong is not None:
        raise literal_predicate(name, format, *wrong)


def literal_predicate(
    name: str, format: str, line: int | None, row: tuple[str, ...]
) -> DatabaseFormatError:
    """Make the error for a fact whose predicate is a literal, which RDF doesn't have."""
    return DatabaseFormatError(
        name,
        f"the predicate of a fact of RDF must not be a literal; it is {row[1]!r:.60}",
        format=format,
        line=line,
        advice='Choose the columns in order with `columns`, or pass table="long": all cells are '
        "then labels.",
    ).about_row()


def no_term(
    name: str, format: str, cell: str, reason: str, rows: Iterable[Row]
) -> DatabaseFormatError:
    """Make the error for a cell that isn't a term, with the line of the first row that has it."""
    line, advice = next(line for line, row in rows if cell in row), None
    if not cell:
        reason, advice = "a cell must hold one N-Triples term; got ''", _UNBOUND
    error = DatabaseFormatError(name, reason, format=format, line=line, advice=advice)
    return error.about_row()


def in_full(cell: str) -> str:
    """Write a short form of a literal, such as ``42``, as an N-Triples term; others as they are."""
    kind = next((kind for form, kind in _SHORT if form.fullmatch(cell)), None)
    return cell if kind is None else f'"{cell}"^^<{_XSD}{kind}>'


def reason_against(text: str) -> str:
    """Explain why a text is no term of N-Triples; empty if it is one."""
    try:
        parse_n3([text])
    except ValueError as error:
        return str(error)
    return ""


def uncertain(
    name: str, format: str, cells: Iterable[str], rows: Iterable[Row]
) -> DatabaseFormatError:
    """Make the error for cells of which some may be terms and some may be labels."""
    found: dict[bool, str] = {}
    for cell in cells:
        found.setdefault(_is_term(cell), cell)
        if len(found) == 2:
            break
    term, plain = found[True], found.get(False)
    line = next(line for line, row in rows if (term if plain is None else plain) in row)
    if plain is None:
        reason = f"all cells, such as {term:.60}, may be terms of RDF, or labels with quotes"
        advice = (
            'Pass table="n3" for terms, table="long" for labels. TSV has no quoting: if quotes '
            f'are no part of the names, pass pd.read_csv(path, sep="\\t", {AS_TEXT}) to '
            "from_pandas."
        )
    else:
        reason = f"some cells are N-Triples terms, such as {term:.60}, and {plain!r:.60} isn't one"
        advice = 'Fix the cell, or pass table="long": all cells are then labels.'
        if not plain:
            advice = _UNBOUND
    return DatabaseFormatError(name, reason, format=format, line=line, advice=advice)


def cells_of(db: Database, terms: TableTerms | None) -> tuple[TableTerms, Iterator[list[str]]]:
    """Write the terms of the facts as cells; by default labels if all tokens are labels.

    Returns
    -------
    form : {'label', 'n3'}
        Form of the cells.
    rows : iterator of list of str
        The cells of each fact.

    Raises
    ------
    InvalidArgumentError
        If a token has no such form, so that the table would be read as other facts.
    """
    plain = [t.kind == "label" for t in db.tokens]
    form = terms or ("label" if all(plain) else "n3")
    if form == "n3":
        texts = [n3_of(token) for token in db.tokens]
        predicates = db.predicates if db.arity == 3 else ()
        for predicate in predicates:
            if predicate.kind == "literal":
                raise InvalidArgumentError(
                    f"In a table of terms no predicate is a literal; one is {predicate!s:.60}. "
                    "Make a database of IRIs or labels first."
                )
    elif all(plain):
        texts = [token.text for token in db.tokens]
    else:
        token = db.tokens[plain.index(False)]
        raise InvalidArgumentError(
            f"As a label the {token.kind} {token!s:.60} would lose its kind. Write it with "
            '`terms="n3"`, or make a database of labels first.'
        )
    return form, ([texts[i] for i in row] for row in db.token_tuples.tolist())


def refuse_labels_like_terms(db: Database) -> None:
    """Refuse labels that a table of them would be taken for terms of RDF by.

    Raises
    ------
    InvalidArgumentError
        If the labels have the form of N-Triples terms, all of them or with an IRI among them.
    """
    if db.n_facts and recognised(token.text for token in db.tokens) != "label":
        term = next(token.text for token in db.tokens if _is_term(token.text))
        raise InvalidArgumentError(
            f"In a table the label {term!r:.60} would be read as a term of RDF. Pass "
            'terms="label", and read the table with table="long".'
        )
