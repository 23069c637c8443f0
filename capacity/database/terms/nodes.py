"""Terms from nodes of pyoxigraph and rdflib and back, and as N-Triples has them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from capacity.checks import shown
from capacity.database.terms.grammar import XSD_STRING, parsed_term, written
from capacity.database.terms.term import NO_SETS, Term, label, literal_node, unchecked
from capacity.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    import rdflib


_NODES = (ox.NamedNode, ox.Literal, ox.BlankNode, ox.Triple)


def term_from_pyoxigraph(node: object) -> Term:
    """Convert a node that a parser of pyoxigraph has made; `as_term` checks other ones.

    Raises
    ------
    InvalidTypeError
        If it is no node.
    """
    if isinstance(node, ox.NamedNode):
        return unchecked("iri", node.value)
    if isinstance(node, ox.Literal):
        if node.language:
            end = "" if node.direction is None else f"--{node.direction}"
            return unchecked("literal", node.value, "", node.language.lower() + end)
        datatype = node.datatype.value
        return unchecked("literal", node.value, "" if datatype == XSD_STRING else datatype)
    if isinstance(node, ox.BlankNode):
        return unchecked("blank", node.value)
    if isinstance(node, ox.Triple):
        return unchecked("triple", written(node))
    raise InvalidTypeError(f"A term of RDF must be a node of pyoxigraph; got {shown(node)}.")


def term_to_pyoxigraph(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
    """Convert an IRI, literal, blank node or triple term to a pyoxigraph node.

    Raises
    ------
    InvalidArgumentError
        For labels and sets, which have no form in RDF.

    Examples
    --------
    >>> term_to_pyoxigraph(Term("literal", "chat", language="fr")).language
    'fr'
    """
    if term.kind == "iri":
        return ox.NamedNode(term.text)
    if term.kind == "blank":
        return ox.BlankNode(term.text)
    if term.kind == "literal":
        return literal_node(term)
    (quad,) = ox.parse(f"<x:s> <x:p> {term.n3()} .", format=ox.RdfFormat.N_TRIPLES)
    return quad.object


def term_from_rdflib(node: object) -> Term:
    """Convert an rdflib node (anything with an ``n3`` method that is a URIRef, Literal or BNode).

    Raises
    ------
    InvalidTypeError
        For any other type; the message lists the accepted ones.
    InvalidArgumentError
        For what rdflib lets in and no format can write, such as an IRI with a space.
    """
    # a node of rdflib exists only where rdflib is imported
    if "rdflib" in sys.modules:
        import rdflib

        if isinstance(node, rdflib.Literal):
            return Term("literal", str(node), str(node.datatype or ""), node.language or "")
        if isinstance(node, rdflib.URIRef):
            return Term("iri", str(node))
        if isinstance(node, rdflib.BNode):
            return Term("blank", str(node))
    raise InvalidTypeError(
        f"A term must be a str or an integer (a label), a Term, or a node of rdflib or pyoxigraph; "
        f"got {node!r:.60} of type {type(node).__name__}. Turn other values into text, str(x)."
    )


def term_to_rdflib(term: Term) -> rdflib.URIRef | rdflib.Literal | rdflib.BNode:
    """Convert an IRI, literal or blank node to an rdflib node, with its lexical form unchanged.

    Raises
    ------
    InvalidArgumentError
        For what rdflib has no form of: literals with a base direction, triple terms, and languages
        that it refuses.
    """
    import rdflib

    if term.kind == "triple" or "--" in term.language:
        what = "triple terms" if term.kind == "triple" else "literals with a base direction"
        raise InvalidArgumentError(
            f"rdflib has no {what} (RDF 1.2); got {term!s:.60}. A table holds them: "
            'to_pandas(db, terms="n3").'
        )
    if term.kind == "iri":
        return rdflib.URIRef(term.text)
    if term.kind == "blank":
        return rdflib.BNode(term.text)
    datatype = rdflib.URIRef(term.datatype) if term.datatype else None
    node = None
    with suppress(TypeError, ValueError):
        node = rdflib.Literal(
            term.text, datatype=datatype, lang=term.language or None, normalize=False
        )
    if node is None or term_from_rdflib(node) != term:
        raise InvalidArgumentError(
            f"rdflib has no {term.kind} that is read as {tuple(term)!r:.100}. Fix the term: its "
            "datatype or language."
        )
    return node


def as_term(value: object) -> Term:
    """Convert a user's value to a term.

    A plain str is a label, and so is an integer; nodes of rdflib and pyoxigraph are what they are.

    Raises
    ------
    InvalidTypeError
        For any other type; the message lists the accepted ones.
    InvalidArgumentError
        For a node or a text that no format can write.

    Examples
    --------
    >>> as_term(7) == as_term("7") == as_term(np.int64(7))
    True
    """
    if isinstance(value, Term):
        return value
    # rdflib's nodes are subclasses of str, so isinstance would take an IRI for a label
    if type(value) in (str, np.str_):
        return label(str(value))
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return label(str(int(value)))
    if isinstance(value, _NODES):
        # pyoxigraph itself lets in names of blank nodes that its parsers don't
        return Term(*term_from_pyoxigraph(value))
    return term_from_rdflib(value)


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
        try:
            terms[cell] = term_from_pyoxigraph(parsed_term(cell))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f'A cell must hold one N-Triples term (<iri>, "text", "text"@en, _:name, '
                f"<<( s p o )>>); got {cell!r:.60} ({error!s:.200}). Read plain text with "
                'table="long".'
            ) from None
    return terms


def n3_of(term: Term) -> str:
    """Write a term in the syntax of N-Triples.

    Raises
    ------
    InvalidArgumentError
        If it has no form there that is read as the same term.
    """
    # those of a parser weren't checked
    return Term(*term).n3()


def node_of(term: Term) -> object:
    """Convert a term to a node of pyoxigraph that is read as the same term.

    Raises
    ------
    InvalidArgumentError
        If there is none, as of a label.
    """
    if term.kind == "set":
        raise InvalidArgumentError(NO_SETS)
    if term.kind == "label":
        raise InvalidArgumentError(
            f"RDF has no form for the {term.kind} {term.text!r:.60}. Write a table, .tsv, .csv or "
            ".parquet, or make IRIs of labels with `to_rdflib(db, base=...)`."
        )
    # those of a parser weren't checked
    return term_to_pyoxigraph(Term(*term))
