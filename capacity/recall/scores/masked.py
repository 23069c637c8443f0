"""Pseudo-log-likelihoods by masked models, which read both sides of a word.

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

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from capacity.recall.questions import filling
from capacity.recall.scores.answered import Answered, batches, log_p
from capacity.recall.sentences import Query, Sentence

PseudoLikelihood: TypeAlias = Literal["one_token", "left_to_right"]


# numbers of a query and of its sentence, a place in it, and its tokens with masks
_Masked: TypeAlias = tuple[int, int, int, list[int]]


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

    def together(self, queries: Sequence[Query], *, best_only: bool) -> Iterator[list[int]]:  # noqa: ARG002
        """Yield the numbers of queries that are answered together, to fill a batch."""
        return filling(self._batch_size, range(len(queries)), lambda i: len(queries[i].sentences))

    def answer(self, queries: Sequence[Query], *, best_only: bool) -> list[Answered]:  # noqa: ARG002
        """Score all candidates of queries.

        Parameters
        ----------
        queries : sequence of Query
            The queries.
        best_only : bool
            Ignored: no candidate bounds another, as each has its own masks.
        """
        asked = [
            (at, i, token, self._masked(one, token, one.last if self._rest_too else token + 1))
            for at, query in enumerate(queries)
            for i, one in enumerate(query.sentences)
            for token in range(one.first, one.last)
        ]
        scores = [[0.0] * len(query.sentences) for query in queries]
        for (at, i, token, _), logits in self._runs(asked):
            hidden = torch.tensor([queries[at].sentences[i].ids[token]], device=logits.device)
            scores[at][i] += float(log_p(logits[token], hidden))
        whole = [
            (at, i, query.sentences[i].first, self._masked(one, one.first, one.last))
            for at, query in enumerate(queries)
            for i in query.right
            for one in [query.sentences[i]]
        ]
        written = {
            (at, i): tuple(logits[first : queries[at].sentences[i].last].argmax(-1).tolist())
            for (at, i, first, _), logits in self._runs(whole)
        }
        return [
            Answered(tuple(of), tuple(written[at, i] for i in query.right), len(of))
            for at, (query, of) in enumerate(zip(queries, scores, strict=True))
        ]

    def _runs(self, masked: list[_Masked]) -> Iterator[tuple[_Masked, Tensor]]:
        """Run sentences in batches, and yield the logits of each."""
        # those of one length need no padding
        for batch in batches(sorted(masked, key=lambda one: len(one[3])), self._batch_size):
            yield from zip(batch, self._run([ids for *_, ids in batch]), strict=True)

    def _masked(self, sentence: Sentence, first: int, last: int) -> list[int]:
        return [*sentence.ids[:first], *[self._mask] * (last - first), *sentence.ids[last:]]

    def _run(self, rows: Sequence[list[int]]) -> Tensor:
        n = max(map(len, rows))
        padded = [[*row, *[self._padding] * (n - len(row))] for row in rows]
        real = [[1] * len(row) + [0] * (n - len(row)) for row in rows]
        device = next(self._model.parameters()).device
        ids, mask = (torch.tensor(x, device=device) for x in (padded, real))
        return self._model(input_ids=ids, attention_mask=mask).logits
