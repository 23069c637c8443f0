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
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pyoxigraph as ox

from capacity.errors import InvalidArgumentError, InvalidTypeError, UnknownTokenError
from capacity.limits import shown
from capacity.options import nearest

if TYPE_CHECKING:
    import rdflib

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
            For labels and sets, which have no form in N-Triples.
        """
        if self.kind == "iri":
            return f"<{self.text}>"
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "literal":
            return str(_to_literal(self))
        if self.kind == "triple":
            return self.text
        if self.kind == "set":
            raise InvalidArgumentError(NO_SETS)
        raise InvalidArgumentError(
            f"N-Triples has no form for the {self.kind} {self.text!r:.60}. Write the database with "
            '`terms="label"`, or give its labels IRIs with `to_rdflib(db, base=...)`.'
        )

    def __str__(self) -> str:
        return self.text if self.kind in ("label", "set") else self.n3()


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


def _to_literal(term: Term) -> ox.Literal:
    if term.language:
        language, _, direction = term.language.partition("--")
        if direction:
            return ox.Literal(term.text, language=language, direction=ox.BaseDirection(direction))
        return ox.Literal(term.text, language=language)
    if term.datatype:
        return ox.Literal(term.text, datatype=ox.NamedNode(term.datatype))
    return ox.Literal(term.text)


def _literal(text: str, datatype: str, language: str) -> Term:
    plain = bool(language) or datatype in ("", XSD_STRING)
    return Term("literal", text, "" if plain else datatype, language.lower())


def term_from_pyoxigraph(node: object) -> Term:
    """Convert a pyoxigraph node.

    Raises
    ------
    InvalidTypeError
        If it is no node.
    """
    if isinstance(node, ox.NamedNode):
        return Term("iri", node.value)
    if isinstance(node, ox.Literal):
        language = node.language or ""
        if node.direction is not None:
            language += f"--{node.direction}"
        return _literal(node.value, node.datatype.value, language)
    if isinstance(node, ox.BlankNode):
        return Term("blank", node.value)
    if isinstance(node, ox.Triple):
        s, p, o = (
            term_from_pyoxigraph(part).n3() for part in (node.subject, node.predicate, node.object)
        )
        return Term("triple", f"<<( {s} {p} {o} )>>")
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
        return _to_literal(term)
    (quad,) = ox.parse(f"<x:s> <x:p> {term.n3()} .", format=ox.RdfFormat.N_TRIPLES)
    return quad.object


def term_from_rdflib(node: object) -> Term:
    """Convert an rdflib node (anything with an ``n3`` method that is a URIRef, Literal or BNode).

    Raises
    ------
    InvalidTypeError
        For any other type; the message lists the accepted ones.
    """
    # a node of rdflib exists only where rdflib is imported
    if "rdflib" in sys.modules:
        import rdflib

        if isinstance(node, rdflib.Literal):
            return _literal(str(node), str(node.datatype or ""), node.language or "")
        if isinstance(node, rdflib.URIRef):
            return Term("iri", str(node))
        if isinstance(node, rdflib.BNode):
            return Term("blank", str(node))
    raise InvalidTypeError(
        f"A term must be a str (a label), a Term, or an rdflib URIRef, Literal or BNode; got "
        f"{node!r:.60} of type {type(node).__name__}. Turn numbers into text first, str(x)."
    )


def term_to_rdflib(term: Term) -> rdflib.URIRef | rdflib.Literal | rdflib.BNode:
    """Convert an IRI, literal or blank node to an rdflib node, with its lexical form unchanged.

    Raises
    ------
    InvalidArgumentError
        For what rdflib has no form of: literals with a base direction, and triple terms.
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
    return rdflib.Literal(
        term.text,
        datatype=rdflib.URIRef(term.datatype) if term.datatype else None,
        lang=term.language or None,
        normalize=False,
    )


def as_term(value: object) -> Term:
    """Convert a user's value to a term: a `Term`, a plain str (a label), or an rdflib node."""
    if isinstance(value, Term):
        return value
    # rdflib's nodes are subclasses of str, so isinstance would take an IRI for a label
    return label(value) if type(value) is str else term_from_rdflib(value)


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


def position(
    value: object,
    vocabulary: tuple[Term, ...],
    prefixes: Mapping[str, str],
    labels: Callable[[], Mapping[Term, Iterable[str]]],
    what: str,
) -> int:
    """Find the index of a term in a vocabulary.

    Parameters
    ----------
    value : Term, rdflib node, or str
        A str stands for the label of that text, for the only term with that text or short name
        (`display`), for the only IRI with that local name, or else for the only term with that
        label.
    vocabulary : tuple of Term
        The subjects, the predicates or the objects of a database.
    prefixes : mapping of str to str
        Namespace of each prefix, for short names.
    labels : callable
        Function that returns the labels of terms; it is called if no other name is found.
    what : str
        Name of such a term, for messages: ``subject``, or another.

    Raises
    ------
    UnknownTokenError
        If no term has this name, or several do.
    """
    term = as_term(value)
    if term in vocabulary:
        return vocabulary.index(term)
    names = [(display(t, prefixes), t.text, local_name(t)) for t in vocabulary]
    every: list[tuple[str, ...]] = list(names)
    for stage in range(3):
        if stage == 2:
            labelled = labels()
            known = [tuple(labelled.get(t, ())) for t in vocabulary]
            every += known
        else:
            known = [names_of[2:] if stage else names_of[:2] for names_of in names]
        # the empty text is the name of a literal at most, and no local name
        found = [i for i, names_of in enumerate(known) if value in names_of and value != ""]
        if len(found) == 1:
            return found[0]
        if found:
            some = ", ".join(str(vocabulary[i]) for i in found[:3])
            raise UnknownTokenError(
                f"{len(found)} {what}s are called {value!r:.60} in the facts, such as {some}. Give "
                "the IRI, or a Term."
            )
    known_names = dict.fromkeys(name for names_of in every for name in names_of if name)
    hint = nearest(value, known_names, most=3)
    advice = hint or " Give an IRI, a prefixed name, a local name or a label that the facts have."
    raise UnknownTokenError(f"No {what} is called {value!r:.60} in the facts.{advice}")


def local_name(term: Term) -> str:
    """Return the part of an IRI after its last ``#`` or ``/``; other terms have none.

    Examples
    --------
    >>> local_name(Term("iri", "http://example.org/people#Astrid"))
    'Astrid'
    """
    return re.split("[#/]", term.text)[-1] if term.kind == "iri" else ""
