"""The model that is recorded is the model that runs: what its attention's name changes is found."""

from threading import Thread
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaAttention

from capacity.errors import InvalidArgumentError
from capacity.transformer import Check, ablated, capture, capture_layers, decompose
from capacity.transformer.activations.following import attention_calls
from capacity.transformer.activations.following.attention_calls import shared_change
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


class Config:
    """An object with an attribute to change."""

    def __init__(self) -> None:
        self.x = 1


def test_what_has_its_value_already_may_be_changed_within() -> None:
    config = Config()
    with shared_change([config], "x", 1):
        with shared_change([config], "x", 2):
            assert config.x == 2
        assert config.x == 1
    assert not attention_calls._changes


class Stubborn(Config):
    """One that can't be put back."""

    def __setattr__(self, name: str, value: Any) -> None:
        if value == 1 and name in vars(self):
            raise RuntimeError("not again")
        super().__setattr__(name, value)


def test_what_cannot_be_undone_keeps_nothing_else() -> None:
    objects = [Config(), Stubborn(), Config()]
    with pytest.raises(RuntimeError, match="not again"), shared_change(objects, "x", 2):
        assert [each.x for each in objects] == [2, 2, 2]
    assert [each.x for each in objects] == [1, 2, 1]
    assert not attention_calls._changes


class Watchful(Config):
    """One that knows whether another thread might have come between."""

    locked: ClassVar[list[bool]] = []

    def __setattr__(self, name: str, value: Any) -> None:
        self.locked.append(attention_calls._LOCK.locked())
        super().__setattr__(name, value)


def test_no_thread_comes_between_a_count_and_its_change() -> None:
    watched = Watchful()
    Watchful.locked.clear()
    with shared_change([watched], "x", 2):
        pass
    # another thread would take the changed value for the one before
    assert Watchful.locked == [True, True]


def test_the_last_thread_undoes_a_change() -> None:
    config = Config()

    def change() -> None:
        with shared_change([config], "x", 2):
            pass

    with shared_change([config], "x", 2):
        other = Thread(target=change)
        other.start()
        other.join()
        assert config.x == 2
    assert config.x == 1
    assert not attention_calls._changes
