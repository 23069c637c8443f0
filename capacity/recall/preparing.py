"""Questions of a database: its facts, the templates of its predicates, names of its terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.database.required import require_triples
from capacity.database.terms.term import Term
from capacity.recall.labels import names_of
from capacity.recall.questions import Candidates, Question, questions_of
from capacity.recall.templates import TemplatesLike, templates_for


class Prepared(NamedTuple):
    """Questions about facts.

    Attributes
    ----------
    facts : Database
        The facts that are asked for: those whose predicates have templates.
    questions : list of Question
        One for each pair of a subject and a predicate, and template of the predicate.
    notes : list of str
        What a reader has to know of them.
    """

    facts: Database
    questions: list[Question]
    notes: list[str]


def prepared(
    db: DatabaseLike,
    templates: TemplatesLike | None,
    candidates: Candidates,
    labels: DatabaseLike | None,
    language: str | None,
    label_predicates: Sequence[str],
    *,
    caller: str,
) -> Prepared:
    """Make the questions about the facts of a database.

    Parameters
    ----------
    db, templates, candidates, labels, language, label_predicates
        As for `capacity.recall.recall`.
    caller : str
        Name of the function that was called, for messages.

    Raises
    ------
    InvalidArgumentError
        If a template lacks its places, a term has no name, or a list of candidates lacks a right
        answer.
    UnknownTokenError
        If no predicate, or more than one, has the name of a template.
    FormatError, StorageError
        If a file of templates can't be read, or isn't one.
    """
    whole = require_triples(db, f"{caller}(model, tokenizer, db)")
    source = whole if labels is None else require_triples(labels, f"{caller}(..., labels=labels)")

    def named(terms: Iterable[Term]) -> Mapping[Term, str]:
        return names_of(terms, source, language, label_predicates)

    chosen, notes = templates_for(whole, templates, named)
    asked_for = np.array([one in chosen for one in whole.predicates], bool)
    facts = whole.subset(asked_for[whole.triples[:, 1]])
    questions, more = questions_of(facts, chosen, candidates, named)
    return Prepared(facts, questions, notes + more)
