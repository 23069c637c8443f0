"""Names of blank nodes, which are local to a file.

If each blank node of a file has a label, the labels are kept. If some have none, as ``[ ]``
in Turtle, the parser names these at random; and JSON-LD has labels that no other format has. All
are then renamed ``b0``, ``b1``, ... in the order
of the file, so that every read returns the same facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from capacity.database.terms.grammar import BLANK_NAME, is_blank_name
from capacity.database.terms.term import Term, unchecked

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
