"""Facts that logits of candidates bring: the object's against those of wrong answers.

A tensor of logits has the axes (..., prompts, tokens). It is *calibrated* if its mean over prompts
is subtracted: what is written whatever the subject is, brings no fact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capacity.recall.components.prompts import Prompts

# differences of logits that are rounding, in units of the largest logit's last place
ROUNDING = 16.0


def calibrated(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """Subtract the mean over prompts."""
    return logits - logits.mean(-2, keepdims=True)


def margins(logits: NDArray[np.floating], prompts: Prompts) -> NDArray[np.floating]:
    """Return the object's logit less the largest wrong one, shape (..., n_facts).

    Without a wrong candidate it is infinite.
    """
    found = np.empty((*logits.shape[:-2], len(prompts.facts)), logits.dtype)
    for i, (k, own) in enumerate(zip(prompts.prompt, prompts.own, strict=True)):
        of = logits[..., k, :]
        rivals = of[..., prompts.wrong[i]]
        best = rivals.max(-1) if rivals.shape[-1] else -np.inf
        found[..., i] = of[..., own] - best
    return found


def brought(logits: NDArray[np.floating], prompts: Prompts) -> NDArray[np.bool_]:
    """Mark the facts whose object alone has the largest logit, shape (..., n_facts).

    Logits that differ by rounding are equal, as those of candidates that a head doesn't
    distinguish.
    """
    largest = np.abs(logits).max((-2, -1), initial=0.0)[..., None]
    return margins(logits, prompts) > ROUNDING * np.finfo(logits.dtype).eps * largest


def log_probabilities(logits: NDArray[np.floating], prompts: Prompts) -> NDArray[np.float64]:
    """Return the log-probability of the object among itself and wrong candidates, (n_facts,)."""
    of = logits[prompts.prompt].astype(np.float64)
    own = of[np.arange(len(of)), prompts.own]
    rivals = np.where(prompts.wrong, of, -np.inf)
    return own - np.logaddexp(own, np.logaddexp.reduce(rivals, axis=1))


def runners_up(logits: NDArray[np.floating], prompts: Prompts) -> NDArray[np.int64]:
    """Return the index of the best wrong candidate of each fact, -1 where there is none."""
    of = np.where(prompts.wrong, logits[prompts.prompt], -np.inf)
    return np.where(prompts.wrong.any(1), of.argmax(1), -1)


def contrasted(
    logits: NDArray[np.floating], prompts: Prompts, rivals: NDArray[np.int64] | None
) -> NDArray[np.floating]:
    """Return the object's logit less the rival's, or the mean over candidates: (..., n_facts).

    Parameters
    ----------
    logits : (..., n_prompts, n_tokens)
        Logits.
    prompts : Prompts
        Prompts.
    rivals : (n_facts,) int, optional
        Candidates to subtract, -1 for none; by default the mean over all candidates.
    """
    own = logits[..., prompts.prompt, prompts.own]
    if rivals is None:
        return own - logits.mean(-1)[..., prompts.prompt]
    return own - np.where(rivals >= 0, logits[..., prompts.prompt, rivals], 0.0)
