"""Terms in the syntax of N-Triples, as the cells of tables hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

import pyoxigraph as ox

from capacity.database.terms.grammar import (
    BLANK_NAME,
    is_blank_name,
    lacks_language,
    triple_depth,
)
from capacity.database.terms.nodes import term_from_pyoxigraph, term_to_pyoxigraph
from capacity.database.terms.term import MAX_TRIPLE_DEPTH, NO_SETS, Term
from capacity.errors import InvalidArgumentError

# RDF 1.2 N-Triples, productions IRIREF, STRING_LITERAL_QUOTE, BLANK_NODE_LABEL, LANG_DIR and
# tripleTerm. A cell must be one term; one that holds a second term, or a comment, is refused.
_IRIREF = r"<(?:[^\x00-\x20<>\"{}|^`\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+>"
_STRING = r"\"(?:[^\x22\x5C\x0A\x0D]|\\.|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+\""
_ONE = (
    rf"{_IRIREF}|_:{BLANK_NAME}"
    rf"|{_STRING}(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?|\^\^{_IRIREF})?"
)
# the parser checks how the parts of a triple term nest
_TERM = re.compile(rf"{_ONE}|<<\((?:{_ONE}|<<\(|\)>>|[ \t])++(?<=\)>>)")
_BEGINS = re.compile(rf"{_STRING}|(<<\()")


def is_term(cell: str) -> bool:
    """Return whether a cell has the form of one N-Triples term.

    Examples
    --------
    >>> is_term("<http://x/a>"), is_term("Astrid")
    (True, False)
    """
    return _TERM.fullmatch(cell) is not None


def parse_n3(cells: Iterable[str]) -> dict[str, Term]:
    r"""Read N-Triples terms, one per cell; blank nodes keep their names.

    Parameters
    ----------
    cells : iterable of str
        Distinct cells.

    Returns
    -------
    dict of str to Term
        The term of each cell.

    Raises
    ------
    InvalidArgumentError
        If a cell isn't exactly one term; the message shows the first.

    Examples
    --------
    >>> parse_n3(["<http://x/a>", r'"a\tb"@en'])[r'"a\tb"@en']
    Term(kind='literal', text='a\tb', datatype='', language='en')
    >>> parse_n3(["<<(<x:a> <x:p> 'c' )>>".replace("'", '"')]).popitem()[1].text
    '<<( <x:a> <x:p> "c" )>>'
    """
    terms: dict[str, Term] = {}
    for cell in cells:
        quads, reason = [], "not one N-Triples term"
        # a triple term is the object of another one at most, so they nest as often as they begin
        if cell.count("<<(") > MAX_TRIPLE_DEPTH < sum(map(bool, _BEGINS.findall(cell))):
            reason = f"triple terms nest over {MAX_TRIPLE_DEPTH} deep"
        elif is_term(cell):
            try:
                quads = list(ox.parse(f"<x:s> <x:p> {cell} .", format=ox.RdfFormat.N_TRIPLES))
            except (SyntaxError, ValueError, MemoryError) as error:
                reason = str(error)
        if len(quads) != 1:
            raise InvalidArgumentError(
                f'A cell must hold one N-Triples term (<iri>, "text", "text"@en, _:name, '
                f"<<( s p o )>>); got {cell!r:.60} ({reason:.200}). Read plain text with "
                'table="long".'
            )
        terms[cell] = term_from_pyoxigraph(quads[0].object)
    return terms


def n3_of(term: Term) -> str:
    """Write a term in the syntax of N-Triples.

    Raises
    ------
    InvalidArgumentError
        If it has no form there that is read as the same term.
    """
    if term.kind not in ("label", "set"):
        node_of(term)
    return term.n3()


def node_of(term: Term) -> object:
    """Convert a term to a node of pyoxigraph that is read as the same term.

    Raises
    ------
    InvalidArgumentError
        If there is none, such as for an IRI with spaces.
    """
    if term.kind == "set":
        raise InvalidArgumentError(NO_SETS)
    if term.kind == "label":
        raise InvalidArgumentError(
            f"RDF has no form for the {term.kind} {term.text!r:.60}. Write a table, .tsv, .csv or "
            ".parquet, or give labels IRIs with `to_rdflib(db, base=...)`."
        )
    node = None
    if _may_be(term):
        with suppress(ValueError, SyntaxError, TypeError):
            node = term_to_pyoxigraph(term)
    if node is None or term_from_pyoxigraph(node) != term:
        raise InvalidArgumentError(
            f"RDF has no {term.kind} that is read as {tuple(term)!r:.100}. Fix the term: its IRI, "
            "name, datatype or language."
        )
    return node


def _may_be(term: Term) -> bool:
    """Return whether a term may be one of RDF, as far as nodes of pyoxigraph don't show."""
    if term.kind == "blank":
        return is_blank_name(term.text)
    if term.kind == "literal":
        return not lacks_language(term.datatype, term.language)
    return term.kind != "triple" or triple_depth(term.text) <= MAX_TRIPLE_DEPTH
