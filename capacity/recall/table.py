"""The table of answers: one row per fact and template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.recall.questions import Question
from capacity.recall.scores.answered import Answered
from capacity.recall.sentences import Query, Writer


class Asked(NamedTuple):
    """A question and its answer.

    Attributes
    ----------
    question : Question
        The question.
    scores : tuple of float
        Scores of the candidates; NaN for those that weren't scored.
    n_tokens : dict of int to int
        Number of tokens of each right candidate.
    greedy : dict of int to (str, bool)
        What the model writes in the place of each right candidate, and whether it is that.
    n_scored : int
        Number of candidates that were scored.
    """

    question: Question
    scores: tuple[float, ...]
    n_tokens: dict[int, int]
    greedy: dict[int, tuple[str, bool]]
    n_scored: int

    @classmethod
    def of(cls, question: Question, query: Query, answered: Answered, writer: Writer) -> Asked:
        """Join a question with what a scorer has answered."""
        sentences = [query.sentences[i] for i in query.right]
        n_tokens = [one.last - one.first for one in sentences]
        # the tokens that are written may begin before the object, where it is joined with others
        greedy = [
            (writer.text(written), written == one.ids[one.last - len(written) : one.last])
            for written, one in zip(answered.greedy, sentences, strict=True)
        ]
        return cls(
            question,
            answered.scores,
            dict(zip(query.right, n_tokens, strict=True)),
            dict(zip(query.right, greedy, strict=True)),
            answered.n_scored,
        )


def table_of(facts: Database, asked: Sequence[Asked], *, best_only: bool) -> pd.DataFrame:
    """Make the table of `Recall`.

    Parameters
    ----------
    facts : Database
        The facts that were asked for.
    asked : sequence of Asked
        Questions and answers.
    best_only : bool
        Whether only the best answer was searched for.

    Returns
    -------
    DataFrame
        Its columns are those of `Recall.table`.
    """
    together: dict[tuple[Any, str], list[Asked]] = {}
    for answered in asked:
        key = answered.question.predicate, answered.question.template.text
        together.setdefault(key, []).append(answered)
    rows: list[dict[str, Any]] = []
    for group in together.values():
        scores = np.array([answered.scores for answered in group])
        # of one subject all calibrated scores are 0
        is_calibrated = len(group) > 1 and not best_only
        calibrated = scores - scores.mean(axis=0) if is_calibrated else np.full_like(scores, np.nan)
        for i, answered in enumerate(group):
            for fact, at in zip(answered.question.facts, answered.question.at, strict=True):
                judged = _judged(scores[i], answered.question, at, best_only=best_only)
                again = _judged(calibrated[i], answered.question, at, best_only=best_only)
                rows.append({
                    **_asked(facts, answered, fact, at),
                    **judged,
                    "probability_vocabulary": float(np.exp(scores[i, at])),
                    "greedy": answered.greedy[at][0],
                    "greedy_right": answered.greedy[at][1],
                    **{f"{name}_calibrated": value for name, value in again.items()},
                })  # fmt: skip
    table = pd.DataFrame(rows).astype(
        {"rank": "Int64", "rank_calibrated": "Int64", "right_calibrated": "boolean"}
    )
    return table.sort_values("fact", ignore_index=True, kind="stable")


def _asked(facts: Database, answered: Asked, fact: int, at: int) -> dict[str, Any]:
    names = [facts.name(term) for term in facts[fact]]
    return {
        "fact": fact,
        **dict(zip(("subject", "predicate", "object"), names, strict=True)),
        "template": answered.question.template.text,
        "n_tokens": answered.n_tokens[at],
        "n_right": len(answered.question.right),
        "n_candidates": len(answered.question.candidates),
    }


def _judged(
    scores: NDArray[np.float64], question: Question, at: int, *, best_only: bool
) -> dict[str, Any]:
    """Compare the score of a right candidate with those of the wrong ones."""
    own = scores[at]
    if np.isnan(own):
        names = ("score", "rank", "probability", "margin", "answer", "right")
        return dict.fromkeys(names)
    is_wrong = np.ones(len(scores), bool)
    is_wrong[list(question.right)] = False
    wrong = scores[is_wrong]
    scored = wrong[~np.isnan(wrong)]
    rank = 1 + int((scored >= own).sum())
    # of candidates with the same score a wrong one is taken for the answer
    order = np.lexsort((~is_wrong, -np.nan_to_num(scores, nan=-np.inf)))
    best = int(order[0])
    return {
        "score": float(own),
        "rank": rank if rank == 1 or not best_only else None,
        "probability": None
        if best_only
        else float(np.exp(own - np.logaddexp.reduce([*wrong, own]))),
        "margin": float(own - wrong.max()) if len(wrong) and not best_only else None,
        "answer": question.candidates[best],
        "right": not is_wrong[best],
    }
