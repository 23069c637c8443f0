"""Log-likelihoods of answers by models that read from left to right: causal ones, and decoders.

The score of a sentence is the log-likelihood of its tokens from the object's first one to the end,

    sum over i >= first of log p(t_i | t_1 ... t_{i-1}),

so that the text before the object and that after it both count. What all candidates of a query
begin with is run once, and its keys and values are reused. As no term of the sum is positive, a
score is at most its first term, which that run yields for all candidates: the best answer is
searched for in the order of this bound, until no bound exceeds the best score. Queries that begin
with as many tokens are searched together, a few candidates of each at a time: a run reads all
weights of the model, however few its sentences are.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.recall.questions import filling
from capacity.recall.scores.answered import Answered, batches, log_p
from capacity.recall.sentences import Query

# most candidates of a query in the first run of a search
_FIRST = 8


class ContinuationScorer:
    """Scores the sentences of queries by a causal model or an encoder-decoder.

    Parameters
    ----------
    model : PreTrainedModel
        The model, in eval mode.
    batch_size : int
        Number of sentences that are run together.
    cache : bool
        Reuse keys and values of the tokens that all candidates of a query begin with.
    """

    def __init__(self, model: Any, *, batch_size: int, cache: bool) -> None:
        self._model, self._batch_size, self._cache = model, batch_size, cache

    def together(self, queries: Sequence[Query], *, best_only: bool) -> Iterator[list[int]]:
        """Yield the numbers of queries that are answered together, to fill a batch.

        What the candidates of each begin with has one length, so that it is run without padding.

        Raises
        ------
        InvalidArgumentError
            If the sentences of a query have no first token in common.
        """
        lengths = [(_n_context(query), len(query.source)) for query in queries]
        order = sorted(range(len(queries)), key=lambda i: lengths[i])
        for _, group in groupby(order, key=lambda i: lengths[i]):
            yield from filling(
                self._batch_size, group, lambda i: 1 if best_only else len(queries[i].sentences)
            )

    def answer(self, queries: Sequence[Query], *, best_only: bool) -> list[Answered]:
        """Score all candidates of queries, or as many as the best answers need.

        Right answers are always scored.

        Parameters
        ----------
        queries : sequence of Query
            Queries that are answered together, by `together`.
        best_only : bool
            Whether candidates that can't be the best one may be omitted.
        """
        begun = _Begun(self._model, queries, cache=self._cache)
        searches = [
            _Search(query, bounds) for query, bounds in zip(queries, begun.bounds, strict=True)
        ]
        first = _FIRST
        while unfinished := [at for at, search in enumerate(searches) if search.left]:
            # a run reads all weights, however few its sentences are, and large ones of a single
            # query may do needless work
            size = max(1, min(first, self._batch_size // len(unfinished)))
            first *= 2
            chosen = [
                (at, candidate)
                for at in unfinished
                for candidate in searches[at].taken(size if best_only else None)
            ]
            # sentences of one length are run without padding
            chosen.sort(key=lambda pair: len(begun.rests[pair[0]][pair[1]]))
            for batch in batches(chosen, self._batch_size):
                for (at, candidate), score in zip(batch, begun.scores(batch), strict=True):
                    searches[at].scores[candidate] = score
        return [
            Answered(search.of_all(), begun.greedy(at), len(search.scores))
            for at, search in enumerate(searches)
        ]


class _Search:
    """The search for the best answer to a query.

    Parameters
    ----------
    query : Query
        The query.
    bounds : sequence of float
        What each candidate's score is at most.
    """

    def __init__(self, query: Query, bounds: Sequence[float]) -> None:
        self._right, self._bounds = query.right, bounds
        self.scores: dict[int, float] = {}
        wrong = set(range(len(bounds))) - {*query.right}
        # a right answer is scored anyway, and is often the best
        self._waiting = [*query.right, *sorted(wrong, key=lambda i: -bounds[i])]

    @property
    def left(self) -> list[int]:
        """Candidates that may still be the best one, the most likely first."""
        # of several right answers each is compared with the best wrong one
        rivals = [
            score for i, score in self.scores.items()
            if len(self._right) == 1 or i not in self._right
        ]  # fmt: skip
        best = max(rivals, default=-math.inf)
        self._waiting = [i for i in self._waiting if i in self._right or self._bounds[i] >= best]
        return self._waiting

    def taken(self, n: int | None) -> list[int]:
        """Take the next candidates, all right ones the first time; all of them for None."""
        n = len(self._waiting) if n is None else max(n, 0 if self.scores else len(self._right))
        now, self._waiting = self._waiting[:n], self._waiting[n:]
        return now

    def of_all(self) -> tuple[float, ...]:
        """Return the score of each candidate, NaN if it wasn't needed."""
        return tuple(self.scores.get(i, math.nan) for i in range(len(self._bounds)))


class _Begun:
    """Queries whose common beginnings, of one length, have been run."""

    def __init__(self, model: Any, queries: Sequence[Query], *, cache: bool) -> None:
        self._model = model
        self._device = next(model.parameters()).device
        self._n_context = _n_context(queries[0])
        self._right = [[query.sentences[i] for i in query.right] for query in queries]
        self._contexts = [query.sentences[0].ids[: self._n_context] for query in queries]
        self.rests = [[s.ids[self._n_context :] for s in query.sentences] for query in queries]
        self._encoded: Tensor | None = None
        if queries[0].source:
            source = torch.tensor([query.source for query in queries], device=self._device)
            self._encoded = model.get_encoder()(input_ids=source).last_hidden_state
        self._past: Any = None
        output = self._run(range(len(queries)), self._contexts, None, cache)
        past = getattr(output, "past_key_values", None)
        self._past = past if _is_of_keys_and_values(past) else None
        first = output.logits[:, -1]
        self.bounds = [
            log_p(row, torch.tensor([rest[0] for rest in rests], device=row.device)).tolist()
            for row, rests in zip(first, self.rests, strict=True)
        ]
        # what the model ranks first after these tokens that follow the common beginning
        self._next: list[dict[tuple[int, ...], int]] = [
            {(): token} for token in first.argmax(-1).tolist()
        ]

    def scores(self, chosen: Sequence[tuple[int, int]]) -> list[float]:
        """Score a batch of candidates, each a query's number and its own."""
        rests = [self.rests[at][candidate] for at, candidate in chosen]
        n = max(map(len, rests)) - 1
        scores = torch.tensor([self.bounds[at][i] for at, i in chosen], dtype=torch.float64)
        if n == 0:
            return scores.tolist()
        # padding follows, where no token sees it
        rows = [[*rest[:-1], *[rest[0]] * (n + 1 - len(rest))] for rest in rests]
        logits = self._after_contexts([at for at, _ in chosen], rows)[:, -n:]
        ranked_first = logits.argmax(-1).tolist()
        for (at, _), rest, tokens in zip(chosen, rests, ranked_first, strict=True):
            self._next[at] |= {rest[: i + 1]: tokens[i] for i in range(len(rest) - 1)}
        following = [[*rest[1:], *[rest[0]] * (n + 1 - len(rest))] for rest in rests]
        wanted = torch.tensor(following, device=logits.device)
        terms = log_p(logits, wanted[..., None])[..., 0].cpu()
        real = torch.arange(n) < torch.tensor([[len(rest) - 1] for rest in rests])
        return (scores + terms.where(real, 0.0).sum(-1)).tolist()

    def greedy(self, at: int) -> tuple[tuple[int, ...], ...]:
        """Return the tokens that the model writes in the place of each right answer."""
        lengths = [one.last - self._n_context for one in self._right[at]]
        written: tuple[int, ...] = ()
        while len(written) < max(lengths):
            if written not in self._next[at]:
                logits = self._after_contexts([at], [[*written]])[0, -1]
                self._next[at][written] = int(logits.argmax())
            written = (*written, self._next[at][written])
        return tuple(written[:length] for length in lengths)

    def _after_contexts(self, of: Sequence[int], rows: list[list[int]]) -> Tensor:
        """Logits of rows of tokens, each after what a query begins with."""
        if self._past is None:
            whole = [[*self._contexts[at], *row] for at, row in zip(of, rows, strict=True)]
            return self._run(of, whole, None, False).logits
        past = copy.deepcopy(self._past)
        past.batch_select_indices(torch.tensor([*of], device=self._device))
        return self._run(of, rows, past, True).logits

    def _run(self, of: Sequence[int], rows: Sequence[Sequence[int]], past: Any, cache: bool) -> Any:
        ids = torch.tensor([list(row) for row in rows], device=self._device)
        given: dict[str, Any] = {"use_cache": cache, "past_key_values": past}
        if self._encoded is None:
            n_past = 0 if past is None else self._n_context
            mask = torch.ones(len(rows), n_past + ids.shape[1], dtype=torch.long)
            given |= {"input_ids": ids, "attention_mask": mask.to(self._device)}
        else:
            given |= {"decoder_input_ids": ids, "encoder_outputs": (self._encoded[[*of]],)}
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


def _n_context(query: Query) -> int:
    """Length of what all sentences of a query begin with, before their objects."""
    ids = [one.ids for one in query.sentences]
    low, high = min(ids), max(ids)
    pairs = zip(low, high, strict=False)
    common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(low), len(high)))
    # also of sentences in which the tokenizer joined the object with what precedes it
    n = min(common, *(one.first for one in query.sentences))
    if n == 0:
        raise InvalidArgumentError(
            "The sentences of a question must begin with the same token; those with different "
            "objects begin with different ones. Write a template with more text before {object}."
        )
    return n
