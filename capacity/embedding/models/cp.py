"""CP: sum_r a_s[r] b_q[r] c_o[r], with separate vectors for subjects and objects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.models import linear
from capacity.embedding.queries import Task


def necessary(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield lower bounds of models whose scores are linear in d numbers of either entity."""
    yield from linear.necessary(of, task)
    if task == "exact":
        return
    if of.fits_a_line is False:
        words = "the signs of one dimension, at most two answers, aren't balanced (Harary 1953)"
        yield nonzero("necessary", 2, words)
    yield from linear.by_signs(of.signs_of_subjects, 0)


def sufficient(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield upper bounds of CP."""
    upper = of.rank_upper
    if task == "exact":
        yield nonzero("sufficient", upper, "the rank, certified")
        return
    more = 1 if task == "signs" else 0
    yield nonzero("sufficient", upper + more, "exact scores: the rank, certified")
    words = "a moment curve for each relation, of objects or of subjects, or the rank of its matrix"
    yield nonzero("sufficient", int(of.curve_terms.sum()) + more, words)
    words = "a moment curve for each subject"
    yield nonzero("sufficient", int(of.curve_terms_of_subjects.sum()) + more, words)
    if task == "ranking":
        if of.fits_a_line:
            yield nonzero("sufficient", 1, "at most two answers, whose signs are balanced")
        yield nonzero("sufficient", of.effective_upper, "the effective rank, certified")
        for terms, whose in (
            (of.common_terms, "relation"),
            (of.common_terms_of_subjects, "subject"),
        ):
            value = 1 + int(np.maximum(terms - 1, 0).sum())
            words = f"one moment curve of objects; each {whose} shares its first coordinate"
            yield nonzero("sufficient", value, words)


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield the bounds of CP."""
    if task == "exact":
        yield nonzero("necessary", of.rank_lower, "the rank, certified")
    else:
        yield from necessary(of, task)
    yield from sufficient(of, task)


MODEL = Model("CP", "sum_r a_s[r] b_q[r] c_o[r]", bounds, lambda of: sum(of.graph.shape) - 2)
