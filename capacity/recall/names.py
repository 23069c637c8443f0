"""Names by which a model is asked about terms: labels of the facts, or what an IRI ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import unquote

from capacity.checks import shown
from capacity.database.choosing.lookup import position
from capacity.database.facts import Database
from capacity.database.terms.term import Term, local_name
from capacity.database.terms.vocabularies import NAMING, of_predicate
from capacity.errors import InvalidArgumentError

# plain labels and English ones come before those of other languages
_LANGUAGES = ("", "en")


NamesOf: TypeAlias = Callable[[Iterable[Term]], Mapping[Term, str]]


def names_in_sentences(
    terms: Iterable[Term], source: Database, language: str | None, label_predicates: Sequence[str]
) -> dict[Term, str]:
    """Find a name for each term, by which a model is asked about it.

    A literal and a label of a table are their own names, unless facts assign them another. The
    name of an IRI is its label, by the first of these predicates that it has: those given,
    ``rdfs:label``, ``skos:prefLabel``. Without a label it is the local name, decoded, with blanks
    for underscores.

    Parameters
    ----------
    terms : iterable of Term
        The terms.
    source : Database
        Triples that contain the labels.
    language : str, optional
        Language tag, such as ``fr``, whose labels come first; labels without a language and
        English ones follow.
    label_predicates : sequence of str
        Names of predicates whose objects are labels, in the order in which they are preferred.

    Raises
    ------
    InvalidArgumentError
        For a term without a name: a blank node, a set or a triple term without a label, an IRI
        that ends in ``/`` or ``#``, or an empty label.
    UnknownTokenError
        If no predicate, or more than one, has one of the `label_predicates` as its name.
    """
    labels = _labels(source, language, label_predicates)
    names: dict[Term, str] = {}
    for term in terms:
        kept = source.labels.get(term, ()) if term.kind != "literal" else ()
        name = labels.get(term) or (kept[0] if kept else _own_name(term))
        if not name.strip():
            raise InvalidArgumentError(
                f"Every term must have a name that a sentence can contain; {shown(str(term))} has "
                "none. Add a label (rdfs:label, skos:prefLabel), name the predicate of its label "
                "in `label_predicates`, or exclude its facts."
            )
        names[term] = " ".join(name.split())
    return names


def _labels(
    source: Database, language: str | None, label_predicates: Sequence[str]
) -> dict[Term, str]:
    asked = [
        source.triples[source.triples[:, 1] == at]
        for at in (
            position(one, source.predicates, source.prefixes, lambda: source.labels, "predicate")
            for one in label_predicates
        )
    ]
    best: dict[Term, tuple[tuple[int, int, str], str]] = {}
    for place, facts in enumerate([*asked, *(of_predicate(source, iri) for iri in NAMING)]):
        for k, _, v in facts.tolist():
            token, label = source.subjects[k], source.objects[v]
            if label.kind in ("literal", "label"):
                order = (place, _order(label, language), label.text)
                best[token] = min(best.get(token, (order, label.text)), (order, label.text))
    return {token: text for token, (_, text) in best.items()}


def _order(label: Term, language: str | None) -> int:
    tag = label.language.partition("--")[0]
    if language is not None and (f"{tag}-").startswith(f"{language.lower()}-"):
        return -1
    main = tag.partition("-")[0]
    return _LANGUAGES.index(main) if main in _LANGUAGES else len(_LANGUAGES)


def _own_name(term: Term) -> str:
    if term.kind == "iri":
        return unquote(local_name(term)).replace("_", " ")
    return term.text if term.kind in ("literal", "label") else ""
