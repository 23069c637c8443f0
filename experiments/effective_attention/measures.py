"""Measures of one sentence, of an example, of padding and of time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from capacity.transformer import (
    ActivationCache,
    attention_cosine,
    capture,
    effective_attention,
    effective_share,
    pattern_statistics,
    token_shares,
)
from capacity.transformer.effective.attention import effective_layer
from capacity.transformer.effective.statistics import normalised, standard
from experiments.common.harness import Tables
from experiments.common.models import CLS, SEP
from experiments.common.texts import KINDS, OTHER, PUNCTUATION, Sentence, tweet_pairs

ATTENTIONS = ("standard", "plain", "simplex")
SHAPES = ("vertical", "diagonal", "block", "entropy", "negative", "squares_left",
          "vertical_of_squares", "diagonal_of_squares", "block_of_squares")  # fmt: skip


def of_sentence(sentence: Sentence, at: ActivationCache) -> Tables:
    """Shares of heads by kinds of tokens, the same for [CLS] alone, shapes, leverages."""
    kinds = {kind: sentence.are(kind) for kind in KINDS}
    rows = sentence.are(PUNCTUATION, OTHER)
    shares, shapes, final = [], [], []
    for attention, patterns in patterns_of(at).items():
        for layer, pattern in enumerate(patterns, start=1):
            here = {"attention": attention, "layer": layer}
            shares.append(token_shares(pattern, kinds, rows).assign(**here))
            of = _shapes_of(pattern, at.mask, sentence.part)
            of |= {
                f"{k}_of_squares": x
                for k, x in _shapes_of(pattern.square(), at.mask, sentence.part).items()
            }
            of["squares_left"] = effective_share(at.layers[layer - 1].pattern, pattern)
            shapes.append({**here, **{shape: float(of[shape].mean()) for shape in SHAPES}})
        last = token_shares(patterns[-1], kinds, kinds[CLS])
        final.append(last.assign(attention=attention, layer=at.n_layers))
    return {
        "shares": pd.concat(shares),
        "final": pd.concat(final),
        "shapes": pd.DataFrame(shapes),
        "leverage": _leverages(at, kinds),
    }


def patterns_of(captured: ActivationCache) -> dict[str, list[Tensor]]:
    """Three kinds of attention, layer by layer."""
    effective = {mode: effective_attention(captured, mode) for mode in ("plain", "simplex")}
    return {
        "standard": standard(captured),
        **{mode: [layer.pattern for layer in e.layers] for mode, e in effective.items()},
    }


def _shapes_of(pattern: Tensor, mask: Tensor, part: Tensor) -> dict[str, Tensor]:
    return pattern_statistics(pattern, mask) | {"block": _block(pattern, part)}


def _block(pattern: Tensor, part: Tensor) -> Tensor:
    """Share of the absolute weight between words of the two texts that stays in one."""
    shares = normalised(pattern) * (part[:, None] * part > 0)
    return (shares * (part[:, None] == part)).sum((-2, -1)) / shares.sum((-2, -1))


def _leverages(at: ActivationCache, kinds: dict[str, Tensor]) -> pd.DataFrame:
    """Share of weight on one token that projection leaves, the diagonal of P; size of values."""
    rows = []
    for number, layer in enumerate(at.layers, start=1):
        one_hot = torch.eye(at.mask.shape[1]).expand_as(layer.pattern)
        P = effective_layer(one_hot, layer.v, at.mask, "plain").pattern
        size = layer.v.norm(dim=-1)
        of = {"leverage": P.diagonal(dim1=-2, dim2=-1), "size": size / size.mean(-1, keepdim=True)}
        rows += [
            {"layer": number, "kind": kind,
             **{name: float(x.mean(1)[where].mean()) for name, x in of.items()}}
            for kind, where in {**kinds, "all": at.mask}.items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def cosines(first: ActivationCache, second: ActivationCache) -> pd.DataFrame:
    """Cosines of two models' patterns on the same sentence, by heads."""
    ones, others = patterns_of(first), patterns_of(second)
    return pd.DataFrame(
        {"attention": attention, "layer": layer, "head": head, "cosine": float(value)}
        for attention in ATTENTIONS
        for layer, row in enumerate(attention_cosine(ones[attention], others[attention]), start=1)
        for head, value in enumerate(row)
    )


def example(shares: pd.DataFrame, at: ActivationCache, sentence: Sentence) -> pd.DataFrame:
    """The first sentence, in the head of the last two layers that attends most to a delimiter."""
    late = shares[
        (shares["attention"] == "standard")
        & shares["kind"].isin([CLS, SEP]) & (shares["layer"] > at.n_layers - 2)
    ]  # fmt: skip
    means = late.groupby(["layer", "head", "kind"], as_index=False)["weight"].mean()
    best = means.loc[means["weight"].idxmax()]
    layer, head = int(best["layer"]), int(best["head"])
    n = len(sentence.tokens)
    row, column = np.divmod(np.arange(n * n), n)
    patterns = {k: x[layer - 1][0, head].flatten().numpy() for k, x in patterns_of(at).items()}
    where = {"layer": layer, "head": head, "row": row, "column": column}
    return pd.DataFrame({**where, "token": np.array(sentence.tokens)[column], **patterns})


def with_padding(model: Any, tokenizer: Any, n: int) -> pd.DataFrame:
    """Sentences of fewer tokens than d_head_vo: projected among tokens, and with their padding.

    The paper's published code projects with padding, and zeroes its columns afterwards.
    """
    rows = []
    for i, sentence in enumerate(tweet_pairs(tokenizer, n, 24, n_texts=2)):
        short = len(sentence.tokens)
        inputs = {key: torch.nn.functional.pad(x, (0, 64 - short))
                  for key, x in sentence.inputs.items()}  # fmt: skip
        at, values = _with_all_values(model, inputs)
        alone = effective_attention(at, "plain").layers
        for number, (layer, v) in enumerate(zip(at.layers, values, strict=True), start=1):
            by_heads = v.unflatten(-1, (layer.v.shape[1], -1)).transpose(1, 2)
            everything = torch.ones_like(at.mask)
            padded = effective_layer(layer.pattern, by_heads, everything, "plain").pattern
            on_padding = normalised(padded)[..., :short, short:].sum(-1)
            # `layer.v` is 0 at padding
            of = {
                "share_on_padding": on_padding.mean(),
                "change_alone": _relative(alone[number - 1].pattern, layer.pattern),
                "change_padded_then_zeroed": _relative(padded * at.mask, layer.pattern),
                "change_of_output_then": _relative(padded @ layer.v, layer.z),
            }
            rows.append({"sentence": i, "layer": number, **{k: float(x) for k, x in of.items()}})
    return pd.DataFrame(rows)


def _relative(new: Tensor, old: Tensor) -> Tensor:
    return (new - old).norm() / old.norm()


def _with_all_values(model: Any, inputs: dict[str, Tensor]) -> tuple[ActivationCache, list[Tensor]]:
    """The values of every layer as well, those of padding among them, which `capture` drops."""
    values: list[Tensor] = []
    hooks = [
        layer.attention.self.value.register_forward_hook(lambda _m, _i, v: values.append(v))
        for layer in model.encoder.layer
    ]
    captured = capture(model, inputs)
    for hook in hooks:
        hook.remove()
    return captured, values


def times(model: Any, sentences: list[dict[str, Tensor]], repeats: int) -> pd.DataFrame:
    """Wall time of evaluating, alone and with effective attention, by turns."""
    ways: dict[str, Callable[[dict[str, Tensor]], Any]] = {
        "standard": lambda x: model(**x),
        "plain": lambda x: effective_attention(capture(model, x), "plain"),
        "full_svd": lambda x: [_by_full_svd(of.pattern, of.v) for of in capture(model, x).layers],
    }
    rows = []
    # the first turn warms up
    for repeat in range(repeats + 1):
        for way, call in ways.items():
            start = time.perf_counter()
            for inputs in sentences:
                call(inputs)
            seconds = time.perf_counter() - start
            rows.append({"repeat": repeat, "way": way, "seconds": seconds})
    lengths = [x["input_ids"].shape[1] for x in sentences]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return pd.DataFrame(rows[len(ways) :]).assign(
        n_sentences=len(lengths), n_tokens=np.mean(lengths),
        threads=torch.get_num_threads(), load_per_core=load,
    )  # fmt: skip


def _by_full_svd(pattern: Tensor, v: Tensor) -> list[Tensor]:
    """The paper's section 2, a head at a time."""
    effective = []
    for A, V in zip(pattern.flatten(0, 1), v.flatten(0, 1), strict=True):
        U, s, _ = torch.linalg.svd(V, full_matrices=True)
        null = U[:, int((s > 1e-6 * s[0]).sum()) :]
        effective.append(A - (A @ null) @ null.T)
    return effective
