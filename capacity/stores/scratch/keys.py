"""Terms as texts, their keys, and as integers, their ids, in the temporary database.

A key has the kind of a term as its first character, and else is its form in N-Triples, which is
the same for equal terms. An id is a hash of the key, with the kind in its last digit. That no two
terms share an id is checked, so that counts of ids are counts of terms, with no error; if two do,
which one in a thousand files of 10^8 terms may have, other hashes, of twice the length, are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from secrets import token_hex

import pyoxigraph as ox

from capacity.database.choosing.criteria import has_blank
from capacity.database.terms.nodes import parse_n3, term_from_pyoxigraph
from capacity.database.terms.term import Term, blank_names, rename_blank_nodes, unchecked
from capacity.stores.scratch.scratch import Scratch

# the last digits of ids, in base 8
IRI, LITERAL, BLANK, TRIPLE, TRIPLE_WITH_BLANK, LABEL = range(6)
_FIRST = {"<": IRI, '"': LITERAL, "_": BLANK, "t": TRIPLE, "b": TRIPLE_WITH_BLANK, "=": LABEL}
_KIND = "case {key}[1] " + " ".join(f"when '{c}' then {n}" for c, n in _FIRST.items()) + " end"
# terms without a character that is special anywhere: no escape, no tag, no port, no query
_PLAIN = re.compile(
    r"<https?://[A-Za-z0-9.-]+(?:/[A-Za-z0-9_./-]*)?(?:#[A-Za-z0-9_./-]*)?>"
    r"|\"[ !#-\[\]-~]*\""
)
_SHORT = "hash({key})"
# 128 bits, of two hashes that nobody can foresee
_LONG = "hash(? || {key})::uhugeint * 18446744073709551616 + hash(? || {key})"
_ATTEMPTS = (_SHORT, _LONG, _LONG)


def key_of(term: Term, file: int | None = None) -> str:
    """Return the key of a term; with the number of a file, in which its blank nodes are.

    Examples
    --------
    >>> key_of(Term("iri", "x:a")), key_of(Term("label", "a")), key_of(Term("blank", "a"), 2)
    ('<x:a>', '=a', '_:f2.a')
    """
    if file is not None and has_blank(term):
        names = {name: f"f{file}.{name}" for name in blank_names([term])}
        term = rename_blank_nodes(term, names)
    if term.kind == "label":
        return f"={term.text}"
    first = "" if term.kind != "triple" else "b" if has_blank(term) else "t"
    return first + term.n3()


def keys_of_nodes(nodes: Iterable[object], file: int | None = None) -> list[str]:
    """Return the keys of nodes of pyoxigraph."""
    if file is None:
        # the form of a node is its key, but for a triple term's
        return [
            str(node) if type(node) is not ox.Triple else key_of(term_from_pyoxigraph(node))
            for node in nodes
        ]
    return [
        str(node)
        if type(node) is not ox.Triple and type(node) is not ox.BlankNode
        else key_of(term_from_pyoxigraph(node), file)
        for node in nodes
    ]


def keys_of_quads(quads: Iterable[ox.Quad], file: int | None = None) -> list[list[str]]:
    """Return the keys of subjects, of predicates and of objects."""
    given = list(quads)
    # not by tuples, which the collector of cycles would walk through
    roles = (
        [quad.subject for quad in given],
        [quad.predicate for quad in given],
        [quad.object for quad in given],
    )
    return [keys_of_nodes(nodes, file) for nodes in roles]


def is_key(cell: str) -> bool:
    """Return whether a cell is plainly a term that is its own key; others have to be parsed.

    Examples
    --------
    >>> is_key("<http://example.org/a#b>"), is_key('"two words"'), is_key('"a"@EN')
    (True, True, False)
    """
    return _PLAIN.fullmatch(cell) is not None


def term_of(key: str) -> Term:
    """Return the term of a key.

    Examples
    --------
    >>> term_of('"a"@en')
    Term(kind='literal', text='a', datatype='', language='en')
    >>> term_of("=a")
    Term(kind='label', text='a', datatype='', language='')
    """
    kind = kind_of(key)
    if kind == LABEL:
        return unchecked("label", key[1:])
    if kind in (TRIPLE, TRIPLE_WITH_BLANK):
        return unchecked("triple", key[1:])
    if kind == IRI:
        return unchecked("iri", key[1:-1])
    return unchecked("blank", key[2:]) if kind == BLANK else parse_n3([key])[key]


def kind_of(key: str) -> int:
    """Return the kind of the term of a key, a digit in base 8."""
    return _FIRST[key[0]]


def number_terms(db: Scratch) -> None:
    """Make the tables of facts and of terms of the keys in the table ``keyed``, which goes.

    ``facts`` (s, p, o) holds ids, and each fact once; ``terms`` (id, key) each term once.

    Raises
    ------
    RuntimeError
        If hashes of 128 bits collide, which no input can cause.
    """
    for form in _ATTEMPTS:
        salts = [token_hex(8) for _ in range(form.count("?"))]
        number = form.format(key="key")
        db.run("create or replace macro kind(key) as " + _KIND.format(key="key"))
        # a macro can't hold bound values
        for salt in salts:
            number = number.replace("?", f"'{salt}'", 1)
        db.run(f"create or replace macro id_of(key) as ({number}) - ({number}) % 8 + kind(key)")
        db.step("create or replace table terms as select distinct id_of(key) id, key from ("
                "select s as key from keyed union all select distinct p from keyed union all "
                "select o from keyed)")  # fmt: skip
        n_terms, n_ids = db.run("select count(*), (select count(*) from (select distinct id from "
                                "terms)) from terms")[0]  # fmt: skip
        if n_terms == n_ids:
            break
    else:
        raise RuntimeError("hashes of 128 bits collide")
    db.step("create table facts as select distinct id_of(s) s, id_of(p) p, id_of(o) o from keyed")
    db.step("drop table keyed")
