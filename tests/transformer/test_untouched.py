"""The model that is recorded is the model that runs: what its attention's name changes is found."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaAttention

from capacity.errors import InvalidArgumentError
from capacity.transformer import Check, ablated, capture, capture_layers, decompose
from tests.transformer.tiny_models import build, inputs_of

F32 = torch.float32
TOKENS = inputs_of("Llama", F32)["input_ids"]
CHECKS: list[Check] = ["random", "full"]


class Fickle(LlamaAttention):
    """Attention to the last two tokens alone under one name, and to all under any other one."""

    sparse_under = "eager"

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        position_embeddings: Any,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        if self.config._attn_implementation == self.sparse_under:
            n = hidden_states.shape[1]
            near = torch.ones(n, n, dtype=torch.bool).tril().triu(-1)
            attention_mask = torch.where(near, 0.0, torch.finfo(hidden_states.dtype).min)
            attention_mask = attention_mask.expand(len(hidden_states), 1, n, n)
        return super().forward(hidden_states, position_embeddings, attention_mask, **kwargs)


class FickleUnderSdpa(Fickle):
    sparse_under = "sdpa"


class Selecting(LlamaAttention):
    """Attention that hands a keyword on, which the eager code swallows."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return super().forward(*args, **kwargs, **{"indices": torch.zeros(1)})


def fickle(kind: type[LlamaAttention], implementation: str) -> Any:
    model = build("Llama", F32)
    model.layers[1].self_attn.__class__ = kind
    model.set_attn_implementation(implementation)
    return model


def own_last(model: Any, tokens: Tensor = TOKENS) -> Tensor:
    with torch.no_grad():
        return model(tokens).last_hidden_state


@pytest.mark.parametrize("check", CHECKS)
def test_attention_that_goes_by_its_name_is_recorded_under_that_name(check: Check) -> None:
    model = fickle(Fickle, "eager")
    captured = capture(model, TOKENS, check=check)
    # two weights in a row, as the model has them; its name isn't changed to anything else
    assert (captured.layers[1].pattern > 0).sum(-1).max() == 2
    assert captured.layers[1].seen is not None
    assert captured.last is not None
    assert torch.equal(captured.last, own_last(model))


@pytest.mark.parametrize("check", CHECKS)
def test_a_model_that_computes_something_else_while_it_is_recorded_is_refused(
    check: Check,
) -> None:
    model = fickle(FickleUnderSdpa, "sdpa")
    with pytest.raises(InvalidArgumentError, match=r"differ by [0-9.]+ of .*'sdpa'.*attn_impl"):
        capture(model, TOKENS, check=check)
    assert model.config._attn_implementation == "sdpa"
    with pytest.raises(InvalidArgumentError, match="the model as it is"):
        list(capture_layers(model, TOKENS, check=check))
    # the way out
    model.set_attn_implementation("eager")
    assert capture(model, TOKENS, check=check).layers[1].seen is None


def test_a_longer_text_is_compared_again() -> None:
    # as with an index of the top k, texts of two tokens are the same under all names
    model = fickle(FickleUnderSdpa, "sdpa")
    assert capture(model, TOKENS[:, :2]).n_layers == 2
    with pytest.raises(InvalidArgumentError, match="the model as it is"):
        capture(model, TOKENS)


def test_a_model_is_compared_once_for_a_length() -> None:
    model, runs = build("Llama", F32), []
    model.register_forward_hook(lambda *_: runs.append(1))
    counts = []
    for n in (9, 9, 4, 9):
        capture(model, TOKENS[:, :n])
        counts.append(len(runs))
        runs.clear()
    assert counts == [2, 1, 1, 1]
    capture(model, TOKENS, check="full")
    assert len(runs) == 2


def test_a_model_that_draws_numbers_draws_the_same_ones() -> None:
    model = build("Llama", F32)

    def noisy(_: Any, args: Any, output: Tensor) -> Tensor:
        return output + torch.randn_like(output)

    model.embed_tokens.register_forward_hook(noisy)
    for check in CHECKS:
        torch.manual_seed(5)
        captured = capture(model, TOKENS, check=check)
        after = torch.rand(1)
        torch.manual_seed(5)
        assert captured.last is not None
        assert torch.equal(captured.last, own_last(model))
        # a capture draws what a run draws, and no more
        assert torch.equal(torch.rand(1), after)


def test_a_keyword_that_eager_attention_doesn_t_read_is_refused_by_name() -> None:
    model = fickle(Selecting, "eager")
    with pytest.raises(InvalidArgumentError, match=r"Selecting .* `indices`"):
        capture(model, TOKENS)
    with pytest.raises(InvalidArgumentError, match="`indices`"), ablated(model, [(0, 0)]):
        model(TOKENS)
    # recording has ended
    assert own_last(model).shape == (2, 9, 32)


@pytest.mark.parametrize("name", ["DeepSeek-V3.2", "GLM-MoE-DSA"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_sparse_attention_stays_sparse(name: str, implementation: str) -> None:
    """An indexer chooses four tokens for each row; the model is that which runs unrecorded."""
    model = build(name, F32)
    model.set_attn_implementation(implementation)
    captured = capture(model, TOKENS, check="full")
    assert captured.last is not None
    last = own_last(model)
    assert (captured.last - last).abs().max() <= 1e-5 * last.abs().max()
    assert (decompose(captured).embeddings[-1] - last).abs().max() <= 1e-5 * last.abs().max()
    for layer in captured.layers:
        assert layer.seen is not None
        assert torch.equal((layer.pattern > 0).any(1), layer.seen)
        assert layer.seen.sum(-1).max() == 4
