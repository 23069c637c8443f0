"""Names that facts themselves give to tokens: labels, in any language."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import NAMING, of_predicate

if TYPE_CHECKING:
    from capacity.database.facts import Database
# languages in the order in which labels are shown; others come last
_LANGUAGES = ("", "en")


def labels_of(db: Database, among: Collection[Term] | None = None) -> dict[Term, tuple[str, ...]]:
    """Collect the labels of tokens, by ``rdfs:label`` and ``skos:prefLabel``.

    Where facts were selected, predicates and classes keep the labels that all facts gave them.

    Parameters
    ----------
    db : Database
        Facts of any arity; only triples have labels.
    among : collection of Term, optional
        The only tokens to look for; by default all.

    Returns
    -------
    dict of Term to tuple of str
        Texts of the labels of each token that has one: plain ones, English ones, then others.
    """
    found: dict[Term, list[Term]] = {}
    if db.arity == 3:
        for iri in NAMING:
            for k, _, v in of_predicate(db, iri).tolist():
                token, label = db.subjects[k], db.objects[v]
                if label.kind in ("literal", "label") and (among is None or token in among):
                    found.setdefault(token, []).append(label)
    said = {
        token: tuple(dict.fromkeys(label.text for label in sorted(labels, key=_order)))
        for token, labels in found.items()
    }
    kept = {} if db.selected is None else db.selected.labels
    return said | {token: kept[token] for token in kept if among is None or token in among}


def _order(label: Term) -> int:
    language = label.language.partition("-")[0]
    return _LANGUAGES.index(language) if language in _LANGUAGES else len(_LANGUAGES)
