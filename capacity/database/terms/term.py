"""Terms: the subjects, predicates and objects of facts.

A term is an IRI, a literal or a blank node of RDF, a triple term of RDF 1.2, a plain table label,
or (under the multi-valued policy ``set``) a set of values. Its *kind* is part of its identity: the
IRI ``<http://x/1>``, the literal ``"http://x/1"`` and the label ``http://x/1`` are three tokens.

Literals follow RDF 1.1 term identity: two literals are equal when their lexical form, datatype and
language tag are; a plain literal is an ``xsd:string``; ``"01"^^xsd:integer`` is not
``"1"^^xsd:integer``. Language tags compare in lower case (RDF 1.1 Concepts, section 3.3).

References
----------
RDF 1.1 Concepts and Abstract Syntax, section 3; RDF 1.1 N-Triples, section 7; RDF 1.2 Concepts and
Abstract Data Model, section 3.5 (triple terms).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import pyoxigraph as ox

from capacity.errors import InvalidArgumentError

Kind: TypeAlias = Literal["iri", "literal", "blank", "label", "set", "triple"]
# in the text of a triple term
LITERAL_OR_IRI = re.compile(r'"(?:[^"\\]|\\.)*+"|<([^<>"\s]+)>')
# parsers and printers recur into triple terms
MAX_TRIPLE_DEPTH = 128
NO_SETS = (
    "No file holds sets of objects, which the policy `set` makes. Write the facts as they are under"
    ' multi="keep", and say multi="set" when reading them.'
)
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


class Term(NamedTuple):
    """A subject, predicate or object, with its kind; terms sort by kind, then by text.

    Parameters
    ----------
    kind : {'iri', 'literal', 'blank', 'label', 'set', 'triple'}
        Kind of the term, part of its identity.
    text : str
        The IRI, the lexical form, the blank node's name, the label, the members of the set, or the
        triple term in N-Triples, ``<<( s p o )>>``.
    datatype : str
        Datatype IRI of a literal, empty for a plain or language-tagged one.
    language : str
        Language tag of a literal in lower case (RDF 1.2's base direction after ``--``).

    Examples
    --------
    >>> Term("literal", "chat", language="fr").n3()
    '"chat"@fr'
    >>> Term("label", "Astrid") == Term("literal", "Astrid")
    False
    """

    kind: Kind
    text: str
    datatype: str = ""
    language: str = ""

    def n3(self) -> str:
        """Write the term in the syntax of N-Triples.

        Raises
        ------
        InvalidArgumentError
            For labels and sets, which have no form in N-Triples, and for literals that are none of
            RDF, such as one of the language ``zh_TW``.
        """
        if self.kind == "iri":
            return f"<{self.text}>"
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "literal":
            try:
                return str(literal_node(self))
            except ValueError as error:
                raise InvalidArgumentError(
                    f"RDF has no literal {tuple(self)!r:.100} ({error}). Fix its text, datatype "
                    "or language."
                ) from None
        if self.kind == "triple":
            return self.text
        if self.kind == "set":
            raise InvalidArgumentError(NO_SETS)
        raise InvalidArgumentError(
            f"N-Triples has no form for the {self.kind} {self.text!r:.60}. Write the database with "
            '`terms="label"`, or give its labels IRIs with `to_rdflib(db, base=...)`.'
        )

    def __str__(self) -> str:
        if self.kind in ("label", "set"):
            return self.text
        try:
            return self.n3()
        except InvalidArgumentError:
            # for people, who are told of it
            return repr(tuple(self))


def label(text: str) -> Term:
    """Make a term of a plain table label.

    Parameters
    ----------
    text : str
        The label.

    Returns
    -------
    Term
        Of kind ``label``.

    Examples
    --------
    >>> label("Astrid")
    Term(kind='label', text='Astrid', datatype='', language='')
    """
    return Term("label", text)


def literal_node(term: Term) -> ox.Literal:
    """Convert a literal to a pyoxigraph node."""
    if term.language:
        language, _, direction = term.language.partition("--")
        if direction:
            return ox.Literal(term.text, language=language, direction=ox.BaseDirection(direction))
        return ox.Literal(term.text, language=language)
    if term.datatype:
        return ox.Literal(term.text, datatype=ox.NamedNode(term.datatype))
    return ox.Literal(term.text)


class Ids(dict[Any, int]):
    """Numbers 0, 1, ... for keys, in order of first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = fresh = len(self)
        return fresh


def display(term: Term, prefixes: Mapping[str, str]) -> str:
    """Short name for people: a label or a literal's text as it is, an IRI as a qname if it has one.

    Local names alone collide (up to 13 % of them in real ontologies), so an IRI without a prefix
    is shown whole.
    """
    if term.kind == "triple":
        # a literal may hold what looks like an IRI
        return LITERAL_OR_IRI.sub(
            lambda found: (
                found[0] if found[1] is None else display(Term("iri", found[1]), prefixes)
            ),
            term.text,
        )
    if term.kind != "iri":
        return term.text if term.kind != "blank" else f"_:{term.text}"
    matches = [(len(iri), name, iri) for name, iri in prefixes.items() if term.text.startswith(iri)]
    if matches:
        _, name, iri = max(matches)
        local = term.text[len(iri) :]
        if local and not re.search(r"[/#?]", local):
            return f"{name}:{local}"
    return f"<{term.text}>"


def local_name(term: Term) -> str:
    """Return the part of an IRI after its last ``#`` or ``/``; other terms have none.

    Examples
    --------
    >>> local_name(Term("iri", "http://example.org/people#Astrid"))
    'Astrid'
    """
    return re.split("[#/]", term.text)[-1] if term.kind == "iri" else ""
