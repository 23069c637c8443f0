"""Questions: a subject, a template, and the candidates among which the object is asked for.

Terms have names there: labels of the facts, or what an IRI ends in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from capacity.checks import shown
from capacity.database.choosing.lookup import position
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.recall.names import NamesOf, names_in_sentences
from capacity.recall.templates import Template, TemplatesLike, templates_for

# objects of the predicate, all objects of the facts, or names and terms, also by predicate
Candidates: TypeAlias = (
    Literal["predicate", "all"] | Sequence[str | Term] | Mapping[str, Sequence[str | Term]]
)
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Question:
    """A sentence with a gap, and the facts that answer it.

    Attributes
    ----------
    predicate : Term
        The predicate.
    template : Template
        One of its templates.
    subject : str
        Name of the subject.
    facts : tuple of int
        Numbers of the facts that answer it: one, or several if the pair is multi-valued.
    at : tuple of int
        For each of these, the index of its object's name among the candidates.
    candidates : tuple of str
        Names of objects, in alphabetical order.
    """

    predicate: Term
    template: Template
    subject: str
    facts: tuple[int, ...]
    at: tuple[int, ...]
    candidates: tuple[str, ...]

    @property
    def right(self) -> tuple[int, ...]:
        """Indices of the right candidates, ascending; objects of one name are one candidate."""
        return tuple(sorted(set(self.at)))


def questions_of(
    facts: Database,
    templates: Mapping[Term, tuple[Template, ...]],
    candidates: Candidates,
    names_of: NamesOf,
) -> tuple[list[Question], list[str]]:
    """Make the questions about facts, in the order of predicates, templates and subjects.

    Parameters
    ----------
    facts : Database
        Facts of predicates that have templates.
    templates : mapping of Term to tuple of Template
        Templates of each predicate.
    candidates : Candidates
        Among which objects.
    names_of : callable
        Function that returns the names of terms.

    Returns
    -------
    list of Question
        One for each pair of a subject and a predicate, and template of the predicate.
    list of str
        Notes about names that several subjects share, and about candidates that are alone.

    Raises
    ------
    InvalidArgumentError
        For an unknown choice of candidates, or candidates that lack a right answer.
    UnknownTokenError
        If candidates are passed for a predicate that isn't there.
    """
    names = names_of({term for fact in facts for term in (fact[0], fact[2])})
    questions: list[Question] = []
    notes: list[str] = []
    given = _by_predicate(facts, candidates)
    everywhere = {names[term] for term in facts.objects}
    for q, predicate in enumerate(facts.predicates):
        rows = [(i, k, v) for i, (k, p, v) in enumerate(facts.triples.tolist()) if p == q]
        own = {names[facts.objects[v]] for _, _, v in rows}
        chosen = _chosen(facts.name(predicate), own, everywhere, given, predicate, names_of)
        at = {name: i for i, name in enumerate(chosen)}
        answers: dict[int, list[tuple[int, int]]] = {}
        for i, k, v in rows:
            answers.setdefault(k, []).append((i, at[names[facts.objects[v]]]))
        questions += [
            Question(
                predicate,
                template,
                names[facts.subjects[k]],
                tuple(i for i, _ in of),
                tuple(j for _, j in of),
                chosen,
            )
            for template in templates[predicate]
            for k, of in answers.items()
        ]
        notes += _notes(
            facts.name(predicate), [names[facts.subjects[k]] for k in answers], len(chosen)
        )
    return questions, notes


def _notes(predicate: str, subjects: list[str], n_candidates: int) -> Iterator[str]:
    twice = sorted(name for name, n in Counter(subjects).items() if n > 1)
    if twice:
        yield (
            f"Several subjects of {predicate} have one name, such as {shown(twice[0])}, and the "
            "model can't distinguish them."
        )
    if n_candidates == 1:
        yield f"{predicate} has a single candidate, which is its best answer whatever is known."


def _by_predicate(
    facts: Database, candidates: Candidates
) -> Literal["predicate", "all"] | Mapping[Term | None, Sequence[str | Term]]:
    """Return lists of candidates by predicate, those for every predicate under None."""
    if isinstance(candidates, str):
        if candidates not in ("predicate", "all"):
            raise InvalidArgumentError(
                "`candidates` must be 'predicate', 'all', a list of objects, or one for each "
                f"predicate; got {shown(candidates)}."
            )
        return candidates  # type: ignore[return-value]
    lists = candidates if isinstance(candidates, Mapping) else {None: candidates}
    lists_of: dict[Term | None, Sequence[str | Term]] = {}
    for name, names in lists.items():
        if isinstance(names, str) or not all(isinstance(one, str | Term) for one in names):
            raise InvalidTypeError(
                f"`candidates` must be names of objects or terms; got {shown(names)}. Pass a list "
                "of them."
            )
        predicate = None
        if name is not None:
            at = position(name, facts.predicates, facts.prefixes, lambda: facts.labels, "predicate")
            predicate = facts.predicates[at]
        lists_of[predicate] = tuple(names)
    return lists_of


def _chosen(
    predicate: str,
    own: set[str],
    everywhere: set[str],
    given: Literal["predicate", "all"] | Mapping[Term | None, Sequence[str | Term]],
    term: Term,
    names_of: NamesOf,
) -> tuple[str, ...]:
    if isinstance(given, str):
        return tuple(sorted(own if given == "predicate" else everywhere))
    some = given.get(term, given.get(None))
    if some is None:
        return tuple(sorted(own))
    names = names_of(one for one in some if isinstance(one, Term))
    texts = {names[one] if isinstance(one, Term) else one for one in some}
    missing = sorted(own - texts)
    if missing:
        raise InvalidArgumentError(
            f"`candidates` of {predicate:.60} must contain the object of every fact; "
            f"{len(missing)} are missing, such as {shown(missing[0])}. Add them, or exclude their "
            "facts."
        )
    return tuple(sorted(texts))


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
        return names_in_sentences(terms, source, language, label_predicates)

    chosen, notes = templates_for(whole, templates, named)
    asked_for = np.array([one in chosen for one in whole.predicates], bool)
    facts = whole.subset(asked_for[whole.triples[:, 1]])
    questions, more = questions_of(facts, chosen, candidates, named)
    return Prepared(facts, questions, notes + more)


def filling(
    size: int, items: Iterable[_Item], size_of: Callable[[_Item], int]
) -> Iterator[list[_Item]]:
    """Yield items in order in groups, each of which ends as soon as it is large enough.

    Parameters
    ----------
    size : int
        Sum of sizes at which a group ends.
    items : iterable
        The items.
    size_of : callable
        Function that returns the size of an item.
    """
    group: list[_Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += size_of(item)
        if total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group
