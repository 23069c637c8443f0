"""Numbers that tell patterns apart, on patterns whose numbers are known."""

import math

import pytest
import torch

from capacity.errors import InvalidArgumentError
from capacity.transformer import attention_cosine, pattern_statistics, token_shares

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
