"""Alternative weights and attention with the same output, and witnesses of them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.identifiability.logit_rank import minimum_logit_rank, p4_excess
from capacity.transformer.identifiability.witness import (
    alternative_attention,
    alternative_keys,
    find_witness,
    query_key_weights,
)
from tests.tiers import examples


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def head(n: int, d_head_qk: int, d: int, *, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    return (
        normal(n, d_head_qk, seed=seed),
        normal(n, d_head_qk, seed=seed + 1),
        normal(n, d, seed=seed + 2),
    )


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.1, 0.5, 1.0]))
@settings(deadline=None, max_examples=examples(10))
def test_p4_does_not_save_attention_that_a_witness_replaces(seed: int, scale: float) -> None:
    q, k, T = head(16, 4, 4, seed=seed)
    pattern = torch.softmax(scale * q @ k.T, dim=-1)
    found = find_witness(q, k, T, scale=scale, seed=seed)
    assert torch.allclose(found.pattern, torch.softmax(scale * found.q @ found.k.T, dim=-1))
    difference = (found.pattern - pattern) @ T
    assert difference.abs().max() < 1e-10
    assert found.residual < 1e-10
    assert found.relative_change == pytest.approx(
        float((found.pattern - pattern).norm() / pattern.norm())
    )
    assert found.relative_change > 0.1
    # queries and keys of the same size, so that logits keep their rank
    assert found.q.shape == found.k.shape == (16, 4)
    assert minimum_logit_rank(found.pattern, threshold=1e-11) <= 4


def test_more_steps_lead_further_and_a_seed_gives_one_witness() -> None:
    q, k, T = head(16, 4, 4, seed=3)
    near, far = (find_witness(q, k, T, scale=0.5, steps=steps) for steps in (1, 12))
    assert far.relative_change > 3 * near.relative_change
    assert torch.equal(near.q, find_witness(q, k, T, scale=0.5, steps=1).q)
    assert not torch.allclose(near.q, find_witness(q, k, T, scale=0.5, steps=1, seed=1).q)


def test_a_small_step_goes_where_attention_changes_most() -> None:
    q, k, T = head(8, 3, 3, seed=0)

    def derivative(value: Tensor) -> Tensor:
        def output(q: Tensor, k: Tensor) -> Tensor:
            return torch.softmax(2 * q @ k.T, dim=-1) @ value

        parts = torch.autograd.functional.jacobian(output, (q, k))
        return torch.cat([part.reshape(-1, q.numel()) for part in parts], dim=1)

    _, s, Vh = torch.linalg.svd(derivative(T))
    kernel = Vh[int((s > 1e-10 * s[0]).sum()) :].T
    most = torch.linalg.matrix_norm(derivative(torch.eye(8).double()) @ kernel, 2)
    found = find_witness(q, k, T, scale=2.0, steps=1, step=1e-4)
    moved = torch.stack([found.q - q, found.k - k]).norm()
    change = found.relative_change * torch.softmax(2 * q @ k.T, dim=-1).norm()
    assert 0.9 * most < change / moved < 1.001 * most


def test_values_and_T_have_the_same_witness() -> None:
    # W_O of full row rank: LN(V) = LN(V W_O)
    q, k, v = head(10, 3, 3, seed=0)
    T = v @ normal(3, 8, seed=9)
    found = find_witness(q, k, T, scale=1.0)
    assert ((found.pattern - torch.softmax(q @ k.T, dim=-1)) @ v).abs().max() < 1e-10


def test_values_in_float32_are_known_to_their_own_precision() -> None:
    q, k, v = head(10, 3, 3, seed=0)
    T = v.float() @ normal(3, 8, seed=9).float()
    # in float64 the rounding of T has full rank, and nothing would be left free
    with pytest.raises(InvalidArgumentError, match="excess"):
        find_witness(q, k, T.double(), scale=1.0)
    found = find_witness(q.float(), k.float(), T, scale=1.0)
    assert found.relative_change > 0.1
    assert found.residual < 1e-5


def test_a_witness_is_realised_by_weights_of_the_same_shape() -> None:
    q, k, T = head(12, 4, 4, seed=1)
    x = normal(12, 20, seed=7)
    found = find_witness(q, k, T, scale=0.5)
    W_Q, W_K = query_key_weights(x, found.q, found.k)
    assert W_Q.shape == W_K.shape == (20, 4)
    realised = torch.softmax(0.5 * (x @ W_Q) @ (x @ W_K).T, dim=-1)
    assert torch.allclose(realised, found.pattern, atol=1e-12)


def test_bad_input_is_refused_in_words() -> None:
    q, k, T = head(12, 2, 6, seed=0)
    # r (2n - 1 - r) - n d = 2 * 21 - 72
    assert p4_excess(12, 2, 7) == -30
    with pytest.raises(InvalidArgumentError, match="-30 for 12 tokens"):
        find_witness(q, k, T, scale=1.0)
    with pytest.raises(InvalidArgumentError, match=r"got 0 and 0\.1"):
        find_witness(q, k, T, scale=1.0, steps=0)
    with pytest.raises(InvalidArgumentError, match=r"got \(12, 2\), \(11, 2\)"):
        find_witness(q, k[:11], T, scale=1.0)
    x = normal(12, 20, seed=1)
    x[3] = x[4]
    with pytest.raises(InvalidArgumentError, match="rank is 11"):
        query_key_weights(x, q, k)
    with pytest.raises(InvalidArgumentError, match=r"got \(12, 20\), \(12, 2\) and \(11, 2\)"):
        query_key_weights(x, q, k[:11])


def test_attention_that_no_logit_moves_is_said_to_stall() -> None:
    q, k, T = head(8, 3, 3, seed=0)
    # float64 holds softmax of gaps of about 1e4 as one-hot rows, whose derivative is 0
    with pytest.raises(InvalidArgumentError, match="so sharp"):
        find_witness(1e4 * q, k, T, scale=1.0)


both = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
seeds = st.integers(0, 10_000)
few = settings(deadline=None, max_examples=examples(25))


def normal_activations(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@both
@given(n=st.integers(4, 12), d=st.integers(1, 4), seed=seeds)
@few
def test_constructed_attention_is_attention_with_the_same_output(
    dtype: torch.dtype, n: int, d: int, seed: int
) -> None:
    T = normal_activations(n, d, seed=seed, dtype=dtype)
    pattern = torch.softmax(normal_activations(n, n, seed=seed + 1, dtype=dtype), dim=-1)
    if n <= d + 1:
        with pytest.raises(InvalidArgumentError, match=f"{n} - {n} = 0"):
            alternative_attention(pattern, T)
        return
    change = alternative_attention(pattern, T, seed=seed)
    assert change.dtype == dtype
    size = 1 + T.abs().max()
    tolerance = 100 * n * torch.finfo(dtype).eps
    assert (change @ T).abs().max() <= tolerance * size
    assert change.sum(dim=1).abs().max() <= tolerance
    assert (pattern + change).min() > 0
    # as far as positivity allows: a hundredth of some entry is left in each row
    assert torch.allclose(((pattern + change) / pattern).amin(dim=1), torch.tensor(0.01).to(change))
    # rows lie in LN([T, 1]), and fill it
    assert torch.linalg.matrix_rank(change.double(), rtol=1e-5) == n - d - 1


@both
def test_the_whole_reach_leaves_zeros_and_nothing_negative(dtype: torch.dtype) -> None:
    T = normal_activations(9, 3, seed=0, dtype=dtype)
    pattern = torch.softmax(normal_activations(9, 9, seed=1, dtype=dtype), dim=-1)
    for seed in range(20):
        total = pattern + alternative_attention(pattern, T, seed=seed, reach=1.0)
        assert total.min() >= 0
        assert (total.amin(dim=1) < 1e-6).all()


def test_the_same_seed_gives_one_alternative_and_another_seed_another() -> None:
    T, pattern = (
        normal_activations(6, 2, seed=0),
        torch.softmax(normal_activations(6, 6, seed=1), dim=-1),
    )
    one = alternative_attention(pattern, T, seed=5)
    assert torch.equal(one, alternative_attention(pattern, T, seed=5))
    assert not torch.allclose(one, alternative_attention(pattern, T, seed=6))


def test_one_hot_rows_have_no_alternative_and_a_causal_row_is_taken_with_what_it_sees() -> None:
    T = normal_activations(6, 2, seed=0)
    assert not alternative_attention(torch.eye(6).double(), T).any()
    later = ~torch.ones(6, 6).tril().bool()
    scores = normal_activations(6, 6, seed=1).masked_fill(later, -torch.inf)
    causal = torch.softmax(scores, dim=-1)
    fifth = alternative_attention(causal[4:5, :5], T[:5])
    assert fifth.shape == (1, 5)
    assert fifth.abs().max() > 1e-3
    assert (fifth @ T[:5]).abs().max() < 1e-14


def test_constructed_attention_needs_logits_of_full_rank() -> None:
    # the paper's Figure 5: true attention has logits of rank d_k, constructed ones of rank n - 1
    q, k, T = (
        normal_activations(12, 3, seed=0),
        normal_activations(12, 3, seed=1),
        normal_activations(12, 4, seed=2),
    )
    pattern = torch.softmax(q @ k.T, dim=-1)
    assert minimum_logit_rank(pattern) == 3
    ranks = [
        minimum_logit_rank(pattern + alternative_attention(pattern, T, seed=seed))
        for seed in range(10)
    ]
    assert ranks == [11] * 10


def test_bad_alternatives_are_refused_in_words() -> None:
    T = normal_activations(12, 6, seed=0)
    pattern = torch.full((12, 12), 1 / 12).double()
    with pytest.raises(InvalidArgumentError, match=r"\(0, 1\]; got 1\.5"):
        alternative_attention(pattern, T, reach=1.5)
    with pytest.raises(InvalidArgumentError, match=r"got \(12, 12\) and \(11, 6\)"):
        alternative_attention(pattern, T[:11])


@given(n=st.integers(2, 10), d=st.integers(1, 4), d_head_qk=st.integers(1, 5), seed=seeds)
@few
def test_other_keys_have_other_logits_of_the_same_rank_and_the_same_product(
    n: int, d: int, d_head_qk: int, seed: int
) -> None:
    q, k = normal(2, n, d_head_qk, seed=seed)
    T = normal(n, d, seed=seed + 1)
    if n <= d:
        # T has n independent rows
        with pytest.raises(InvalidArgumentError, match=r"LN\(T\) must have other elements"):
            alternative_keys(k, T, seed=seed)
        return
    other = alternative_keys(k, T, seed=seed, size=0.5)
    assert (other - k).norm() == pytest.approx(0.5 * k.norm().item())
    A, changed = q @ k.T, q @ other.T
    torch.testing.assert_close(changed @ T, A @ T, rtol=0, atol=1e-10 * (1 + float(A.norm())))
    assert (changed - A).norm() > 1e-3 * A.norm()
    assert torch.linalg.matrix_rank(changed, atol=1e-9) <= d_head_qk


def test_rows_are_the_combinations_that_the_proof_of_proposition_3_3_takes() -> None:
    # the first two rows of A are a basis of its rows; all others are combinations of them
    q, k, T = normal(7, 2, seed=0), normal(7, 2, seed=1), normal(7, 3, seed=2)
    A = q @ k.T
    coefficients = A @ torch.linalg.pinv(A[:2])
    change = q @ (alternative_keys(k, T, seed=3) - k).T
    torch.testing.assert_close(change, coefficients @ change[:2])
    # and these two are in LN(T)
    assert (change[:2] @ T).abs().max() < 1e-12


def test_values_of_lower_rank_leave_more_room() -> None:
    # four tokens, and values of four dimensions but of rank one
    T = normal(4, 1, seed=0) @ normal(1, 4, seed=1)
    k = normal(4, 2, seed=2)
    assert ((alternative_keys(k, T) - k).T @ T).abs().max() < 1e-12


def test_wrong_keys_are_refused() -> None:
    k = normal(4, 2, seed=0)
    with pytest.raises(InvalidArgumentError, match="of one head and sentence"):
        alternative_keys(k, normal(3, 2, seed=1))
    with pytest.raises(InvalidArgumentError, match="positive and finite"):
        alternative_keys(k, normal(4, 2, seed=1), size=0)
