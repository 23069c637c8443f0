"""Measures of the experiments on terms of embeddings, on cases made by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cosine_similarity

from experiments.decomposition.geometry import between_delimiters, mean_cosine


def test_delimiters_and_padding_are_left_out() -> None:
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    kept = between_delimiters(mask)
    assert kept.tolist() == [[False, True, True, True, False], [False, True, False, False, False]]


def test_the_mean_cosine_is_that_of_all_pairs_of_two_texts() -> None:
    x = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    kept = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 1, 1]]).bool()
    pairs = [
        cosine_similarity(x[a, i], x[b, j], dim=0).item()
        for a in range(3) for i in range(4) if kept[a, i]
        for b in range(3) for j in range(4) if b != a and kept[b, j]
    ]  # fmt: skip
    assert mean_cosine(x, kept) == pytest.approx(sum(pairs) / len(pairs))
