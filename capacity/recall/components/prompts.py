"""Prompts: the texts of questions before their objects, as tokens that a causal model continues.

After each prompt the model's logits are compared at the candidates' first tokens, so that one run
has all that is asked. Candidates that begin with the same token can't be distinguished, and count
as one. `capacity.recall.recall` scores whole objects instead.

A prompt is a row of segments: words of the template, tokens of the subject, special tokens. A
token's *place* is its segment, counted from the end, and its distance from the segment's end, so
that the last token of the subject has the same place whatever the subject is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.recall.models import kind_of
from capacity.recall.questions import Candidates, Question, prepared
from capacity.recall.sentences import Writer
from capacity.recall.templates import Template, TemplatesLike

# a place of a token
Place: TypeAlias = tuple[int, int]
# whose a token is
SOURCES = ("subject", "predicate", "rest")
SUBJECT, PREDICATE, REST = range(3)


@briefly_shown
@dataclass(frozen=True, eq=False)
class Prompts:
    """Prompts of one predicate by one template, one for each subject.

    Attributes
    ----------
    predicate : str
        Name of the predicate.
    template : Template
        The template.
    subjects : tuple of str
        Names of the subjects, shape (n_prompts,).
    ids : tuple of tuple of int
        Tokens of each prompt.
    sources : tuple of tuple of int
        For each of these, the index in `SOURCES`: tokens with a letter of the subject are its, all
        others of the template the predicate's, and the rest are special tokens.
    tokens : tuple of int
        First tokens of the candidates, ascending, shape (n_tokens,).
    texts : tuple of str
        For each of these, the name of a candidate that begins with it.
    facts : (n_facts,) int
        Numbers of the facts that the prompts ask for.
    prompt, own : (n_facts,) int
        Of each fact, its prompt, and its object's index in `tokens`.
    wrong : (n_facts, n_tokens) bool
        Tokens with which no right answer begins.
    """

    predicate: str
    template: Template
    subjects: tuple[str, ...]
    ids: tuple[tuple[int, ...], ...]
    sources: tuple[tuple[int, ...], ...]
    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    facts: NDArray[np.int64]
    prompt: NDArray[np.int64]
    own: NDArray[np.int64]
    wrong: NDArray[np.bool_]

    @property
    def subject_at(self) -> NDArray[np.int64]:
        """Index of the subject's last token in each prompt, shape (n_prompts,)."""
        return np.array([len(s) - 1 - s[::-1].index(SUBJECT) for s in self.sources])


@dataclass(frozen=True)
class Asking:
    """Arguments that functions on components share: what is asked for, and how.

    Attributes
    ----------
    templates, candidates, labels, language, label_predicates
        As for `capacity.recall.recall`.
    """

    templates: TemplatesLike | None = None
    candidates: Candidates = "predicate"
    labels: DatabaseLike | None = None
    language: str | None = None
    label_predicates: Sequence[str] = ()


def prompts_of(
    model: Any, tokenizer: Any, db: DatabaseLike, how: Asking, *, caller: str
) -> tuple[Database, list[Prompts], tuple[str, ...]]:
    """Tokenize the prompts of a database's facts.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        A causal model and its tokenizer.
    db : Database, or what `capacity.database.as_database` takes
        The facts.
    how : Asking
        Templates, candidates and labels.
    caller : str
        Name of the function that was called, for messages.

    Returns
    -------
    Database
        The facts that are asked for.
    list of Prompts
        One for each predicate and template.
    tuple of str
        Notes about templates and candidates.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidArgumentError
        If the model isn't causal, or the tokenizer doesn't fit it; if a template has no subject
        before its object; or if the candidates begin with other tokens after other subjects, or
        all with the same one; and as `capacity.recall.recall`.
    """
    kind = kind_of(model)
    if kind != "causal":
        raise InvalidArgumentError(
            "The logits of a model must be a sum over components after one stack of layers, so "
            f"that it must be causal, such as GPT-2 or Llama; {type(model).__name__} is {kind}."
        )
    facts, questions, notes = prepared(
        db, how.templates, how.candidates, how.labels, how.language, how.label_predicates,
        caller=caller,
    )  # fmt: skip
    writer = Writer(model, tokenizer, kind)
    together: dict[tuple[object, Template], list[Question]] = {}
    for one in questions:
        together.setdefault((one.predicate, one.template), []).append(one)
    found = [
        _together(facts.name(of[0].predicate), of, writer, tokenizer) for of in together.values()
    ]
    return facts, found, (*notes, *(note for one in found for note in _notes(one)))


def _together(predicate: str, questions: list[Question], writer: Writer, tokenizer: Any) -> Prompts:
    template, candidates = questions[0].template, questions[0].candidates
    if "{subject}" not in template.text.partition("{object}")[0]:
        raise InvalidArgumentError(
            "A template must have {subject} before {object} where the model's answer is "
            f"attributed, as it continues what is before; got {shown(template.text)}. Omit it."
        )
    ids, sources, firsts = [], [], []
    for question in questions:
        before, after = template.around(question.subject)
        sentences = writer.query(before, candidates, after, question.right).sentences
        least = min(one.first for one in sentences)
        n = next(
            (i for i in range(least) if len({one.ids[i] for one in sentences}) > 1), least
        )  # fmt: skip
        ids.append(sentences[0].ids[:n])
        firsts.append(tuple(one.ids[n] for one in sentences))
        spans = [*_spans(template.text.partition("{object}")[0], question.subject)]
        offsets = tokenizer(before + candidates[0] + after, return_offsets_mapping=True)
        sources.append(tuple(_source(a, b, spans) for a, b in offsets["offset_mapping"][:n]))
        if SUBJECT not in sources[-1]:
            raise InvalidArgumentError(
                "The subject must have tokens before the object, apart from those of the object; "
                f"in {shown(before)} it has none. Write words between {{subject}} and {{object}}."
            )
    if len(set(firsts)) > 1:
        raise InvalidArgumentError(
            "Each candidate must begin with the same token after all subjects; by "
            f"{shown(template.text)} some begin with another one. Put a blank before {{object}}."
        )
    tokens = sorted(set(firsts[0]))
    if len(tokens) == 1:
        raise InvalidArgumentError(
            f"Candidates of {predicate:.60} must begin with several tokens; all of the "
            f"{len(candidates)} begin with the same one. Pass others as `candidates`, or exclude "
            "the predicate."
        )
    at = [tokens.index(token) for token in firsts[0]]
    rows = [(i, k, at[j]) for k, one in enumerate(questions) for i, j in zip(one.facts, one.at,
                                                                     strict=True)]  # fmt: skip
    numbers, prompt, own = np.array(rows, np.int64).T
    wrong = np.ones((len(questions), len(tokens)), bool)
    for k, one in enumerate(questions):
        wrong[k, [at[j] for j in one.right]] = False
    return Prompts(
        predicate,
        template,
        tuple(one.subject for one in questions),
        tuple(ids),
        tuple(sources),
        tuple(tokens),
        tuple(candidates[at.index(i)] for i in range(len(tokens))),
        numbers,
        prompt,
        own,
        wrong[prompt],
    )


def _notes(prompts: Prompts) -> Iterator[str]:
    shared = int((~prompts.wrong.any(1)).sum())
    n = len(prompts.tokens)
    yield (
        f"{prompts.predicate}: {len(prompts.facts)} facts, {n} first tokens of candidates"
        + (f"; {shared} facts have no wrong one" if shared else "")
        + "."
    )


def _spans(text: str, subject: str) -> Iterator[tuple[int, int]]:
    """Characters of the subject, where it is put into a text."""
    at = 0
    for part in text.split("{subject}")[:-1]:
        at += len(part)
        yield at, at + len(subject)
        at += len(subject)


def _source(begin: int, end: int, spans: list[tuple[int, int]]) -> int:
    if begin == end:
        return REST
    return SUBJECT if any(max(begin, a) < min(end, b) for a, b in spans) else PREDICATE


def places_of(sources: Sequence[int]) -> list[Place]:
    """Return the place of each token of a prompt.

    Parameters
    ----------
    sources : sequence of int
        Whose each token is, as in `Prompts.sources`.

    Examples
    --------
    >>> places_of([1, 1, 0, 0, 0, 1])
    [(2, 1), (2, 0), (1, 2), (1, 1), (1, 0), (0, 0)]
    """
    lengths = [len([*run]) for _, run in groupby(sources)]
    last = len(lengths) - 1
    return [(last - at, n - 1 - i) for at, n in enumerate(lengths) for i in range(n)]


def nearest_places(wanted: Sequence[Place], known: Iterable[Place]) -> list[Place]:
    """Return for each place the same one, or the farthest known one of its segment.

    Parameters
    ----------
    wanted : sequence of (int, int)
        Places of a prompt.
    known : iterable of (int, int)
        Places of other prompts of the template: all distances up to the largest, for a segment.

    Examples
    --------
    A subject of three tokens, beside one of two:

    >>> nearest_places([(1, 2), (1, 1), (1, 0)], [(1, 1), (1, 0)])
    [(1, 1), (1, 1), (1, 0)]
    """
    farthest: dict[int, int] = {}
    for segment, distance in known:
        farthest[segment] = max(distance, farthest.get(segment, 0))
    most = max(farthest)
    return [
        (min(segment, most), min(distance, farthest[min(segment, most)]))
        for segment, distance in wanted
    ]
