"""Sentences for the models of models.py: pairs of tweets, molecules written as reactions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unicodedata import category

import torch
from torch import Tensor

from experiments.common.models import CLS, SEP, Smiles, molecules, tweets

PUNCTUATION, OTHER = "punctuation", "other"
KINDS = (SEP, CLS, PUNCTUATION, OTHER)


@dataclass(frozen=True, eq=False)
class Sentence:
    """Two texts as one sentence.

    Attributes
    ----------
    inputs : dict of tensors
        For the model.
    tokens : list of str
    kinds : list of str
        Of each token, one of ``KINDS``.
    part : (n,) int
        1 and 2 in the two texts, 0 for what parts them.
    """

    inputs: dict[str, Tensor]
    tokens: list[str]
    kinds: list[str]
    part: Tensor

    def are(self, *kinds: str) -> Tensor:
        """Tokens of these kinds, (1, n)."""
        return torch.tensor([[kind in kinds for kind in self.kinds]])


def tweet_pairs(
    tokenizer: Any, n: int, length: int, *, n_texts: int | None = None
) -> Iterator[Sentence]:
    """Pairs of texts, each of some tweets without their links, clipped to `length` tokens."""
    # enough for nearly every sentence to be as long
    k = n_texts or length // 16
    texts = tweets()["text"].sample(2 * k * n, random_state=length).tolist()
    texts = [re.sub(r"https?:\S*|\s+", " ", text).strip() for text in texts]
    for i in range(0, len(texts), 2 * k):
        halves = [" ".join(texts[j : j + k]) for j in (i, i + k)]
        inputs = dict(tokenizer(*halves, return_tensors="pt", truncation=True, max_length=length))
        tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        kinds = [_kind(token, all(category(c)[0] in "PS" for c in token)) for token in tokens]
        delimiter = torch.tensor([kind in (CLS, SEP) for kind in kinds])
        part = (inputs["token_type_ids"][0] + 1).masked_fill(delimiter, 0)
        yield Sentence(inputs, tokens, kinds, part)


def reactions(n: int) -> Iterator[Sentence]:
    """Two molecules, an arrow, and one more; the full stop and the arrow are punctuation."""
    smiles = Smiles()
    them = molecules(3 * n)
    for a, b, c in zip(*(them[i::3] for i in range(3)), strict=True):
        inputs = smiles.encode([f"{a}.{b}>>{c}"])
        tokens = [smiles.words[t] for t in inputs["input_ids"][0]]
        kinds = [_kind(token, token in (".", ">>")) for token in tokens]
        arrow = torch.tensor([token == ">>" for token in tokens])
        delimiter = torch.tensor([kind in (CLS, SEP) for kind in kinds])
        part = (1 + arrow.cumsum(0)).masked_fill(arrow | delimiter, 0)
        yield Sentence(inputs, tokens, kinds, part)


def _kind(token: str, mark: bool) -> str:
    if token in (CLS, SEP):
        return token
    return PUNCTUATION if mark else OTHER
