import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.identifiability.distinct_rows import unique_rows
from capacity.transformer.identifiability.nullity import value_ranks
from capacity.transformer.table import identifiability_table
from tests.tiers import examples

DTYPES = [torch.float32, torch.float64]
both = pytest.mark.parametrize("dtype", DTYPES)
seeds = st.integers(0, 10_000)
few = settings(deadline=None, max_examples=examples(25))


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """The same numbers in every dtype, but for rounding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def layer_of(v: Tensor, W_O: Tensor, d_head_qk: int, *, seed: int = 0) -> LayerActivations:
    batch, heads, n, _ = v.shape
    q = normal(batch, heads, n, d_head_qk, seed=seed, dtype=v.dtype)
    k = normal(batch, heads, n, d_head_qk, seed=seed + 1, dtype=v.dtype)
    pattern = torch.softmax(q @ k.mT, dim=-1)
    return LayerActivations(pattern, q, k, v, pattern @ v, W_O, None, None, 1.0)


def captured_of(*layers: LayerActivations, mask: Tensor | None = None, causal: bool = False):
    batch, _, n, _ = layers[0].v.shape
    mask = torch.ones(batch, n, dtype=torch.bool) if mask is None else mask
    return ActivationCache(layers, mask, causal, torch.zeros(batch, n, 1), (), "by hand")


def by_hand(v: Tensor, W_O: Tensor) -> tuple[int, int]:
    """rank(T) and rank[T, 1] of one head by plain SVDs, columns of one size."""
    T = v.double() @ W_O.double()
    share = max(T.shape) * torch.finfo(v.dtype).eps
    with_ones = torch.cat([T / torch.linalg.matrix_norm(T, 2), torch.ones(len(T), 1).double()], 1)
    ranks = [torch.linalg.matrix_rank(x, rtol=share) for x in (T, with_ones)]
    return int(ranks[0]), int(ranks[1])


@both
@given(n=st.integers(1, 12), d_head_vo=st.integers(1, 6), seed=seeds)
@few
def test_random_heads_have_the_ranks_of_equations_6_and_7(
    dtype: torch.dtype, n: int, d_head_vo: int, seed: int
) -> None:
    v = normal(1, 2, n, d_head_vo, seed=seed, dtype=dtype)
    W_O = normal(2, d_head_vo, 16, seed=seed + 1, dtype=dtype)
    table = identifiability_table(captured_of(layer_of(v, W_O, d_head_qk=3)))
    # (6): rank(T) = min(d_s, d_v); the paper's footnote 7: 1 adds a dimension to generic T
    assert (table.rank_values == min(n, d_head_vo)).all()
    assert (table.nullity == max(n - d_head_vo, 0)).all()
    assert (table.nullity_simplex == max(n - d_head_vo - 1, 0)).all()
    assert (table.identifiable_rows == (n if n <= d_head_vo + 1 else 0)).all()
    assert (table.threshold == max(n, 16) * torch.finfo(dtype).eps).all()


@both
@given(
    n=st.integers(2, 10), d_head_vo=st.integers(2, 5), rank=st.integers(1, 5),
    repeated=st.booleans(), seed=seeds,
)  # fmt: skip
@few
def test_the_fast_route_is_a_plain_svd_of_T(
    dtype: torch.dtype, n: int, d_head_vo: int, rank: int, repeated: bool, seed: int
) -> None:
    v = normal(1, 3, n, d_head_vo, seed=seed, dtype=dtype)
    if repeated:  # equal tokens
        v[:, :, 1] = v[:, :, 0]
    # W_O of any rank up to d_head_vo
    W_O = normal(3, d_head_vo, rank, seed=seed + 1) @ normal(3, rank, 8, seed=seed + 2)
    W_O = W_O.to(dtype)
    ranks = value_ranks(v, W_O)
    pairs = list(zip(ranks.values[0].tolist(), ranks.simplex[0].tolist(), strict=True))
    assert pairs == [by_hand(v[0, h], W_O[h]) for h in range(3)]


@both
def test_an_output_matrix_without_full_rank_costs_identifiability(dtype: torch.dtype) -> None:
    W_O = normal(1, 4, 8, seed=0, dtype=dtype)
    W_O[0, 3] = W_O[0, 2]
    ranks = value_ranks(normal(1, 1, 9, 4, seed=1, dtype=dtype), W_O)
    # two of the four rows of W_O are equal: 3 directions are left
    assert (ranks.values.item(), ranks.simplex.item()) == (3, 4)


@both
def test_values_that_are_the_same_for_all_tokens_identify_nothing(dtype: torch.dtype) -> None:
    # T = 1 t^T: rank 1, and 1 is in its column space
    v = normal(1, 1, 1, 4, seed=0, dtype=dtype).expand(1, 1, 6, 4)
    ranks = value_ranks(v, normal(1, 4, 8, seed=1, dtype=dtype))
    assert (ranks.values.item(), ranks.simplex.item()) == (1, 1)
    assert value_ranks(torch.zeros(1, 1, 6, 4), torch.ones(1, 4, 8)).simplex.item() == 1


@both
@given(size=st.sampled_from([1e-6, 1e-3, 1e3, 1e6]), n=st.integers(2, 9), seed=seeds)
@few
def test_ranks_do_not_depend_on_the_size_of_values(
    dtype: torch.dtype, size: float, n: int, seed: int
) -> None:
    v = normal(1, 2, n, 3, seed=seed, dtype=dtype)
    W_O = normal(2, 3, 6, seed=seed + 1, dtype=dtype)
    one, other = value_ranks(v, W_O), value_ranks(size * v, W_O)
    for name in ("values", "simplex", "joint"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert torch.equal(unique_rows(v, W_O), unique_rows(size * v, W_O))


@pytest.mark.parametrize("n_tokens", [7, 11, 12, 13, 30])
@pytest.mark.parametrize("repeated", [False, True])
def test_joint_ranks_by_the_gram_matrix_of_weights_are_those_of_a_plain_svd(
    n_tokens: int, repeated: bool
) -> None:
    v, W_O = normal(2, 3, n_tokens, 12, seed=0), normal(3, 12, 36, seed=1)
    if repeated:
        # two tokens are equal, one head writes nothing, and rows of another head repeat
        v[:, :, 1], v[:, 0], W_O[2, :6] = v[:, :, 0], 0.0, W_O[2, 6:]
    v, W_O = v.float(), W_O.float()
    T = v.double() @ W_O.double()
    least = 36 * torch.finfo(torch.float32).eps * torch.linalg.matrix_norm(T, 2).amax(1)
    centred = (T - T.mean(-2, keepdim=True)).flatten(1, 2)
    expected = (torch.linalg.svdvals(centred) > least[:, None]).sum(-1) + 3
    assert torch.equal(value_ranks(v, W_O).joint, expected)


def test_weights_that_were_written_over_are_seen() -> None:
    v, W_O = normal(1, 2, 9, 4, seed=0).float(), normal(2, 4, 8, seed=1).float()
    # all 8 dimensions, and the sums of 2 heads
    assert value_ranks(v, W_O).joint.tolist() == [10]
    # through .data, which counts as no write
    W_O.data[1] = W_O[0]
    assert value_ranks(v, W_O).joint.tolist() == [6]


@both
def test_a_layer_that_writes_nothing_has_the_constraints_on_sums_alone(dtype: torch.dtype) -> None:
    for n_heads, n in ((1, 4), (3, 2), (2, 9)):
        ranks = value_ranks(
            torch.zeros(1, n_heads, n, 4).to(dtype), torch.ones(n_heads, 4, 8).to(dtype)
        )
        assert ranks.values.tolist() == [[0] * n_heads]
        assert ranks.joint.tolist() == [n_heads]


@pytest.mark.slow
@both
@pytest.mark.parametrize("causal", [False, True])
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3), seed=seeds)
@few
def test_padding_on_either_side_counts_for_nothing_and_a_batch_is_its_sentences(
    dtype: torch.dtype, causal: bool, lengths: list[int], seed: int
) -> None:
    n, batch = max(lengths) + 2, len(lengths)
    v = normal(batch, 2, n, 3, seed=seed, dtype=dtype)
    W_O = normal(2, 3, 6, seed=seed + 1, dtype=dtype)
    mask = torch.zeros(batch, n, dtype=torch.bool)
    for i, length in enumerate(lengths):
        mask[i, 1 : 1 + length] = True
    v = v.masked_fill(~mask[:, None, :, None], torch.nan)
    layers = [layer_of(v, W_O, 2), layer_of(-v.flip(1), W_O, 2)]
    whole = identifiability_table(captured_of(*layers, mask=mask, causal=causal))
    singles = [
        identifiability_table(
            captured_of(
                *(layer_of(u[i : i + 1, :, 1 : 1 + length], W_O, 2) for u in (v, -v.flip(1))),
                causal=causal,
            )
        ).assign(sentence=i)
        for i, length in enumerate(lengths)
    ]
    pd.testing.assert_frame_equal(whole, pd.concat(singles, ignore_index=True))


@both
@pytest.mark.parametrize(
    ("n_heads", "d_head_vo", "d_model"),
    # Con: heads share d_model; Add: each has all of it
    [(2, 3, 6), (4, 2, 8), (2, 6, 6), (3, 8, 8)],
)
@given(n=st.integers(1, 14), seed=seeds)
@few
def test_joint_nullity_is_generic_for_con_and_for_add(
    dtype: torch.dtype, n_heads: int, d_head_vo: int, d_model: int, n: int, seed: int
) -> None:
    v = normal(1, n_heads, n, d_head_vo, seed=seed, dtype=dtype)
    W_O = normal(n_heads, d_head_vo, d_model, seed=seed + 1, dtype=dtype)
    table = identifiability_table(captured_of(layer_of(v, W_O, d_head_qk=2)))
    # d_model equations for the sum, one for each head's row sum, n unknowns a head
    assert (table.joint_nullity == max(0, n * n_heads - d_model - n_heads)).all()
    if d_head_vo * n_heads == d_model and n > d_head_vo:
        # Con: the outputs of heads are independent, so that nullities add up
        assert table.joint_nullity[0] == table.nullity_simplex.sum()


@both
def test_adding_heads_identifies_each_alone_but_not_all_together(dtype: torch.dtype) -> None:
    n, d = 8, 8
    v, W_O = normal(1, 3, n, d, seed=0, dtype=dtype), normal(3, d, d, seed=1, dtype=dtype)
    table = identifiability_table(captured_of(layer_of(v, W_O, d_head_qk=2)))
    assert (table.nullity_simplex == 0).all()
    # 3 * 8 - 8 - 3
    assert (table.joint_nullity == 13).all()


@both
def test_joint_nullity_counts_heads_that_write_the_same(dtype: torch.dtype) -> None:
    v, W_O = normal(1, 1, 4, 3, seed=0, dtype=dtype), normal(1, 3, 12, seed=1, dtype=dtype)
    # two equal heads, d_model large: a^1 T + a^2 T = 0 for all a^2 = -a^1 with sum 0, and no other
    # since rank[T, 1] = 4 = n
    twice = value_ranks(v.repeat(1, 2, 1, 1), W_O.repeat(2, 1, 1))
    assert 2 * 4 - twice.joint.item() == 3


@both
@given(n=st.integers(1, 10), repeat=st.integers(1, 9), seed=seeds)
@few
def test_causal_rows_are_unique_up_to_the_first_that_depends_on_earlier_ones(
    dtype: torch.dtype, n: int, repeat: int, seed: int
) -> None:
    d_head_vo = 4
    v = normal(1, 2, n, d_head_vo, seed=seed, dtype=dtype)
    W_O = normal(2, d_head_vo, 8, seed=seed + 1, dtype=dtype)
    if repeat < n:  # in head 0 a token says again what the first one said
        v[0, 0, repeat] = v[0, 0, 0]
    table = identifiability_table(captured_of(layer_of(v, W_O, d_head_qk=2), causal=True))
    free = min(n, d_head_vo + 1)
    assert table.identifiable_rows.tolist() == [min(free, repeat), free]
    assert table.p4_excess.isna().all()
    prefixes = [by_hand(v[0, 0, :i], W_O[0])[1] == i for i in range(1, n + 1)]
    assert table.identifiable_rows[0] == sum(prefixes)


def test_the_table_has_a_row_for_each_sentence_layer_and_head() -> None:
    v, W_O = normal(2, 3, 5, 2, seed=0), normal(3, 2, 6, seed=1)
    table = identifiability_table(captured_of(layer_of(v, W_O, 4), layer_of(v, W_O, 4)))
    keys = [(s, layer, h) for s in (0, 1) for layer in (0, 1) for h in (0, 1, 2)]
    assert list(table[["sentence", "layer", "head"]].itertuples(index=False, name=None)) == keys
    sizes = table[["n_tokens", "d_head_qk", "d_head_vo"]].drop_duplicates()
    assert sizes.to_numpy().tolist() == [[5, 4, 2]]
    # r = min(4, 5 - 1) = 4: 4 (10 - 1 - 4) - 5 * (3 - 1)
    assert table.p4_excess.tolist() == [10] * 12


def test_bad_input_is_refused_in_words() -> None:
    v, W_O = torch.ones(1, 1, 4, 2), torch.ones(1, 2, 300)
    with pytest.raises(InvalidArgumentError, match=r"300.*float32|bfloat16 it is 2\.34"):
        value_ranks(v.bfloat16(), W_O.bfloat16())
    with pytest.raises(InvalidArgumentError, match=r"got \(1, 1, 4, 2\) and \(2, 2, 300\)"):
        value_ranks(v, W_O.repeat(2, 1, 1))
    with pytest.raises(InvalidArgumentError, match=r"from 1 to 4 .* got \[5\]"):
        value_ranks(v, W_O, [5])


@pytest.mark.parametrize(
    ("dtype", "power"), [(torch.float32, -140), (torch.float32, 120), (torch.float64, -1040),
                         (torch.float64, 1000)],
)  # fmt: skip
def test_ranks_don_t_depend_on_the_size_of_values_or_weights(
    dtype: torch.dtype, power: int
) -> None:
    # few digits, so that denormal numbers are exact
    g = torch.Generator().manual_seed(0)
    v = torch.randint(-8, 9, (2, 3, 9, 4), generator=g).to(dtype)
    v[:, 1, :, 2] = v[:, 1, :, 0]
    W_O = torch.randint(-8, 9, (3, 4, 7), generator=g).to(dtype)
    far = lambda x: x * 2.0 ** (power // 2) * 2.0 ** (power - power // 2)  # noqa: E731
    expected = value_ranks(v, W_O)
    assert expected.values.tolist() == [[4, 3, 4]] * 2
    for scaled in (
        value_ranks(far(v), W_O),
        value_ranks(v, far(W_O)),
        value_ranks(far(v), far(W_O)),
    ):
        for name in ("values", "simplex", "joint"):
            assert torch.equal(getattr(scaled, name), getattr(expected, name))
    assert torch.equal(unique_rows(far(v), far(W_O)), unique_rows(v, W_O))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dependent", [None, 3, 16, 24, 32])
def test_unique_rows_are_those_of_every_prefix(dtype: torch.dtype, dependent: int | None) -> None:
    """Against the ranks of each prefix; from the `dependent`-th row on, rows of one head repeat."""
    g = torch.Generator().manual_seed(0)
    v = torch.randn(2, 3, 40, 32, generator=g, dtype=torch.float64)
    if dependent is not None:
        v[0, 1, dependent] = v[0, 1, :dependent].mean(0)
    W_O = torch.randn(3, 32, 96, generator=g, dtype=torch.float64)
    n_tokens, v, W_O = [40, 20], v.to(dtype), W_O.to(dtype)
    expected = torch.ones(2, 3, dtype=torch.int64)
    for n in range(2, 41):
        T = v[:, :, :n].double() @ W_O.double()
        s = torch.linalg.svdvals(T)
        centred = torch.linalg.svdvals(T - T.mean(-2, keepdim=True))
        least = max(n, 96) * torch.finfo(dtype).eps * s[..., :1]
        independent = 1 + (centred > least).sum(-1) == n
        for sentence, most in enumerate(n_tokens):
            if n <= most:
                expected[sentence] += independent[sentence] & (expected[sentence] == n - 1)
    assert unique_rows(v, W_O, n_tokens).tolist() == expected.tolist()
