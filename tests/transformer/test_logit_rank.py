import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.identifiability.logit_rank import minimum_logit_rank, p4_defect, p4_excess
from tests.tiers import examples

both = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
seeds = st.integers(0, 10_000)
few = settings(deadline=None, max_examples=examples(25))


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@given(n=st.integers(2, 12), d_head_qk=st.integers(2, 6), d=st.integers(1, 6), seed=seeds)
@few
def test_the_defect_of_p4_is_its_excess(n: int, d_head_qk: int, d: int, seed: int) -> None:
    q, k = normal(n, d_head_qk, seed=seed), normal(n, d_head_qk, seed=seed + 1)
    excess = p4_excess(n, d_head_qk, min(n, d + 1))
    defect = p4_defect(q, k, normal(n, d, seed=seed + 2), scale=d_head_qk**-0.5)
    assert defect == max(0, excess)


def test_queries_and_keys_larger_than_the_sentence_reach_all_attention() -> None:
    # r = n - 1 = 3: all n (n - 1) = 12 directions of rows that sum to 0, less 4 * (2 - 1)
    q, k, T = normal(4, 9, seed=0), normal(4, 9, seed=1), normal(4, 1, seed=2)
    assert p4_excess(4, 9, 2) == p4_defect(q, k, T, scale=1.0) == 8
    # one token has one attention
    assert p4_excess(1, 9, 1) == p4_defect(q[:1], k[:1], T[:1], scale=1.0) == 0


@pytest.mark.parametrize(
    ("n", "d_head_qk", "d", "dependent"),
    [(6, 2, 3, "none"), (7, 1, 3, "none"), (8, 3, 3, "none"), (5, 6, 2, "none"),
     (8, 3, 3, "values"), (8, 3, 3, "queries"), (8, 3, 3, "keys")],
)  # fmt: skip
def test_the_defect_is_what_automatic_differentiation_says(
    n: int, d_head_qk: int, d: int, dependent: str
) -> None:
    q, k, T = normal(n, d_head_qk, seed=0), normal(n, d_head_qk, seed=1), normal(n, d, seed=2)
    for name, matrix in (("queries", q), ("keys", k), ("values", T)):
        if name == dependent:
            matrix[:, 0] = matrix[:, 1]

    def rank_of_derivative(value: Tensor) -> int:
        def output(q: Tensor, k: Tensor) -> Tensor:
            return torch.softmax(q @ k.T, dim=-1) @ value

        parts = torch.autograd.functional.jacobian(output, (q, k), vectorize=True)
        J = torch.cat([part.reshape(-1, q.numel()) for part in parts], dim=1)
        return int(torch.linalg.matrix_rank(J, rtol=1e-10))

    eye = torch.eye(n, dtype=torch.float64)
    by_autograd = rank_of_derivative(eye) - rank_of_derivative(T)
    assert p4_defect(q, k, T, scale=1.0) == by_autograd


def test_small_queries_and_keys_make_attention_identifiable_and_those_of_the_values_size_do_not():
    n, d = 16, 6
    T = normal(n, d, seed=0)
    # LN([T, 1]) has dimension 16 - 7 > 0: P1-P3 leave A free whatever d_head_qk is
    defects = {}
    for d_head_qk in (2, 3, 4, 5, 6):
        q, k = normal(n, d_head_qk, seed=1), normal(n, d_head_qk, seed=2)
        defects[d_head_qk] = p4_defect(q, k, T, scale=1.0)
    # r (31 - r) - 96: the postulate holds, up to d_head_qk = 3, about half of d
    assert defects == {2: 0, 3: 0, 4: 12, 5: 34, 6: 54}


@given(d=st.integers(1, 64), n=st.integers(2, 200))
@few
def test_at_equal_sizes_p4_saves_no_attention_that_p1_to_p3_leave_free(d: int, n: int) -> None:
    rank = min(n, d + 1)
    assert (p4_excess(n, d, rank) > 0) == (n > rank)


def test_the_defect_stands_sharp_attention_unequal_scales_and_constant_values() -> None:
    q, k, T = normal(8, 3, seed=0), normal(8, 3, seed=1), normal(8, 3, seed=2)
    # p4_excess(8, 3, 4) = 3 (15 - 3) - 8 * 3
    assert p4_defect(1e6 * q, 1e-6 * k, T + 100, scale=1.0) == 12
    assert p4_defect(q, k, T, scale=8.0) == 12
    # nothing is asked of A but that rows sum to 1: all 3 (15 - 3) directions are free
    assert p4_defect(q, k, torch.ones(8, 3), scale=1.0) == 36


@both
@given(n=st.integers(2, 10), d_head_qk=st.integers(1, 5), seed=seeds)
@few
def test_logits_of_softmax_need_no_more_than_the_size_of_queries_and_keys(
    dtype: torch.dtype, n: int, d_head_qk: int, seed: int
) -> None:
    q = normal(n, d_head_qk, seed=seed, dtype=dtype)
    k = normal(n, d_head_qk, seed=seed + 1, dtype=dtype)
    rank = minimum_logit_rank(torch.softmax(q @ k.T, dim=-1))
    # in float32 the smallest singular value of a random matrix may be lost
    if dtype == torch.float64:
        assert rank == min(d_head_qk, n - 1)
    assert rank <= min(d_head_qk, n - 1)


def test_minimum_logit_rank_of_many_patterns_and_with_a_threshold() -> None:
    q, k = normal(2, 5, 2, seed=0), normal(2, 5, 2, seed=1)
    patterns = torch.softmax(q @ k.mT, dim=-1)
    ranks = minimum_logit_rank(patterns)
    assert isinstance(ranks, Tensor)
    assert ranks.tolist() == [2, 2]
    # nothing is larger than the largest singular value
    assert minimum_logit_rank(patterns[0], threshold=1.0) == 0
    assert minimum_logit_rank(torch.full((4, 4), 0.25)) == 0


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(InvalidArgumentError, match="got 3, 1 and 4"):
        p4_excess(3, 1, 4)
    with pytest.raises(InvalidArgumentError, match=r"got \(4, 2\), \(4, 3\) and \(4, 1\)"):
        p4_defect(torch.ones(4, 2), torch.ones(4, 3), torch.ones(4, 1), scale=1.0)
    with pytest.raises(InvalidArgumentError, match="finite logits never yields 0"):
        minimum_logit_rank(torch.eye(2))
    with pytest.raises(InvalidArgumentError, match="never yields nan"):
        minimum_logit_rank(torch.full((2, 2), math.nan))
