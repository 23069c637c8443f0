"""Facts about facts: annotations, reifiers and reified statements of RDF, and what becomes of them.

RDF 1.2 writes of a fact by a *reifier*, a node that represents it: ``:a :p :b {| :since 2001 |}``
are the triples ``:a :p :b``, ``_:r rdf:reifies <<( :a :p :b )>>`` and ``_:r :since 2001``.
RDF 1.1 does so by ``rdf:subject``, ``rdf:predicate`` and ``rdf:object``, and OWL by
``owl:annotatedSource``, ``owl:annotatedProperty`` and ``owl:annotatedTarget``.

===========  =======================================================================================
``keep``     all triples stay as they are; a triple term is a token like others
``drop``     triples about facts are omitted
``order-5``  facts (subject, predicate, object, annotation, value), with the value as the object
``order-4``  facts (subject, predicate, value, object) by the only annotation of the file: the value
             becomes a part of the key, as a time does in "who was it in 2001"
an IRI       the same by this annotation
===========  =======================================================================================

References
----------
RDF 1.2 Concepts and Abstract Data Model, section 1.5 (triple terms and reification).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.checks import nearest, shown
from capacity.database.terms.prefixes import expanded
from capacity.database.terms.term import Ids
from capacity.errors import InvalidArgumentError

ORDERS = ("order-4", "order-5")
CHOICES = ("keep", "drop", *ORDERS)
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_OWL = "http://www.w3.org/2002/07/owl#"
_REIFIES = ox.NamedNode(f"{_RDF}reifies")
_TYPE = ox.NamedNode(f"{_RDF}type")
# IRIs that a file with facts about facts has, if not triple terms
REIFICATIONS = (
    tuple(_RDF + name for name in ("subject", "predicate", "object")),
    tuple(f"{_OWL}annotated{name}" for name in ("Source", "Property", "Target")),
)
_PARTS = tuple(tuple(map(ox.NamedNode, parts)) for parts in REIFICATIONS)
_CLASSES = (ox.NamedNode(f"{_RDF}Statement"), ox.NamedNode(f"{_OWL}Axiom"))
_MOST_NAMED = 5
# facts about facts that are made, at most: this, or this many times the triples if that is more
FREE_MADE, MAX_MADE = 10**6, 16

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Annotations:
    """The facts about facts among triples.

    Attributes
    ----------
    facts : dict of int to list of tuple of int
        The facts that each reifier represents.
    about : ndarray of bool
        True for triples that belong to a reifier or hold a triple term.
    said : list of tuple of int
        Reifier, predicate and object of each annotation.
    """

    facts: dict[int, list[tuple[int, int, int]]]
    about: NDArray[np.bool_]
    said: list[tuple[int, int, int]]


def check_choice(choice: object) -> str | None:
    """Return what is to become of facts about facts; None if the user didn't choose.

    Raises
    ------
    InvalidArgumentError
        Unless it is one of `CHOICES`, an IRI or a prefixed name.
    """
    if choice is None or choice in CHOICES or (isinstance(choice, str) and ":" in choice):
        return choice
    hint = nearest(choice, CHOICES) if isinstance(choice, str) else ""
    raise InvalidArgumentError(
        f"`annotations_of_facts` must be one of {', '.join(CHOICES)}, or the IRI or prefixed name "
        f"of an annotation; got {shown(choice)}.{hint}"
    )


def find_annotations(ids: Ids, rows: Rows) -> Annotations | None:
    """Find the facts about facts; None if there are none.

    Parameters
    ----------
    ids : Ids of pyoxigraph nodes
        Number of each node; the parts of triple terms get numbers too.
    rows : ndarray of int64, shape (n, 3)
        The triples, as numbers of nodes.
    """
    triple_terms = {i: node for node, i in list(ids.items()) if isinstance(node, ox.Triple)}
    vocabularies = [[ids.get(node, -1) for node in parts] for parts in _PARTS]
    if not triple_terms and not any(min(parts) >= 0 for parts in vocabularies):
        return None
    facts: dict[int, list[tuple[int, int, int]]] = {}
    about = np.isin(rows[:, 2], list(triple_terms))
    for r, _, term in rows[about & (rows[:, 1] == ids.get(_REIFIES, -1))].tolist():
        triple = triple_terms[term]
        s, p, o = (ids[one] for one in (triple.subject, triple.predicate, triple.object))
        facts.setdefault(r, []).append((s, p, o))
    naming = [ids.get(_REIFIES, -1)]
    for parts in vocabularies:
        if min(parts) >= 0:
            naming += parts
            found: list[dict[int, int]] = [
                dict(rows[rows[:, 1] == part][:, [0, 2]].tolist()) for part in parts
            ]
            for r in found[0].keys() & found[1].keys() & found[2].keys():
                facts.setdefault(r, []).append((found[0][r], found[1][r], found[2][r]))
    of_reifier = np.isin(rows[:, 0], list(facts))
    naming_rows = np.isin(rows[:, 1], naming) | (
        (rows[:, 1] == ids.get(_TYPE, -1))
        & np.isin(rows[:, 2], [ids.get(node, -1) for node in _CLASSES])
    )
    said = [(r, q, v) for r, q, v in rows[of_reifier & ~naming_rows].tolist()]
    about |= of_reifier
    return Annotations(facts, about, said) if about.any() else None


def apply_choice(
    found: Annotations,
    rows: Rows,
    choice: str | None,
    iris: Mapping[int, str],
    prefixes: Mapping[str, str],
) -> tuple[Rows, str]:
    """Keep, drop or rearrange the facts about facts.

    Parameters
    ----------
    found : Annotations
        The facts about facts.
    rows : ndarray of int64, shape (n, 3)
        The triples.
    choice : str, optional
        What is to become of them.
    iris : mapping of int to str
        IRIs of the annotations, by their numbers.
    prefixes : mapping of str to str
        Namespaces, for a prefixed name.

    Returns
    -------
    rows : ndarray of int64, shape (n_facts, 3), (n_facts, 4) or (n_facts, 5)
        The facts.
    note : str
        What was done, with numbers.

    Raises
    ------
    InvalidArgumentError
        For an annotation that there isn't, or ``order-4`` if there are several.
    """
    n_about = int(found.about.sum())
    stand = f"{n_about:,} of {len(rows):,} triples are about other facts (annotations and reifiers)"
    if choice in (None, "keep"):
        return rows, f"{stand}; all are kept as they are."
    plain = rows[~found.about]
    if choice == "drop":
        return plain, f"{stand}; they are omitted."
    most = max(FREE_MADE, MAX_MADE * len(rows))
    if (n_made := sum(len(found.facts[r]) for r, _, _ in found.said)) > most:
        raise InvalidArgumentError(
            f"`annotations_of_facts` = {shown(choice)} would make {n_made:,} facts of "
            f"{len(rows):,} triples: each annotation of a reifier is one of each fact that it "
            "denotes. Choose keep or drop."
        )
    facts = {tuple(row) for row in plain.tolist()}
    # two reifiers of a fact can say the same of it
    said = list(dict.fromkeys((f, q, v) for r, q, v in found.said for f in found.facts[r]))
    asserted = [(fact, q, v) for fact, q, v in said if fact in facts]
    others = ""
    if choice == "order-5":
        made, wide, what = [(*fact, q, v) for fact, q, v in asserted], 5, "any annotation"
    else:
        by = _annotation(str(choice), Counter(q for _, q, _ in asserted), iris, prefixes)
        n_asserted = len(asserted)
        asserted = [(fact, q, v) for fact, q, v in asserted if q == by]
        if n_others := n_asserted - len(asserted):
            others = f", and {n_others:,} other annotation{'s' * (n_others > 1)}"
        made, wide = [(s, p, v, o) for (s, p, o), _, v in asserted], 4
        what = f"the annotation <{iris[by]}>"
    lacking = len(facts - {fact for fact, _, _ in asserted})
    denied = len({fact for fact, _, _ in said} - facts)
    joined = "," if others else ", and"
    return np.array(made, dtype=np.int64).reshape(-1, wide), (
        f"{len(made):,} facts of arity {wide} were made; omitted are {lacking:,} facts without "
        f"{what}{joined} {denied:,} that are annotated and not asserted{others}."
    )


def _annotation(
    choice: str, counts: Counter[int], iris: Mapping[int, str], prefixes: Mapping[str, str]
) -> int:
    """Find the number of the annotation that is asked for."""
    if choice == "order-4" and len(counts) == 1:
        return next(iter(counts))
    name = choice.removeprefix("<").removesuffix(">")
    wanted = {name, *expanded(name, prefixes)}
    if found := [q for q in counts if iris[q] in wanted]:
        return found[0]
    if not counts:
        raise InvalidArgumentError("No asserted fact is annotated, so there is nothing to choose.")
    some = ", ".join(f"<{iris[q]}> ({n:,})" for q, n in counts.most_common(_MOST_NAMED))
    asked = f"{len(counts)} of them" if choice == "order-4" else f"{shown(choice)}, which it isn't"
    raise InvalidArgumentError(
        f"`annotations_of_facts` must name one annotation of this file; got {asked}. The most "
        f"frequent are {some}; `order-5` takes all.{nearest(choice, [iris[q] for q in counts])}"
    )
