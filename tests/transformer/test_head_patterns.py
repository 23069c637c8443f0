"""Scores of heads by loops over tokens, and rollout by its recursion."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.transformer import (
    attention_cosine,
    attention_rollout,
    capture,
    from_tensors,
    head_scores,
    pattern_statistics,
    token_shares,
)
from tests.tiers import examples
from tests.transformer.tiny_models import build, inputs_of

F64 = torch.float64
few = settings(deadline=None, max_examples=examples(10))


def cache_of(batch: int, heads: int, n: int, seed: int, *, layers: int = 2) -> Any:
    """Causal patterns at random."""
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(layers, batch, heads, n, n, generator=g, dtype=F64)
    above = torch.ones(n, n).triu(1).bool()
    patterns = logits.masked_fill(above, -math.inf).softmax(-1)
    values = torch.randn(layers, batch, heads, n, 3, generator=g, dtype=F64)
    return from_tensors([*patterns], [*values])


def by_loops(pattern: Tensor, tokens: list[int], kind: str, *, everywhere: bool) -> float:
    """Score of one head on one sentence, from the words of its definition."""
    weights: list[float] = []
    for i, token in enumerate(tokens):
        places = {
            "previous_token": [i - 1] if i else [],
            "duplicate_token": [j for j in range(i) if tokens[j] == token],
            "induction": [j + 1 for j in range(i) if tokens[j] == token],
        }[kind]
        if places or everywhere:
            weights.append(sum(float(pattern[i, j]) for j in places))
    return float(np.mean(weights)) if weights else math.nan


@given(n=st.integers(1, 7), seed=st.integers(0, 10_000), everywhere=st.booleans(),
       kinds=st.integers(1, 5))  # fmt: skip
@few
def test_scores_are_averages_over_tokens(n: int, seed: int, everywhere: bool, kinds: int) -> None:
    captured = cache_of(2, 3, n, seed)
    tokens = torch.randint(kinds, (2, n), generator=torch.Generator().manual_seed(seed))
    table = head_scores(captured, tokens, rows="all" if everywhere else "targets")
    assert len(table) == 2 * 2 * 3
    for row in table.to_dict("records"):
        pattern = captured.layers[row["layer"]].pattern[row["sentence"], row["head"]]
        for kind in ("previous_token", "duplicate_token", "induction"):
            expected = by_loops(
                pattern, tokens[row["sentence"]].tolist(), kind, everywhere=everywhere
            )
            assert row[kind] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_heads_that_do_nothing_else_have_the_score_one() -> None:
    # [3, 7, 4, 3, 7, 4]: tokens 3 to 5 have an earlier one, which is three before
    tokens = torch.tensor([[3, 7, 4, 3, 7, 4]])
    eye = torch.eye(6, dtype=F64)
    previous = eye.roll(-1, dims=1)
    previous[0] = eye[0]
    duplicate, induction = eye.clone(), eye.clone()
    for i in (3, 4, 5):
        duplicate[i], induction[i] = eye[i - 3], eye[i - 2]
    patterns = torch.stack([previous, duplicate, induction])[None]
    captured = from_tensors([patterns], [torch.ones(1, 3, 6, 1, dtype=F64)])
    scores = head_scores(captured, tokens)[["previous_token", "duplicate_token", "induction"]]
    assert np.allclose(np.diag(scores), 1)
    # of all six tokens, five have a previous one, and three an earlier one
    every = head_scores(captured, tokens, rows="all")
    assert np.allclose(np.diag(every[scores.columns]), [5 / 6, 3 / 6, 3 / 6])


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_no_token(side: str) -> None:
    model = build("Llama", F64)
    tokens = torch.tensor([[5, 7, 5, 7, 9, 5]])
    alone = head_scores(capture(model, tokens), tokens)
    # a padding token that is the same as a real one
    pad, mask = torch.full((1, 2), 5), torch.ones_like(tokens)
    both = [(pad, tokens), (0 * pad, mask)] if side == "left" else [(tokens, pad), (mask, 0 * pad)]
    padded, mask = (torch.cat(parts, 1) for parts in both)
    found = head_scores(capture(model, {"input_ids": padded, "attention_mask": mask}), padded)
    names = ["previous_token", "duplicate_token", "induction"]
    assert np.allclose(found[names], alone[names], atol=1e-6)


def test_layers_and_heads_have_the_models_numbers() -> None:
    model, tokens = build("Jamba", torch.float32), inputs_of("Jamba", torch.float32)["input_ids"]
    some = head_scores(capture(model, tokens, layers=[2], heads=[1, 3]), tokens)
    assert some[["sentence", "layer", "head"]].to_numpy().tolist() == [
        [0, 2, 1], [0, 2, 3], [1, 2, 1], [1, 2, 3]]  # fmt: skip
    every = head_scores(capture(model, tokens), tokens)
    assert some["previous_token"].tolist() == every["previous_token"].tolist()[1::2]


def test_no_token_that_repeats_is_no_score_of_zero() -> None:
    captured = cache_of(1, 2, 4, 0)
    table = head_scores(captured, torch.tensor([[1, 2, 3, 4]]))
    assert table["induction"].isna().all()
    assert not table["previous_token"].isna().any()


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(torch.zeros(1, 4).long(), r"shape \(1, 5\); got \(1, 4\)"), ([1, 2, 3, 4, 5], "got list"),
     (torch.zeros(1, 5), "integers"), (torch.zeros(5).long(), r"got \(5,\)")],
)  # fmt: skip
def test_other_tokens_are_refused(tokens: Any, said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        head_scores(cache_of(1, 2, 5, 0), tokens)
    with pytest.raises(CapacityError, match="`rows`"):
        head_scores(cache_of(1, 2, 5, 0), torch.zeros(1, 5).long(), rows="some")  # type: ignore[arg-type]


@given(n=st.integers(1, 7), seed=st.integers(0, 10_000), residual=st.floats(0, 1))
@few
def test_rollout_is_its_recursion(n: int, seed: int, residual: float) -> None:
    captured = cache_of(2, 3, n, seed, layers=3)
    found = attention_rollout(captured, residual=residual)
    for sentence in range(2):
        expected = np.eye(n)
        for layer, of_layer in zip(captured.layers, found, strict=True):
            mean = layer.pattern[sentence].numpy().mean(0)
            expected = (residual * np.eye(n) + (1 - residual) * mean) @ expected
            assert np.allclose(of_layer[sentence], expected)
    assert torch.allclose(found.sum(-1), torch.ones(1).double())
    assert not found.triu(1).any()
    assert (found >= 0).all()


def test_rollout_with_sinks_and_padding_has_rows_that_sum_to_one() -> None:
    model, inputs = build("GPT-OSS", F64), inputs_of("GPT-OSS", F64)
    inputs["attention_mask"] = torch.tensor([[1] * 9, [1] * 6 + [0] * 3])
    captured = capture(model, inputs)
    assert captured.layers[0].sink is not None
    found = attention_rollout(captured)
    assert torch.allclose(found.sum(-1), captured.mask.double().expand(2, -1, -1))
    alone = attention_rollout(capture(model, inputs["input_ids"][1:, :6]))
    assert torch.allclose(found[:, 1:, :6, :6], alone, atol=1e-6)


def test_rollout_of_a_part_of_what_moves_tokens_is_refused() -> None:
    model, tokens = build("Llama", F64), inputs_of("Llama", F64)["input_ids"]
    for some, said in (
        (capture(model, tokens, layers=[1]), r"those of layers \[1\]"),
        (capture(model, tokens, heads=[0, 2]), r"heads \[0, 2\]"),
        (capture(build("Jamba", F64), tokens), r"those of layers \[2\].*hybrid"),
        (capture(build("Falcon-H1", F64), tokens), "hybrid"),
        (replace(cache_of(1, 2, 4, 0), keys=torch.ones(1, 4).bool()), "two sequences"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            attention_rollout(some)
    for residual in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgumentError, match="`residual` must be from 0 to 1"):
            attention_rollout(cache_of(1, 2, 4, 0), residual=residual)


ALL = torch.ones(1, 4, dtype=torch.bool)


def test_a_vertical_pattern_and_a_diagonal_one_are_told_apart() -> None:
    vertical = torch.zeros(4, 4)
    vertical[:, 3] = 1
    even = torch.full((4, 4), 0.25)
    found = pattern_statistics(torch.stack([vertical, torch.eye(4), even])[None], ALL)
    assert found["vertical"].tolist() == [[1.0, 0.25, 0.25]]
    # of the last column rows 2 and 3 are near; of 16 even weights 4 + 3 + 3
    assert found["diagonal"].tolist() == [[0.5, 1.0, 0.625]]
    expected = torch.tensor([[0.0, 0.0, math.log(4)]])
    assert torch.allclose(found["entropy"], expected)
    assert found["row_sum"].tolist() == [[1.0] * 3]
    assert found["negative"].tolist() == [[0.0] * 3]


def test_padding_doesn_t_count_in_statistics() -> None:
    mask = torch.tensor([[True, True, False, False]])
    pattern = torch.zeros(1, 1, 4, 4)
    pattern[0, 0, :2, :2] = torch.tensor([[0.5, 0.5], [1.5, -0.5]])
    found = pattern_statistics(pattern, mask)
    alone = pattern_statistics(pattern[..., :2, :2], ALL[:, :2])
    for name, value in found.items():
        assert torch.equal(value, alone[name]), name
    assert float(found["row_sum"]) == 1
    # 0.5 of 3 in absolute weight
    assert float(found["negative"]) == pytest.approx(1 / 6)


def test_shares_are_of_absolute_weights_and_the_largest_is_signed() -> None:
    pattern = torch.tensor([[[[0.5, 0.5, 0.0, 0.0], [0.75, -0.25, 0.25, 0.25]] + [[0.0] * 4] * 2]])
    kinds = {"delimiter": torch.tensor([[True, False, False, True]]), "none": ~ALL}
    rows = torch.tensor([[True, True, False, False]])
    table = token_shares(pattern, kinds, rows).set_index("kind")
    # (0.5 + 1.0 / 1.5) / 2 of absolute weight, (0.5 + 1.0) / 2 of weight
    assert table.loc["delimiter", "share"] == pytest.approx((0.5 + 2 / 3) / 2)
    assert table.loc["delimiter", "weight"] == pytest.approx(0.75)
    assert table.loc["delimiter", "largest"] == pytest.approx((0.5 + 0.75) / 2)
    assert table.loc["none", "share"] == 0
    assert math.isnan(float(table.loc["none", "largest"]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgumentError, match="`rows` must mark at least one"):
        token_shares(pattern, kinds, ~ALL)


def test_cosine_is_of_whole_patterns_and_a_mean_over_sentences() -> None:
    g = torch.Generator().manual_seed(0)
    first = [torch.rand(3, 2, 5, 5, generator=g) for _ in range(2)]
    second = [torch.rand(3, 2, 5, 5, generator=g) for _ in range(2)]
    expected = [
        [
            torch.stack(
                [(a[b, h] * c[b, h]).sum() / a[b, h].norm() / c[b, h].norm() for b in range(3)]
            ).mean()
            for h in range(2)
        ]
        for a, c in zip(first, second, strict=True)
    ]
    assert torch.allclose(attention_cosine(first, second), torch.tensor(expected))
    assert torch.allclose(attention_cosine(first, [2 * x for x in first]), torch.ones(2, 2))
    for others in (first[:1], [x[:2] for x in first], []):
        with pytest.raises(InvalidArgumentError, match="on the same sentences"):
            attention_cosine(first if others else [], others)


def test_marks_of_tokens_must_fit() -> None:
    pattern = torch.rand(1, 1, 4, 4)
    with pytest.raises(InvalidArgumentError, match=r"'verbs' is torch.bool of shape \(1, 3\)"):
        token_shares(pattern, {"verbs": ALL[:, :3]}, ALL)
    with pytest.raises(InvalidArgumentError, match=r"'rows' is torch.int64"):
        token_shares(pattern, {"verbs": ALL}, ALL.long())
    with pytest.raises(InvalidArgumentError, match="`kinds` must name at least one"):
        token_shares(pattern, {}, ALL)
