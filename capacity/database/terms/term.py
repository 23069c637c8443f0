"""Terms: the subjects, predicates and objects of facts.

A term is an IRI, a literal or a blank node of RDF, a triple term of RDF 1.2, a plain table label,
or (under the multi-valued policy ``set``) a set of values. Its *kind* is part of its identity: the
IRI ``<http://x/1>``, the literal ``"http://x/1"`` and the label ``http://x/1`` are three tokens.

Names of blank nodes are local to a file. If each has a label, the labels are kept. If some have
none, as ``[ ]`` in Turtle, the parser names these at random; and JSON-LD has labels that no other
format has. All are then renamed ``b0``, ``b1``, ... in the order of the file
(`with_stable_names`), so that every read returns the same facts.

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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import pyoxigraph as ox

from capacity.database.terms.grammar import BLANK_NAME, is_blank_name, well_formed
from capacity.errors import InvalidArgumentError

Kind: TypeAlias = Literal["iri", "literal", "blank", "label", "set", "triple"]
# in the text of a triple term
LITERAL_OR_IRI = re.compile(r'"(?:[^"\\]|\\.)*+"|<([^<>"\s]+)>')
NO_SETS = (
    "No file holds sets of objects, which the policy `set` makes. Write the facts as they are under"
    ' multi="keep", and pass multi="set" when reading them.'
)


class _Fields(NamedTuple):
    kind: Kind
    text: str
    datatype: str = ""
    language: str = ""


class Term(_Fields):
    """A subject, predicate or object, with its kind; terms sort by kind, then by text.

    A term is one that files hold: what no format can write, such as an IRI with a space, is
    refused. What RDF takes for one term is one: ``xsd:string`` is the datatype of a plain literal,
    and is omitted, as ``rdf:langString`` is beside a language.

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
        Language tag of a literal, kept in lower case (RDF 1.2's base direction after ``--``).

    Raises
    ------
    InvalidArgumentError
        For an IRI that is relative or has characters that IRIs haven't, a blank node's name, a
        datatype, a language or a triple term that RDF hasn't, a literal of the datatype
        ``rdf:langString`` without a language, a text without a form in UTF-8, another kind, or a
        datatype or language of what isn't a literal. Labels may be any other text.
    InvalidTypeError
        If one of the four isn't a str.

    Examples
    --------
    >>> Term("literal", "chat", language="fr").n3()
    '"chat"@fr'
    >>> Term("label", "Astrid") == Term("literal", "Astrid")
    False
    """

    __slots__ = ()

    def __new__(cls, kind: Kind, text: str, datatype: str = "", language: str = "") -> Term:
        """Make a term, or refuse it."""
        return tuple.__new__(cls, well_formed(kind, text, datatype, language))

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Term:  # type: ignore[override]
        # `_replace` makes its terms by this
        return cls(*iterable)

    def n3(self) -> str:
        """Write the term in the syntax of N-Triples.

        Raises
        ------
        InvalidArgumentError
            For labels and sets, which have none.
        """
        if self.kind == "iri":
            return f"<{self.text}>"
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "literal":
            return str(literal_node(self))
        if self.kind == "triple":
            return self.text
        if self.kind == "set":
            raise InvalidArgumentError(NO_SETS)
        raise InvalidArgumentError(
            f"N-Triples has no form for the {self.kind} {self.text!r:.60}. Write the database with "
            '`terms="label"`, or make IRIs of its labels with `to_rdflib(db, base=...)`.'
        )

    def __str__(self) -> str:
        return self.text if self.kind in ("label", "set") else self.n3()


def unchecked(kind: Kind, text: str, datatype: str = "", language: str = "") -> Term:
    """Make a term of fields that a parser has checked, or a `Term` had, and that are many.

    Parameters are those of `Term`.

    Examples
    --------
    >>> unchecked("iri", "http://example.org/a") == Term("iri", "http://example.org/a")
    True
    """
    return tuple.__new__(Term, (kind, text, datatype, language))


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
    # a table may have millions of them
    plain = type(text) is str and text.isascii()
    return unchecked("label", text) if plain else Term("label", text)


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
                found[0] if found[1] is None else display(unchecked("iri", found[1]), prefixes)
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


# a triple term holds names outside of its literals and IRIs
_IN_TRIPLE = re.compile(r'"(?:[^"\\]|\\.)*+"|<[^<>"]*>|_:(?P<name>' + BLANK_NAME + ")")
# as pyoxigraph names anonymous nodes: a random number of 128 bits whose leading zeros are omitted
ANONYMOUS = "[a-f][0-9a-f]{15,31}"
# what is in such a label of JSON-LD
OF_JSON = ":"
_ANONYMOUS = re.compile(ANONYMOUS)


def blank_names(terms: Iterable[Term]) -> list[str]:
    """List the names of blank nodes, each once, in the order of the terms.

    Examples
    --------
    >>> blank_names([Term("blank", "a"), Term("triple", "<<( _:b <x:p> _:a )>>")])
    ['a', 'b']
    """
    names: dict[str, None] = {}
    for term in terms:
        if term.kind == "blank":
            names[term.text] = None
        elif term.kind == "triple":
            found = _IN_TRIPLE.finditer(term.text)
            names.update(dict.fromkeys(one["name"] for one in found if one["name"]))
    return list(names)


def rename_blank_nodes(term: Term, names: Mapping[str, str]) -> Term:
    """Rename the blank nodes of a term.

    Examples
    --------
    >>> rename_blank_nodes(Term("triple", '<<( _:a <x:p> "_:a" )>>'), {"a": "b0"}).text
    '<<( _:b0 <x:p> "_:a" )>>'
    """
    if term.kind == "blank":
        return unchecked("blank", names[term.text])
    if term.kind == "triple":
        return unchecked("triple", _IN_TRIPLE.sub(
            lambda one: f"_:{names[one['name']]}" if one["name"] else one[0], term.text
        ))  # fmt: skip
    return term


def with_stable_names(terms: Sequence[Term]) -> Sequence[Term]:
    """Rename all blank nodes ``b0``, ``b1``, ... if the parser named one so that it can't stay.

    Examples
    --------
    >>> with_stable_names([Term("blank", "a"), Term("blank", "d" * 32)])[1].text
    'b1'
    """
    found = blank_names(terms)
    if not any(_ANONYMOUS.fullmatch(name) or not is_blank_name(name) for name in found):
        return terms
    names = {name: f"b{i}" for i, name in enumerate(found)}
    return [rename_blank_nodes(term, names) for term in terms]
