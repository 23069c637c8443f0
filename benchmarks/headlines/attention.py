"""Capture, effective attention and decomposing, beside the forward pass that they explain."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
from effective_attention import CAUSAL, METHODS
from shapes import bert, gpt2, smollm2, tokens

from capacity.transformer import ActivationCache, capture, decompose
from headlines.figure import Figure, ratio

LAYERS, LENGTH, REPEATS = 6, 256, 7


@cache
def model(causal: bool) -> tuple[Any, torch.Tensor, ActivationCache]:
    """A model of the shape of GPT-2 or BERT-base, a text, and what is captured of it."""
    torch.set_num_threads(1)
    made, ids = (gpt2 if causal else bert)(LAYERS), tokens(LENGTH)
    return made, ids, capture(made, ids)


@torch.no_grad()
def effective(mode: str) -> float:
    """Effective attention, every pattern written."""
    made, ids, captured = model(mode == "causal")
    methods = CAUSAL if mode == "causal" else METHODS
    run = methods[f"ours, {mode}: pattern"]
    return ratio(lambda: run(captured), lambda: made(ids), repeats=REPEATS)


@torch.no_grad()
def capturing() -> float:
    """A forward pass with all records and checks."""
    made, ids, _ = model(False)
    return ratio(lambda: capture(made, ids), lambda: made(ids), repeats=REPEATS)


@torch.no_grad()
def capturing_small_layers() -> float:
    """The same for 30 layers of the shape of SmolLM2-135M, and 64 tokens."""
    torch.set_num_threads(1)
    made, ids = smollm2(), tokens(64)
    capture(made, ids)
    return ratio(lambda: capture(made, ids), lambda: made(ids), repeats=5)


@torch.no_grad()
def decomposing() -> float:
    """The four additive terms after all layers, with the capture."""
    made, ids, _ = model(False)
    return ratio(lambda: decompose(capture(made, ids)), lambda: made(ids), repeats=REPEATS)


FIGURES = {
    "effective attention, plain": Figure("ratio", "forward pass", partial(effective, "plain")),
    "effective attention, causal": Figure("ratio", "forward pass", partial(effective, "causal")),
    "capture": Figure("ratio", "forward pass", capturing),
    "capture, small layers": Figure("ratio", "forward pass", capturing_small_layers),
    "decomposing": Figure("ratio", "forward pass", decomposing),
}
