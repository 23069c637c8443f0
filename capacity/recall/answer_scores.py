"""Scores of answers: log-likelihoods by models that read from left to right, or by masked models.

*Causal models, and decoders.* The score of a sentence is the log-likelihood of its tokens from the
object's first one to the end,

    sum over i >= first of log p(t_i | t_1 ... t_{i-1}),

so that the text before the object and that after it both count. What all candidates of a query
begin with is run once, and its keys and values are reused. As no term of the sum is positive, a
score is at most its first term, which that run yields for all candidates: the best answer is
searched for in the order of this bound, until no bound exceeds the best score.

*Masked models*, which read both sides of a word, have pseudo-log-likelihoods. With all other tokens
of the sentence S visible, the score of an object of the tokens i..j is

    sum over t in i..j of log p(S_t | S without S_t)               (``one_token``), or
    sum over t in i..j of log p(S_t | S without S_t, ..., S_j)     (``left_to_right``).

The first overrates objects of several tokens that predict each other; the second doesn't.

References
----------
Salazar, Liang, Nguyen, Kirchhoff 2020, "Masked Language Model Scoring", section 2.1, for the first,
here over the object's tokens. Kauf, Ivanova 2023, "A Better Way to Do Masked Language Model
Scoring", section 3, for the second, here over the whole object.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.recall.sentences import Query, Sentence

PseudoLikelihood: TypeAlias = Literal["one_token", "left_to_right"]
# candidates of the first run of a search
_FIRST = 8


class Answered(NamedTuple):
    """Scores of a query, and what the model writes.

    Attributes
    ----------
    scores : tuple of float
        Log-likelihood of each candidate, NaN where it wasn't needed.
    greedy : tuple of tuple of int
        Tokens that the model ranks first in the place of each right answer, as many as that has.
    n_scored : int
        Number of candidates that were scored.
    """

    scores: tuple[float, ...]
    greedy: tuple[tuple[int, ...], ...]
    n_scored: int


class ContinuationScorer:
    """Scores the sentences of queries by a causal model or an encoder-decoder.

    Parameters
    ----------
    model : PreTrainedModel
        The model, in eval mode.
    batch_size : int
        Number of candidates that are run together.
    cache : bool
        Reuse keys and values of the tokens that all candidates begin with.
    """

    def __init__(self, model: Any, *, batch_size: int, cache: bool) -> None:
        self._model, self._batch_size, self._cache = model, batch_size, cache

    def answer(self, query: Query, *, best_only: bool) -> Answered:
        """Score all candidates of a query, or as many as the best answer needs.

        Right answers are always scored.

        Parameters
        ----------
        query : Query
            The sentences.
        best_only : bool
            Whether candidates that can't be the best one may be omitted.

        Raises
        ------
        InvalidArgumentError
            If the sentences have no first token in common.
        """
        begun = _Begun(self._model, query, cache=self._cache)
        bounds = begun.bounds
        scores: dict[int, float] = {}
        # a right answer is scored anyway, and is often the best
        left = [*query.right, *sorted(set(range(len(bounds))) - {*query.right},
                                      key=lambda i: -bounds[i])]  # fmt: skip
        if not best_only:
            scores = dict(self._scored(begun, left))
            left = []
        # the right answers and a few more first, then more at a time: a run reads all weights,
        # however few its sentences are, and large batches may do needless work
        size = max(len(query.right), min(_FIRST, self._batch_size))
        while left:
            now, left = left[:size], left[size:]
            size = min(2 * size, self._batch_size)
            scores |= dict(self._scored(begun, now))
            # of several right answers each is compared with the best wrong one
            rivals = [s for i, s in scores.items() if len(query.right) == 1 or i not in query.right]
            best = max(rivals, default=-math.inf)
            left = [i for i in left if i in query.right or bounds[i] >= best]
        longest = max(query.sentences[i].last for i in query.right)
        written = begun.greedy(longest - begun.n_context)
        return Answered(
            tuple(scores.get(i, math.nan) for i in range(len(bounds))),
            tuple(written[: query.sentences[i].last - begun.n_context] for i in query.right),
            len(scores),
        )

    def _scored(self, begun: _Begun, chosen: Iterable[int]) -> Iterable[tuple[int, float]]:
        # sentences of one length are run without padding
        chosen = sorted(chosen, key=lambda i: len(begun.rests[i]))
        for at in range(0, len(chosen), self._batch_size):
            now = chosen[at : at + self._batch_size]
            yield from zip(now, begun.scores(now), strict=True)


class _Begun:
    """A query whose common beginning has been run."""

    def __init__(self, model: Any, query: Query, *, cache: bool) -> None:
        self._model = model
        self._device = next(model.parameters()).device
        ids = [one.ids for one in query.sentences]
        # also of sentences in which the tokenizer joined the object with what precedes it
        self.n_context = min(_common(ids), *(one.first for one in query.sentences))
        if self.n_context == 0:
            raise InvalidArgumentError(
                "The sentences of a question must begin with the same token; those with different "
                "objects begin with different ones. Write a template with more text before "
                "{object}."
            )
        self._context = ids[0][: self.n_context]
        self.rests = [one[self.n_context :] for one in ids]
        self._encoded: Tensor | None = None
        if query.source:
            source = torch.tensor([query.source], device=self._device)
            self._encoded = model.get_encoder()(input_ids=source).last_hidden_state
        self._past: Any = None
        output = self._run([self._context], None, cache)
        past = getattr(output, "past_key_values", None)
        self._past = past if _is_of_keys_and_values(past) else None
        self._logits = _log_p(output.logits[0, -1])
        self.bounds = self._logits[[rest[0] for rest in self.rests]].tolist()

    def scores(self, chosen: Sequence[int]) -> list[float]:
        """Score a batch of candidates."""
        rests = [self.rests[i] for i in chosen]
        n = max(map(len, rests)) - 1
        scores = torch.tensor([self.bounds[i] for i in chosen], dtype=torch.float64)
        if n == 0:
            return scores.tolist()
        # padding follows, where no token sees it
        rows = [[*rest[:-1], *[rest[0]] * (n + 1 - len(rest))] for rest in rests]
        logits = self._after_context(rows)[:, -n:]
        following = [[*rest[1:], *[rest[0]] * (n + 1 - len(rest))] for rest in rests]
        wanted = torch.tensor(following, device=logits.device)
        terms = _log_p(logits).gather(-1, wanted[..., None])[..., 0].cpu()
        real = torch.arange(n) < torch.tensor([[len(rest) - 1] for rest in rests])
        return (scores + terms.where(real, 0.0).sum(-1)).tolist()

    def greedy(self, n: int) -> tuple[int, ...]:
        """Return the `n` tokens that the model writes after the common beginning."""
        written = [int(self._logits.argmax())]
        while len(written) < n:
            written.append(int(self._after_context([written])[0, -1].argmax()))
        return tuple(written)

    def _after_context(self, rows: list[list[int]]) -> Tensor:
        """Logits of tokens that follow the common beginning."""
        if self._past is None:
            return self._run([[*self._context, *row] for row in rows], None, False).logits
        past = copy.deepcopy(self._past)
        if len(rows) > 1:
            past.batch_repeat_interleave(len(rows))
        return self._run(rows, past, True).logits

    def _run(self, rows: Sequence[Sequence[int]], past: Any, cache: bool) -> Any:
        ids = torch.tensor([list(row) for row in rows], device=self._device)
        given: dict[str, Any] = {"use_cache": cache, "past_key_values": past}
        if self._encoded is None:
            n_past = 0 if past is None else self.n_context
            mask = torch.ones(len(rows), n_past + ids.shape[1], dtype=torch.long)
            given |= {"input_ids": ids, "attention_mask": mask.to(self._device)}
        else:
            encoded = self._encoded.expand(len(rows), -1, -1)
            given |= {"decoder_input_ids": ids, "encoder_outputs": (encoded,)}
        return self._model(**given)


def _is_of_keys_and_values(past: Any) -> bool:
    """Return whether a cache can be repeated for a batch; states of recurrent layers can't."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    both = [getattr(past, f"{name}_attention_cache", None) for name in ("self", "cross")]
    parts = [past] if None in both else both
    layers = [getattr(part, "layers", ()) for part in parts]
    return all(layers) and all(
        type(layer) in (DynamicLayer, DynamicSlidingWindowLayer)
        for part in layers
        for layer in part
    )


def _common(rows: Sequence[tuple[int, ...]]) -> int:
    """Length of what all rows begin with."""
    low, high = min(rows), max(rows)
    pairs = zip(low, high, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(low), len(high)))


def _log_p(logits: Tensor) -> Tensor:
    """Log-probabilities in float64, none above 0."""
    return logits.double().log_softmax(-1).clamp_max(0.0)


class MaskedScorer:
    """Scores the sentences of queries by a masked model.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        The model, in eval mode, and its tokenizer, which has a mask token.
    batch_size : int
        Number of sentences that are run together.
    pseudo_likelihood : {"one_token", "left_to_right"}
        What is masked while a token is predicted: that token, or the rest of the object, too.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, batch_size: int, pseudo_likelihood: PseudoLikelihood
    ) -> None:
        self._model, self._batch_size = model, batch_size
        self._mask = tokenizer.mask_token_id
        # models that count positions by what is no padding need their own
        self._padding = tokenizer.pad_token_id or 0
        self._rest_too = pseudo_likelihood == "left_to_right"

    def answer(self, query: Query, *, best_only: bool) -> Answered:  # noqa: ARG002
        """Score all candidates of a query.

        Parameters
        ----------
        query : Query
            The sentences.
        best_only : bool
            Ignored: no candidate bounds another, as each has its own masks.
        """
        asked = [
            (at, token, self._masked(one, token, one.last if self._rest_too else token + 1))
            for at, one in enumerate(query.sentences)
            for token in range(one.first, one.last)
        ]
        scores = [0.0] * len(query.sentences)
        # sentences of one length need no padding
        asked.sort(key=lambda each: len(each[2]))
        for begin in range(0, len(asked), self._batch_size):
            batch = asked[begin : begin + self._batch_size]
            logits = self._run([ids for _, _, ids in batch])
            for (at, token, _), row in zip(batch, logits, strict=True):
                log_p = row[token].double().log_softmax(-1)
                scores[at] += float(log_p[query.sentences[at].ids[token]])
        right = [query.sentences[i] for i in query.right]
        logits = self._run([self._masked(one, one.first, one.last) for one in right])
        written = tuple(
            tuple(row[one.first : one.last].argmax(-1).tolist())
            for row, one in zip(logits, right, strict=True)
        )
        return Answered(tuple(scores), written, len(scores))

    def _masked(self, sentence: Sentence, first: int, last: int) -> list[int]:
        return [*sentence.ids[:first], *[self._mask] * (last - first), *sentence.ids[last:]]

    def _run(self, rows: Sequence[list[int]]) -> Tensor:
        n = max(map(len, rows))
        padded = [[*row, *[self._padding] * (n - len(row))] for row in rows]
        real = [[1] * len(row) + [0] * (n - len(row)) for row in rows]
        device = next(self._model.parameters()).device
        ids, mask = (torch.tensor(x, device=device) for x in (padded, real))
        return self._model(input_ids=ids, attention_mask=mask).logits
