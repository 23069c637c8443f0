"""How fast decoders are trained: a researcher's loop, batches in torch, and ours.

    python benchmarks/decoders.py

Microseconds of CPU time of a run-epoch, one step of one decoder on all its facts, on one core, in
float32 and without early stop; the three take turns. The loop and the batches are written here, as
they would be without this library. A batch has the same decoder from 32 starts, as tensors of one
more dimension.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from record import write
from torch import Tensor
from torch.nn import functional

from capacity.database import Database, random_database
from capacity.layer import DecoderConfig, Recipe
from capacity.layer.engines.tape.engine import run_weights
from capacity.layer.model.initial import initial_weights

# a block: RMS norm, two heads, and an MLP of four times the width
BLOCK: dict[str, Any] = {"n_heads": 2, "norm": "rms"}
# facts and tokens of each shape, about; the first two are those of the issue
SHAPES: dict[str, tuple[DecoderConfig, int]] = {
    "one block": (DecoderConfig(8, mlp=32, **BLOCK), 80),
    "two blocks": (DecoderConfig(8, mlp=32, n_layers=2, **BLOCK), 80),
    "four blocks": (DecoderConfig(8, mlp=32, n_layers=4, **BLOCK), 80),
    "d_model 4": (DecoderConfig(4, mlp=16, **BLOCK), 80),
    "d_model 16": (DecoderConfig(16, mlp=64, **BLOCK), 80),
    "d_model 32": (DecoderConfig(32, mlp=128, **BLOCK), 80),
    "d_model 32, four blocks": (DecoderConfig(32, mlp=128, n_layers=4, **BLOCK), 80),
    "40 facts": (DecoderConfig(8, mlp=32, **BLOCK), 40),
    "200 facts": (DecoderConfig(8, mlp=32, **BLOCK), 200),
    "no MLP": (DecoderConfig(8, **BLOCK), 80),
    "MLP alone": (DecoderConfig(8, mlp=32, norm="rms", attention=False), 80),
    "gated, rotary, biases": (
        DecoderConfig(8, 2, mlp=32, gated=True, activation="silu", norm="layer", bias=True,
                      positions="rotary"), 80,
    ),
}  # fmt: skip
# runs of a batch, and epochs that are timed
GROUP, NAIVE_EPOCHS, OUR_EPOCHS = 32, 20, 400


def database(n_facts: int) -> Database:
    """The random database whose number of facts is nearest."""
    drawn = [random_database(seed, triples=(4, 300)) for seed in range(300)]
    return min(drawn, key=lambda db: (abs(db.n_triples - n_facts), abs(db.n_tokens - 60)))


def logits(config: DecoderConfig, w: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
    """Logits of pairs, as a researcher writes them; weights may have one more dimension first."""

    def norm(x: Tensor, name: str) -> Tensor:
        gain = w[f"{name}.weight"][..., None, None, :]
        if config.norm == "layer":
            x = x - x.mean(-1, keepdim=True)
        x = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * gain
        return x + w[f"{name}.bias"][..., None, None, :] if config.norm == "layer" else x

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ w[name][..., None, :, :]

    def bias(x: Tensor, name: str) -> Tensor:
        return x + w[name][..., None, None, :] if config.bias else x

    x = w["W_E"][..., tokens, :]
    mask = torch.triu(torch.ones(2, 2, dtype=torch.bool), 1)
    for layer in range(config.n_layers):
        if config.has_attention:
            at = f"layers.{layer}.attention"
            y = norm(x, f"{at}.norm")[..., None, :, :]
            # heads before the positions: (..., facts, heads, 2, size)
            q, k, v = (
                y @ (m.mT if name == "W_K" else m)[..., None, :, :, :]
                for name in ("W_Q", "W_K", "W_V") for m in [w[f"{at}.{name}"]]
            )  # fmt: skip
            if config.bias:
                q, k, v = (
                    t + w[f"{at}.{name}"][..., None, :, :, :]
                    for t, name in ((q, "b_Q"), (k, "b_K"), (v, "b_V"))
                )
            if config.positions == "rotary":
                q, k = (_rotated(t) for t in (q, k))
            a = (q @ k.mT).masked_fill(mask, -torch.inf).softmax(-1)
            x = x + bias((a @ v @ w[f"{at}.W_O"][..., None, :, :, :]).sum(-3), f"{at}.b_O")
        if config.mlp:
            at = f"layers.{layer}.mlp"
            y = norm(x, f"{at}.norm")
            hidden = bias(linear(y, f"{at}.W_in"), f"{at}.b_in")
            if config.activation == "gelu":
                hidden = functional.gelu(hidden, approximate="tanh")
            else:
                hidden = functional.silu(hidden)
            if config.gated:
                hidden = hidden * linear(y, f"{at}.W_gate")
            x = x + bias(linear(hidden, f"{at}.W_out"), f"{at}.b_out")
    return bias(linear(norm(x, "norm"), "W_U"), "b_U")


def _rotated(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(2.0), 10_000.0 ** (-torch.arange(half) / half))
    c, s = angles.cos(), angles.sin()
    u, v = x.chunk(2, dim=-1)
    return torch.cat([u * c - v * s, u * s + v * c], dim=-1)


def torch_seconds(config: DecoderConfig, db: Database, group: int) -> float:
    """CPU seconds of a run-epoch by autograd, of one run or of a batch of them."""
    drawn = [initial_weights(config, db.n_tokens, seed) for seed in range(group)]
    stacked = {
        name: torch.tensor(np.squeeze(np.stack([w[name] for w in drawn]), 0) if group == 1
                           else np.stack([w[name] for w in drawn]), dtype=torch.float32,
                           requires_grad=True)
        for name in drawn[0]
    }  # fmt: skip
    optimizer = torch.optim.Adam(stacked.values(), lr=1e-3)
    tokens = torch.as_tensor(db.token_triples.astype(np.int64))
    targets = tokens[:, 1:].flatten().repeat(group)
    start = time.process_time()
    for _ in range(NAIVE_EPOCHS):
        optimizer.zero_grad()
        z = logits(config, stacked, tokens[:, :2])
        # the sum over runs of their mean losses
        (group * functional.cross_entropy(z.reshape(-1, db.n_tokens), targets)).backward()
        optimizer.step()
    return (time.process_time() - start) / NAIVE_EPOCHS / group


def our_seconds(config: DecoderConfig, db: Database) -> float:
    """CPU seconds of a run-epoch by the tape, with all that a run takes."""
    weights = {n: w.astype(np.float32) for n, w in initial_weights(config, db.n_tokens, 0).items()}
    recipe = Recipe(epochs=OUR_EPOCHS, learning_rate=1e-3, stop_tau=0)
    start = time.process_time()
    run_weights(config, weights, db, recipe, np.random.default_rng(0))
    return (time.process_time() - start) / OUR_EPOCHS


def main() -> None:
    """Measure all shapes, and write the record."""
    parser = argparse.ArgumentParser(description="How fast decoders are trained.")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name, (config, n_facts) in SHAPES.items():
        db = database(n_facts)
        ways: dict[str, Callable[[], float]] = {
            "ours": lambda config=config, db=db: our_seconds(config, db),
            "naive": lambda config=config, db=db: torch_seconds(config, db, 1),
            "batched": lambda config=config, db=db: torch_seconds(config, db, GROUP),
        }
        for way in ways.values():
            way()
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, seconds in ways.items():
                taken[way].append(1e6 * seconds())
        medians = {way: statistics.median(values) for way, values in taken.items()}
        rows.append(
            {"shape": name, "decoder": config.name, "facts": db.n_triples, "tokens": db.n_tokens,
             **{f"{way}_us": round(value, 1) for way, value in medians.items()},
             "times_naive": round(medians["naive"] / medians["ours"], 1),
             "times_batched": round(medians["batched"] / medians["ours"], 1)}
        )  # fmt: skip
        print(rows[-1])
    write(
        "decoders",
        what=f"CPU microseconds of a run-epoch on one core, median of {repeats}",
        peer="a naive torch loop; batches of 32 runs in torch",
        rows=rows,
        packages=["torch", "numba", "numpy"],
    )


if __name__ == "__main__":
    main()
