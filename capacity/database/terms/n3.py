"""Terms in the syntax of N-Triples, as the cells of tables hold them."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.database.terms.grammar import parsed_term
from capacity.database.terms.nodes import term_from_pyoxigraph, term_to_pyoxigraph
from capacity.database.terms.term import NO_SETS, Term
from capacity.errors import InvalidArgumentError


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
