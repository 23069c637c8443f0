"""Runs that the stream's mode doesn't follow are shown where something else happens in them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from capacity.transformer import capture
from capacity.transformer.activations.following.mode_aside import ModeAside
from tests.transformer.tiny_models import build, inputs_of


class Counting(ModeAside):
    """A mode that counts functions of torch."""

    def __init__(self) -> None:
        super().__init__(lambda: True)
        self.seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


def attended(mode: Counting, module: nn.Module, *, made: int) -> tuple[int, int]:
    """Numbers of functions that are seen before a module's attention and after it, of one each."""
    mode.seen = 0
    mode.begin(module)
    torch.ones(1)
    mode.n_made += made
    before = mode.seen
    mode.attended(module)
    torch.ones(1)
    return before, mode.seen - before


def test_a_mode_steps_aside_before_the_second_attention_of_a_class() -> None:
    mode = Counting()
    with mode.entered():
        assert attended(mode, nn.Linear(1, 1), made=0) == (1, 1)
        assert attended(mode, nn.Linear(1, 1), made=0) == (0, 1)
        # of another class nothing is known
        assert attended(mode, nn.ReLU(), made=0) == (1, 1)


def test_a_mode_stays_where_something_is_followed_before_an_attention() -> None:
    mode = Counting()
    with mode.entered():
        assert attended(mode, nn.ReLU(), made=1) == (1, 1)
        assert attended(mode, nn.ReLU(), made=0) == (1, 1)


def test_a_mode_is_gone_after_a_module_has_failed() -> None:
    mode, module = Counting(), nn.ReLU()
    n_modes = torch._C._len_torch_function_stack()

    def fail() -> None:
        with mode.entered():
            mode.step_aside(module)
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        fail()
    assert torch._C._len_torch_function_stack() == n_modes


def test_a_mode_leaves_others_that_are_entered_after_it() -> None:
    mode, other, module = Counting(), Counting(), nn.ReLU()
    with mode.entered(), other:
        mode.step_aside(module)
        torch.ones(1)
    assert (mode.seen, other.seen) == (1, 1)


def test_a_norm_that_differs_from_others_of_its_class_is_told() -> None:
    model, inputs = build("Llama", torch.float32), inputs_of("Llama", torch.float32)
    assert capture(model, inputs).unfollowed is None
    norm = model.layers[1].input_layernorm
    plain = norm.forward
    # one more than its weight, as Gemma's norms have it
    norm.forward = lambda x: plain(x) + plain(x) / norm.weight
    assert "in layer 1 of LlamaModel a norm" in str(capture(model, inputs).unfollowed)
