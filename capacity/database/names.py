"""Names that facts themselves give to tokens: labels, in any language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.database.terms import Term
from capacity.database.vocabularies import NAMING, of_predicate

if TYPE_CHECKING:
    from capacity.database.facts import Database
# languages in the order in which labels are shown; others come last
_LANGUAGES = ("", "en")


def labels_of(db: Database) -> dict[Term, tuple[str, ...]]:
    """Collect the labels of tokens, by ``rdfs:label`` and ``skos:prefLabel``.

    Parameters
    ----------
    db : Database
        Facts of any arity; only triples have labels.

    Returns
    -------
    dict of Term to tuple of str
        Texts of the labels of each token that has one: plain ones, English ones, then others.
    """
    found: dict[Term, list[Term]] = {}
    if db.arity == 3:
        for iri in NAMING:
            for k, _, v in of_predicate(db, iri).tolist():
                if db.objects[v].kind in ("literal", "label"):
                    found.setdefault(db.subjects[k], []).append(db.objects[v])
    return {
        token: tuple(dict.fromkeys(label.text for label in sorted(labels, key=_order)))
        for token, labels in found.items()
    }


def _order(label: Term) -> int:
    language = label.language.partition("-")[0]
    return _LANGUAGES.index(language) if language in _LANGUAGES else len(_LANGUAGES)
