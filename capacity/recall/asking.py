"""`recall`: ask a language model for the objects of facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from capacity.checks import require_choice, require_integer
from capacity.database.given_facts import DatabaseLike
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError
from capacity.optional import needed_by
from capacity.progress import Progress, bar
from capacity.recall.models import asked, kind_of
from capacity.recall.questions import Candidates, filling, prepared
from capacity.recall.templates import Template, TemplatesLike

if TYPE_CHECKING:
    from capacity.recall.kept import Kept
    from capacity.recall.result import Recall
    from capacity.recall.scores.answered import Answered
    from capacity.recall.scores.masked import PseudoLikelihood
    from capacity.recall.sentences import Query, Sentence

Answers: TypeAlias = Literal["all", "best"]
# sentences that are in memory together
_TOGETHER = 2**16
METHODS = {
    "causal": "log-likelihood of the sentence from its object on",
    "encoder-decoder": "log-likelihood of what the decoder writes from the object on",
    "one_token": "pseudo-log-likelihood, one token masked at a time (Salazar et al. 2020)",
    "left_to_right": "pseudo-log-likelihood, a token masked with the rest of the object (Kauf and "
    "Ivanova 2023)",
}


def recall(
    model: Any,
    tokenizer: Any,
    db: DatabaseLike,
    templates: TemplatesLike | None = None,
    *,
    candidates: Candidates = "predicate",
    answers: Answers = "all",
    labels: DatabaseLike | None = None,
    language: str | None = None,
    label_predicates: Sequence[str] = (),
    pseudo_likelihood: PseudoLikelihood = "one_token",
    batch_size: int = 32,
    cache: bool = True,
    keep: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Recall:
    """Measure which facts a language model knows, by its scores of their objects in sentences.

    The score of an object is the log-likelihood of its tokens in the template's place given all the
    rest: of a causal model that of the sentence from the object's first token on, as
    `capacity.recall.scores.continuations` defines it; of an encoder-decoder that of what its
    decoder writes; of a masked model a pseudo-log-likelihood. Sentences are passed to the model as
    they are, without a chat template.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        A model with a head that predicts tokens and its tokenizer, as
        ``load_pretrained(folder, head=True)`` returns them. It is left as it was.
    db : Database, or what `capacity.database.as_database` takes
        The facts.
    templates : path, or mapping of str to str or list of str, optional
        Templates of predicates, as `read_templates` reads them from a file. Other predicates
        aren't asked for. By default each predicate that is neither schema nor an annotation has
        the template ``{subject}, name of the predicate: {object}.``
    candidates : {"predicate", "all"}, list of str or Term, or mapping of str to such lists
        Objects that are compared: those of the predicate, those of all facts that are asked for,
        or a list, which must contain the object of every fact. A mapping has lists by predicate;
        a predicate that it lacks has its own objects.
    answers : {"all", "best"}
        Score all candidates, or find the best alone: candidates that can't be the best one are
        omitted, and so are probabilities among candidates, ranks above 1, margins and calibrated
        scores. Masked models score all candidates anyway.
    labels : Database, or what `capacity.database.as_database` takes, optional
        Facts that contain the labels of terms; by default `db`.
    language : str, optional
        Language of labels that comes first.
    label_predicates : sequence of str
        Predicates of labels that come before ``rdfs:label`` and ``skos:prefLabel``.
    pseudo_likelihood : {"one_token", "left_to_right"}
        What a masked model doesn't see while it predicts a token of the object.
    batch_size : int
        Number of sentences that are run together, from 1 to 4,096. Scores don't depend on it but
        for rounding.
    cache : bool
        Reuse keys and values of what the sentences of a query begin with.
    keep : path, optional
        File of answers (JSON Lines), written once a minute and when the function ends, also by
        an interruption. Queries whose answers it has aren't asked again.
    progress : callable, optional
        Called with ``("questions", done, total, None)``; by default a bar on a terminal.

    Returns
    -------
    Recall
        One row per fact and template, and the facts that are known.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidArgumentError
        If the model has no head that predicts tokens, or computes no numbers; if the tokenizer
        doesn't report where its tokens are; if a template lacks its places, a term has no name, or
        a list of candidates lacks a right answer; or if a sentence is too long, or has a part that
        the tokenizer doesn't know.
    UnknownTokenError
        If no predicate, or more than one, has the name of a template.
    FormatError
        If a file of templates or of answers isn't one.
    StorageError
        If a file can't be read or written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from transformers import BertConfig, BertForMaskedLM, BertTokenizer
    >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] oslo lima norway peru is in .".split()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "vocab.txt").write_text(chr(10).join(words))
    ...     tokenizer = BertTokenizer(str(Path(folder, "vocab.txt")))
    >>> config = BertConfig(vocab_size=len(words), hidden_size=4, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=4)
    >>> facts = [("Oslo", "in", "Norway"), ("Lima", "in", "Peru")]
    >>> answers = recall(BertForMaskedLM(config), tokenizer, facts,
    ...                  {"in": "{subject} is in {object}."})
    >>> answers.table[["subject", "object", "n_candidates"]].values.tolist()
    [['Lima', 'Peru', 2], ['Oslo', 'Norway', 2]]

    References
    ----------
    Petroni et al. 2019, "Language Models as Knowledge Bases?"; Wiland, Ploner, Akbik 2024, "BEAR: A
    Unified Framework for Evaluating Relational Knowledge in Causal and Masked Language Models",
    for ranks of whole sentences.
    """
    with needed_by("recall"):
        from capacity.recall.kept import Kept
        from capacity.recall.result import Recall
        from capacity.recall.scores.continuations import ContinuationScorer
        from capacity.recall.scores.masked import MaskedScorer
        from capacity.recall.sentences import Writer
        from capacity.recall.table import Asked, table_of
        from capacity.transformer.activations.models.pretrained import quietly
    best_only = require_choice("`answers`", answers, ("all", "best")) == "best"
    require_choice("`pseudo_likelihood`", pseudo_likelihood, ("one_token", "left_to_right"))
    batch_size = require_integer("batch_size", batch_size, most=2**12)
    kind = kind_of(model)
    facts, questions, notes = prepared(
        db, templates, candidates, labels, language, label_predicates, caller="recall"
    )
    if getattr(tokenizer, "chat_template", None) is not None:
        notes.append("The tokenizer has a chat template, which isn't applied: sentences are "
                     "passed as they are.")  # fmt: skip
    method = METHODS[pseudo_likelihood if kind == "masked" else kind]
    writer = Writer(model, tokenizer, kind)
    scorer: Any = (
        MaskedScorer(model, tokenizer, batch_size=batch_size, pseudo_likelihood=pseudo_likelihood)
        if kind == "masked"
        else ContinuationScorer(model, batch_size=batch_size, cache=cache)
    )
    kept = Kept(keep, model, method)
    rows: list[Asked] = []
    overlaps: dict[tuple[Term, Template], str] = {}
    with quietly(), asked(model), bar() as shown:
        report = progress or shown

        def tell(done: int) -> None:
            report("questions", done, len(questions), None)

        try:
            for some in filling(_TOGETHER, questions, lambda one: len(one.candidates)):
                queries = [
                    writer.query(left, question.candidates, right, question.right)
                    for question in some
                    for left, right in [question.template.around(question.subject)]
                ]
                for question, query in zip(some, queries, strict=True):
                    place = question.predicate, question.template
                    if place not in overlaps:
                        overlaps[place] = _overlap(question.candidates, query.sentences)
                before = len(rows)
                answered = _answered(queries, scorer, kept, tell, before, best_only=best_only)
                rows += map(Asked.of, some, queries, answered, repeat(writer))
        finally:
            kept.save()
    notes += dict.fromkeys(note for note in overlaps.values() if note)
    return Recall(
        table_of(facts, rows, best_only=best_only),
        facts,
        type(model).__name__,
        method,
        tuple(notes),
        sum(len(one.scores) for one in rows),
        sum(one.n_scored for one in rows),
    )


def _answered(
    queries: Sequence[Query],
    scorer: Any,
    kept: Kept,
    tell: Callable[[int], object],
    before: int,
    *,
    best_only: bool,
) -> list[Answered]:
    """Answer queries, from the file of answers or by the model, and report how many are done.

    `before` is the number of queries that were answered before these.
    """
    answers = {
        i: found
        for i, query in enumerate(queries)
        if (found := kept.find(query, best_only=best_only)) is not None
    }
    new = [i for i in range(len(queries)) if i not in answers]
    tell(before + len(answers))
    for group in scorer.together([queries[i] for i in new], best_only=best_only):
        now = [new[at] for at in group]
        found = scorer.answer([queries[i] for i in now], best_only=best_only)
        for i, answered in zip(now, found, strict=True):
            _require_numbers(answered)
            kept.add(queries[i], answered, best_only=best_only)
            answers[i] = answered
        tell(before + len(answers))
    return [answers[i] for i in range(len(queries))]


def _require_numbers(answered: Answered) -> None:
    """Refuse scores that are no numbers."""
    if int(np.isnan(answered.scores).sum()) != len(answered.scores) - answered.n_scored:
        raise InvalidArgumentError(
            "The model must compute logits that are numbers; some are NaN, as in half precision "
            "where float32 is needed. Convert it: model.float()."
        )


def _overlap(candidates: Sequence[str], sentences: Sequence[Sentence]) -> str:
    """Note that two sentences have the same tokens, or one begins the other; empty if none does."""
    # of a sentence and those that it begins, the next one in this order is one
    ordered = sorted(zip((one.ids for one in sentences), candidates, strict=True))
    for (short, one), (long, other) in pairwise(ordered):
        if short == long:
            return (
                f"The tokens of {one!r:.60} and {other!r:.60} are the same, so that nothing but "
                "rounding distinguishes their scores. The tokenizer may ignore capitals or accents."
            )
        if long[: len(short)] == short:
            return (
                f"The sentence with {one!r:.60} is the beginning of that with {other!r:.60}, so "
                "that its score is never the smaller one. End the template with a full stop."
            )
    return ""
