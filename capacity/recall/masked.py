"""Scores of answers by masked models, which read both sides of a word: pseudo-log-likelihoods.

With all other tokens of the sentence S visible, the score of an object of the tokens i..j is

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

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from capacity.recall.continuations import Answered
from capacity.recall.sentences import Query, Sentence

PseudoLikelihood: TypeAlias = Literal["one_token", "left_to_right"]


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

    def _masked(self, one: Sentence, first: int, last: int) -> list[int]:
        return [*one.ids[:first], *[self._mask] * (last - first), *one.ids[last:]]

    def _run(self, rows: Sequence[list[int]]) -> Tensor:
        n = max(map(len, rows))
        padded = [[*row, *[self._padding] * (n - len(row))] for row in rows]
        real = [[1] * len(row) + [0] * (n - len(row)) for row in rows]
        device = next(self._model.parameters()).device
        ids, mask = (torch.tensor(x, device=device) for x in (padded, real))
        return self._model(input_ids=ids, attention_mask=mask).logits
