import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.identifiability.logit_rank import minimum_logit_rank, p4_excess
from capacity.transformer.identifiability.witness import find_witness, query_key_weights
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
