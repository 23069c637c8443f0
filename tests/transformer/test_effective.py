"""Effective attention: its laws in both precisions, on any V, batched and padded."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer import capture, effective_attention
from capacity.transformer.effective.attention import (
    EffectiveLayer,
    EffectiveMode,
    effective_layer,
    effective_share,
)
from tests.tiers import examples

DTYPES = [torch.float64, torch.float32]
SLACK = {torch.float64: 1e-10, torch.float32: 2e-5}


@st.composite
def heads(draw: st.DrawFn) -> tuple[Tensor, Tensor, torch.Generator]:
    """Logits and values of two sentences of two heads; values may lack rank."""
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**20)))
    n, d = draw(st.integers(1, 24)), draw(st.integers(1, 8))
    rank = draw(st.integers(1, d))
    v = torch.randn(2, 2, n, rank, generator=g, dtype=torch.float64)
    # columns of very different sizes, which the rank threshold may cut anywhere
    v = v * torch.logspace(0, -draw(st.integers(0, 14)), rank, dtype=torch.float64)
    if rank < d:
        v = v @ torch.randn(2, 2, rank, d, generator=g, dtype=torch.float64)
    if draw(st.booleans()):
        # tokens that occur twice
        v = v[:, :, torch.randint(n, (n,), generator=g)]
    v = v * 10.0 ** draw(st.integers(-6, 6))
    return torch.randn(2, 2, n, n, generator=g, dtype=torch.float64), v, g


def attention(logits: Tensor, *, causal: bool = False) -> Tensor:
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -torch.inf)
    return logits.softmax(-1)


def everywhere(v: Tensor) -> Tensor:
    return torch.ones(v.shape[0], v.shape[-2], dtype=torch.bool)


def by_svd(a: Tensor, v: Tensor, relative: float) -> Tensor:
    """The definition: rows of A projected onto the span of V's left singular vectors."""
    U, s, _ = torch.linalg.svd(v.double(), full_matrices=False)
    U = U * ((s > relative * s[..., :1]) & (s > 0))[..., None, :]
    return (a.double() @ U) @ U.mT


def blur(s: Tensor, relative: float) -> float:
    """How far a projection moves with the last digit of V: as its condition number says."""
    kept = torch.where(s > relative * s[..., :1], s, torch.inf)
    condition = (s[..., :1] / kept).max()
    return float(100 * condition) * torch.finfo(torch.float64).eps


def clear_cut(s: Tensor, relative: float) -> bool:
    """Whether no singular value is near the threshold, or near float64's own precision."""
    ratio = s / s[..., :1].clamp_min(1e-300) / relative
    return not bool(((ratio > 0.5) & (ratio < 2)).any())


@pytest.mark.parametrize("mode", ["plain", "simplex", "causal"])
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(40))
@given(heads())
def test_effective_attention_gives_the_same_output(
    dtype: torch.dtype, mode: EffectiveMode, drawn: tuple[Tensor, Tensor, torch.Generator]
) -> None:
    logits, v, _ = drawn
    a, v = attention(logits, causal=mode == "causal").to(dtype), v.to(dtype)
    effective = effective_layer(a, v, everywhere(v), mode).pattern
    assert effective.dtype == dtype
    assert ((effective - a) @ v).abs().max() <= SLACK[dtype] * v.abs().max()


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(40))
@given(heads())
def test_plain_is_the_projection_that_the_singular_vectors_give(
    dtype: torch.dtype, drawn: tuple[Tensor, Tensor, torch.Generator]
) -> None:
    logits, v, _ = drawn
    a, v = attention(logits).to(dtype), v.to(dtype)
    found = effective_layer(a, v, everywhere(v), "plain")
    relative = float(found.relative[0])
    assert relative == max(v.shape[-2:]) * torch.finfo(dtype).eps
    s = torch.linalg.svdvals(v.double())
    if clear_cut(s, relative):
        assert (found.pattern - by_svd(a, v, relative)).abs().max() <= SLACK[dtype] + blur(
            s, relative
        )
        assert torch.equal(found.rank, (s > relative * s[..., :1]).sum(-1))
    # it only shortens rows, and once is enough
    assert (found.pattern.norm(dim=-1) <= a.norm(dim=-1) + SLACK[dtype]).all()
    again = effective_layer(found.pattern, v, everywhere(v), "plain").pattern
    assert (again - found.pattern).abs().max() <= SLACK[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(40))
@given(heads())
def test_causal_rows_are_the_shortest_on_their_own_support(
    dtype: torch.dtype, drawn: tuple[Tensor, Tensor, torch.Generator]
) -> None:
    logits, v, _ = drawn
    a, v = attention(logits, causal=True).to(dtype), v.to(dtype)
    found = effective_layer(a, v, everywhere(v), "causal")
    assert not found.pattern.triu(1).any()
    relative = float(found.relative[0])
    for i in range(v.shape[-2]):
        prefix = v[..., : i + 1, :]
        s = torch.linalg.svdvals(prefix.double())
        if not clear_cut(s, relative):
            continue
        row = by_svd(a[..., i : i + 1, : i + 1], prefix, relative)
        off = (found.pattern[..., i : i + 1, : i + 1] - row).abs().max()
        assert off <= SLACK[dtype] + blur(s, relative)


@pytest.mark.parametrize("dtype", DTYPES)
def test_causal_blocks_agree_with_single_rows_on_long_sentences(dtype: torch.dtype) -> None:
    # several blocks; the second head repeats tokens, so that its prefixes lack rank for long
    g = torch.Generator().manual_seed(3)
    n, d = 90, 8
    v = torch.randn(1, 2, n, d, generator=g, dtype=torch.float64)
    v[:, 1, :60] = v[:, 1, torch.randint(5, (60,), generator=g)]
    a = attention(torch.randn(1, 2, n, n, generator=g, dtype=torch.float64), causal=True).to(dtype)
    v = v.to(dtype)
    found = effective_layer(a, v, everywhere(v), "causal")
    for i in range(n):
        row = by_svd(a[..., i : i + 1, : i + 1], v[..., : i + 1, :], float(found.relative[0]))
        assert (found.pattern[..., i : i + 1, : i + 1] - row).abs().max() <= SLACK[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [0, 2, 4, 5, 8, 11, 14, 17])
@pytest.mark.parametrize("n", [9, 20, 60])
def test_causal_rows_after_nearly_dependent_ones_are_right(
    dtype: torch.dtype, power: int, n: int
) -> None:
    """The first d rows of V have the condition number 10^power, the first of two heads has 1."""
    g = torch.Generator().manual_seed(power)
    d = 8
    v = torch.randn(1, 2, n, d, generator=g, dtype=torch.float64)
    Q, P = (torch.linalg.qr(torch.randn(2, d, d, generator=g, dtype=torch.float64)).Q for _ in "QP")
    s = torch.stack([torch.zeros(d), torch.linspace(0, -power, d)]).double()
    v[0, :, :d] = Q @ (10 ** s[..., None] * P)
    v = v.to(dtype)
    a = attention(torch.randn(1, 2, n, n, generator=g, dtype=torch.float64), causal=True).to(dtype)
    found = effective_layer(a, v, everywhere(v), "causal")
    assert_shortest(found, a, v)
    assert torch.equal(found.pattern[:, 0, :d], a[:, 0, :d])
    expected = found.pattern.square().sum((-2, -1))
    torch.testing.assert_close(found.square, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("condition", [10, 1e3, 3e5, 1e7, 1e12, 1e17])
def test_causal_rows_follow_the_rank_rule_after_the_first_rows(
    dtype: torch.dtype, condition: float
) -> None:
    """One direction of V is small throughout: too small for float32 from the third case on."""
    g = torch.Generator().manual_seed(1)
    n, d = 60, 8
    v = torch.randn(1, 2, n, d, generator=g, dtype=torch.float64)
    v[..., :d, :], v[..., d:, :] = torch.linalg.qr(v[..., :d, :]).Q, 0.2 * v[..., d:, :]
    v[..., 0] /= condition
    turn = torch.linalg.qr(torch.randn(d, d, generator=g, dtype=torch.float64)).Q
    v = (v @ turn).to(dtype)
    a = attention(torch.randn(1, 2, n, n, generator=g, dtype=torch.float64), causal=True).to(dtype)
    found = effective_layer(a, v, everywhere(v), "causal")
    relative = float(found.relative[0])
    compared = 0
    for i in range(d, n):
        prefix = v[..., : i + 1, :]
        s = torch.linalg.svdvals(prefix.double())
        if clear_cut(s, relative):
            compared += 1
            row = by_svd(a[..., i : i + 1, : i + 1], prefix, relative)
            off = (found.pattern[..., i : i + 1, : i + 1] - row).abs().max()
            assert off <= SLACK[dtype] + blur(s, relative)
    assert compared


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["plain", "simplex", "causal"])
def test_independent_rows_keep_their_attention(dtype: torch.dtype, mode: EffectiveMode) -> None:
    g = torch.Generator().manual_seed(0)
    v = torch.randn(1, 3, 6, 8, generator=g, dtype=dtype)
    a = attention(torch.randn(1, 3, 6, 6, generator=g, dtype=dtype), causal=True)
    assert torch.equal(effective_layer(a, v, everywhere(v), mode).pattern, a)
    # and the first eight rows of twenty, in a causal model
    v = torch.randn(1, 3, 20, 8, generator=g, dtype=dtype)
    a = attention(torch.randn(1, 3, 20, 20, generator=g, dtype=dtype), causal=True)
    causal = effective_layer(a, v, everywhere(v), "causal").pattern
    assert torch.equal(causal[:, :, :8], a[:, :, :8])
    assert not torch.allclose(causal[:, :, 9:], a[:, :, 9:])


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(40))
@given(heads())
def test_simplex_rows_sum_to_one_and_know_no_value_bias(
    dtype: torch.dtype, drawn: tuple[Tensor, Tensor, torch.Generator]
) -> None:
    logits, v, g = drawn
    v = (v / v.abs().max().clamp_min(1e-300)).to(dtype)
    a = attention(logits).to(dtype)
    found = effective_layer(a, v, everywhere(v), "simplex")
    assert (found.pattern.sum(-1) - 1).abs().max() <= SLACK[dtype]
    bias = torch.randn(v.shape[-1], generator=g, dtype=dtype)
    moved = effective_layer(a, v + bias, everywhere(v), "simplex")
    s = torch.linalg.svdvals((v - v.mean(-2, keepdim=True)).double())
    # the sum v + bias is rounded, which moves singular values by eps |v + bias|
    if s[..., -1].min() > 1e-2 and torch.equal(found.rank, moved.rank):
        assert (found.pattern - moved.pattern).abs().max() <= 1e4 * torch.finfo(dtype).eps


def well(v: Tensor) -> bool:
    """Whether the singular values that aren't rounding are within a factor of a hundred."""
    s = torch.linalg.svdvals(v.double())
    ratio = s / s[..., :1]
    return bool(((ratio > 1e-2) | (ratio < 1e-14)).all())


@pytest.mark.parametrize("mode", ["plain", "causal"])
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(30))
@given(heads())
def test_mixing_the_columns_of_v_changes_nothing(
    dtype: torch.dtype, mode: EffectiveMode, drawn: tuple[Tensor, Tensor, torch.Generator]
) -> None:
    logits, v, g = drawn
    a, v = attention(logits, causal=True).to(dtype), v.to(dtype)
    # orthogonal times a mild scaling: the rank decision stays the same
    d = v.shape[-1]
    mix = torch.linalg.qr(torch.randn(d, d, generator=g, dtype=dtype)).Q
    mix = mix * torch.linspace(1, 2, d, dtype=dtype)
    # rounding of the product moves the space as far as V's condition says
    if all(well(v[..., : i + 1, :]) for i in range(v.shape[-2])):
        first = effective_layer(a, v, everywhere(v), mode).pattern
        second = effective_layer(a, v @ mix, everywhere(v), mode).pattern
        assert (first - second).abs().max() <= 1e4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(30))
@given(heads())
def test_plain_follows_a_permutation_of_tokens(
    dtype: torch.dtype, drawn: tuple[Tensor, Tensor, torch.Generator]
) -> None:
    logits, v, g = drawn
    a, v = attention(logits).to(dtype), v.to(dtype)
    p = torch.randperm(v.shape[-2], generator=g)
    first = effective_layer(a, v, everywhere(v), "plain").pattern[..., p, :][..., p]
    moved = a[..., p, :][..., p]
    second = effective_layer(moved, v[..., p, :], everywhere(v), "plain").pattern
    s = torch.linalg.svdvals(v.double())
    relative = max(v.shape[-2:]) * torch.finfo(dtype).eps
    if clear_cut(s, relative):
        assert (first - second).abs().max() <= SLACK[dtype] + blur(s, relative)


@pytest.mark.parametrize("mode", ["plain", "simplex", "causal"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_padded_batches_give_what_single_sentences_give(
    mode: EffectiveMode, left: bool, dtype: torch.dtype
) -> None:
    g = torch.Generator().manual_seed(5)
    n, d = 20, 6
    v = torch.randn(3, 2, n, d, generator=g, dtype=dtype)
    mask = torch.arange(n) < torch.tensor([20, 13, 4])[:, None]
    mask = mask.flip(1) if left else mask
    logits = torch.randn(3, 2, n, n, generator=g, dtype=dtype)
    if mode == "causal":
        logits = logits.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    pairs = mask[:, None, :, None] & mask[:, None, None, :]
    a = torch.where(pairs, logits, -torch.inf).softmax(-1).nan_to_num(0.0)
    whole = effective_layer(a, v, mask, mode)
    for b in range(3):
        at = mask[b].nonzero().flatten()
        alone = effective_layer(
            a[b : b + 1, :, at][..., at], v[b : b + 1, :, at], torch.ones(1, len(at)).bool(), mode
        )
        assert torch.allclose(whole.pattern[b, :, at][..., at], alone.pattern[0], atol=SLACK[dtype])
        assert torch.equal(whole.rank[b], alone.rank[0])
        assert whole.relative[b] == alone.relative[0]
    assert not whole.pattern.masked_fill(pairs, 0.0).any()


def test_what_lacks_rank_is_not_left_to_the_cholesky_decomposition() -> None:
    # float32 values of rank 3 and 8 columns: V^T V has pivots of rounding errors
    g = torch.Generator().manual_seed(2)
    v = torch.randn(1, 4, 40, 3, generator=g) @ torch.randn(1, 4, 3, 8, generator=g)
    a = attention(torch.randn(1, 4, 40, 40, generator=g))
    found = effective_layer(a, v, everywhere(v), "plain")
    assert found.rank.tolist() == [[3] * 4]
    assert (found.pattern - by_svd(a, v, float(found.relative[0]))).abs().max() < 1e-6


def test_values_of_zero_leave_no_attention() -> None:
    v = torch.zeros(1, 1, 5, 2)
    found = effective_layer(attention(torch.zeros(1, 1, 5, 5)), v, everywhere(v), "plain")
    assert not found.pattern.any()
    assert found.rank.tolist() == [[0]]


def test_every_family_has_effective_attention(
    build: Callable[..., Any], family: str, sentences: dict[str, Tensor]
) -> None:
    captured = capture(build(family), sentences)
    effective = effective_attention(captured)
    assert effective.mode == ("causal" if captured.causal else "plain")
    for layer, found in zip(captured.layers, effective.layers, strict=True):
        assert torch.allclose(found.pattern @ layer.v, layer.z, atol=1e-6)
        share = effective_share(layer.pattern, found.pattern)
        lost = (layer.pattern - found.pattern).square().sum((-2, -1))
        whole = layer.pattern.square().sum((-2, -1))
        assert torch.allclose(share + lost / whole, torch.ones_like(share), atol=1e-6)
        # the sentence of one token has one row, which it keeps
        assert share[2].min() > 1 - 1e-6
        # nine tokens and four dimensions of values: something is lost
        assert share[0].max() < 0.999


def test_modes_that_don_t_fit_are_refused(
    build: Callable[..., Any], sentences: dict[str, Tensor]
) -> None:
    captured = capture(build("Bert"), sentences)
    with pytest.raises(InvalidArgumentError, match="Causal mode needs a causal model; Bert"):
        effective_attention(captured, "causal")
    with pytest.raises(InvalidArgumentError, match=r"`mode` must be one of .* got 'full'"):
        effective_attention(captured, "full")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**20),
    st.floats(0, 12),
    st.sampled_from([8, 12, 16, 24]),
    st.sampled_from(["constant", "growing", "one late row"]),
)
def test_causal_rows_after_small_ones_are_right(
    dtype: torch.dtype, seed: int, power: float, small: int, shape: str
) -> None:
    """d or more leading rows of V of 10^-power of the size of a later one (all in one block)."""
    g = torch.Generator().manual_seed(seed)
    n, d = 32, 8
    v = torch.randn(1, 2, n, d, generator=g, dtype=torch.float64)
    if shape == "growing":
        v = v * 10 ** torch.linspace(-power, 0, n, dtype=torch.float64)[:, None]
    else:
        v[:, :, :small] *= 10**-power
    if shape == "one late row":
        v[:, :, small + 1 :] *= 10**-power
    v = v.to(dtype)
    logits = 2 * torch.randn(1, 2, n, n, generator=g, dtype=torch.float64)
    a = attention(logits, causal=True).to(dtype)
    found = effective_layer(a, v, everywhere(v), "causal")
    assert_shortest(found, a, v)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**20),
    st.floats(0, 12),
    st.sampled_from(["window", "window and first tokens", "any"]),
    st.integers(1, 40),
)
def test_rows_that_see_tokens_of_their_own_are_the_shortest_on_these(
    dtype: torch.dtype, seed: int, power: float, kind: str, width: int
) -> None:
    g = torch.Generator().manual_seed(seed)
    n, d = 70, 6
    i = torch.arange(n)
    seen = (i[:, None] >= i) & (i[:, None] < i + width)
    if kind == "window and first tokens":
        seen |= (i < 3) & (i[:, None] >= i)
    elif kind == "any":
        seen = torch.rand(n, n, generator=g) < width / 40
        seen[i, i] = True
    v = torch.randn(1, 2, n, d, generator=g, dtype=torch.float64)
    # the second head has rows of very different sizes, one after another
    v[:, 1] *= 10 ** (-power * torch.rand(n, 1, generator=g, dtype=torch.float64))
    logits = 2 * torch.randn(1, 2, n, n, generator=g, dtype=torch.float64)
    a = attention(logits.masked_fill(~seen, -torch.inf)).to(dtype)
    v = v.to(dtype)
    found = effective_layer(a, v, everywhere(v), "causal", seen=seen[None])
    assert_shortest(found, a, v, seen)


def assert_shortest(
    found: EffectiveLayer, a: Tensor, v: Tensor, seen: Tensor | None = None
) -> None:
    """Each row is on its support, in the span of the values there, with its output, and no longer.

    The support is what a row has `seen`, by default itself and all earlier tokens.
    """
    x, a, v = found.pattern.double(), a.double(), v.double()
    relative, slack = float(found.relative[0]), SLACK[found.pattern.dtype]
    seen = torch.ones(x.shape[-2:]).tril().bool() if seen is None else seen
    assert not x.masked_fill(seen, 0.0).any()
    assert (x.norm(dim=-1) <= a.norm(dim=-1) * (1 + slack)).all()
    for i in range(v.shape[-2]):
        values, row = v[..., seen[i], :], x[..., i : i + 1, seen[i]]
        # directions under the threshold may be left out
        s = torch.linalg.svdvals(values)
        largest = s[..., :1, None]
        of_row = a[..., i : i + 1, seen[i]]
        off = ((row - of_row) @ values).norm(dim=-1, keepdim=True)
        allowed = (relative + slack) * largest * of_row.norm(dim=-1, keepdim=True)
        assert (off <= allowed).all()
        within = by_svd(row, values, 1e-16)
        assert (row - within).abs().max() <= slack + blur(s, relative)
        if clear_cut(s, relative):
            exact = by_svd(of_row, values, relative)
            assert (row - exact).abs().max() <= slack + blur(s, relative)


@pytest.mark.parametrize("mode", ["plain", "simplex", "causal"])
@pytest.mark.parametrize(
    ("dtype", "power"),
    [(torch.float32, p) for p in (-143, -126, -100, 90, 120)]
    + [(torch.float64, p) for p in (-1040, -1000, -600, 600, 1000)],
)
def test_values_of_any_size_have_the_same_effective_attention(
    dtype: torch.dtype, power: int, mode: EffectiveMode
) -> None:
    # few digits, so that denormal values are exact
    g = torch.Generator().manual_seed(0)
    v = torch.randint(-8, 9, (1, 2, 20, 6), generator=g).to(dtype)
    a = attention(torch.randn(1, 2, 20, 20, generator=g, dtype=dtype), causal=mode == "causal")
    # in two factors, each of which is a number of its type
    far = v * 2.0 ** (power // 2) * 2.0 ** (power - power // 2)
    expected = effective_layer(a, v, everywhere(v), mode)
    # outputs of denormal values have lost their digits
    for z in (None, a @ far):
        found = effective_layer(a, far, everywhere(v), mode, z=z)
        assert torch.equal(found.rank, expected.rank)
        assert torch.allclose(found.pattern, expected.pattern, atol=1e3 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("mode", ["plain", "simplex", "causal"])
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=examples(30))
@given(st.integers(0, 2**20), st.integers(-38, 38))
def test_dependent_columns_are_seen_at_any_scale(
    dtype: torch.dtype, mode: EffectiveMode, seed: int, power: int
) -> None:
    # V^T V is singular; what is left of its decomposition has an inverse that depends on the scale
    g = torch.Generator().manual_seed(seed)
    v = torch.randint(-8, 9, (1, 2, 20, 6), generator=g).to(dtype)
    v[..., -1] = v[..., 0]
    a = attention(torch.randn(1, 2, 20, 20, generator=g, dtype=dtype), causal=mode == "causal")
    expected = effective_layer(a, v, everywhere(v), mode)
    found = effective_layer(a, v * 2.0**power, everywhere(v), mode)
    assert torch.equal(found.rank, expected.rank)
    assert torch.allclose(found.pattern, expected.pattern, atol=1e3 * torch.finfo(dtype).eps)
