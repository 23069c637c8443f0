"""Measures of heads, a table each, of some sentences in a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import torch
from torch import Tensor

from capacity.transformer import (
    ActivationCache,
    alternative_attention,
    find_witness,
    identifiability_table,
    minimum_logit_rank,
    p4_defect,
    p4_excess,
)
from capacity.transformer.activations.records.cache import Written
from capacity.transformer.identifiability.logit_rank import attention
from capacity.transformer.identifiability.witness import query_key_weights

# the paper computes in single precision
EPSILON = torch.finfo(torch.float32).eps
VALUE_SIZES = (16, 32, 64)
# of a layer, counted from 0, and a head
Heads = Sequence[tuple[int, int]]


def first_head(captured: ActivationCache) -> ActivationCache:
    """The same with one head alone, as the paper takes it."""
    (layer,) = captured.layers
    parts = {key: getattr(layer, key)[:, :1] for key in ("pattern", "q", "k", "v", "z")}
    # values have their bias in them already
    head = replace(layer, W_O=layer.W_O[:1], b_V=None, **parts)
    return replace(captured, layers=(head,))


def ranks(name: str, captured: ActivationCache, *, first: int = 0) -> pd.DataFrame:
    """Ranks and left null spaces of all heads; ``first`` is the number of the first sentence."""
    columns = ["n_tokens", "sentence", "layer", "head", "rank_values", "nullity",
               "nullity_simplex", "joint_nullity"]  # fmt: skip
    table = identifiability_table(captured)[columns]
    small = dict.fromkeys(columns, "int16")
    # the tables of this experiment count layers from 1, the library from 0
    counted = table.assign(sentence=table["sentence"] + first, layer=table["layer"] + 1)
    return counted.astype(small).assign(model=name)


def stages(captured: ActivationCache) -> pd.DataFrame:
    """Ranks of inputs, of the first head's values and of its T, by the paper's threshold."""
    (layer,) = captured.layers
    v = layer.v[:, 0].double()
    rows = []
    for stage, of in {"X": captured.start.double(), "V": v, "T": v @ layer.W_O[0].double()}.items():
        s = torch.linalg.svdvals(of)
        rank = (s > max(of.shape[1:]) * EPSILON * s[:, :1]).sum(dim=1)
        rows.append(pd.DataFrame({"stage": stage, "n_tokens": of.shape[1], "rank": rank,
                                  "smallest": s[:, -1] / s[:, 0]}))  # fmt: skip
    return pd.concat(rows)


def logits(
    name: str, captured: ActivationCache, sentence: int, heads: Heads, *, draws: int
) -> pd.DataFrame:
    """Least ranks of the logits of A, and of constructed A + A~, as for Figure 5."""
    rows = []
    for layer, head in heads:
        q, k, T, scale = _head(captured, layer, head)
        A = attention(q, k, scale)
        least = partial(minimum_logit_rank, threshold=len(q) * EPSILON)
        own = least(A)
        for draw in range(draws):
            change = alternative_attention(A, T, seed=draw)
            rows.append(
                {"model": name, "n_tokens": len(q), "sentence": sentence, "layer": layer + 1,
                 "head": head, "d_head_qk": q.shape[1], "own": own,
                 "constructed": least(A + change),
                 "relative_change": float(change.norm() / A.norm())}
            )  # fmt: skip
    return pd.DataFrame(rows)


def defects(name: str, captured: ActivationCache, heads: Heads) -> pd.DataFrame:
    """P4 as it is counted, and as it is at the heads' own queries and keys."""
    rows = []
    for layer, head in heads:
        q, k, T, scale = _head(captured, layer, head)
        rank_simplex = 1 + int(torch.linalg.matrix_rank(T - T.mean(dim=0)))
        rows.append(
            {"model": name, "n_tokens": len(q), "layer": layer + 1, "head": head,
             "d_head_qk": q.shape[1], "excess": p4_excess(len(q), q.shape[1], rank_simplex),
             "defect": p4_defect(q, k, T, scale=scale)}
        )  # fmt: skip
    return pd.DataFrame(rows)


def witness(
    name: str, captured: ActivationCache, layer: int, head: int, *, steps: int
) -> pd.DataFrame:
    """Other weights W_Q and W_K of a head that put out the same: what they change."""
    q, k, T, scale = _head(captured, layer, head)
    found = find_witness(q, k, T, scale=scale, steps=steps)
    x = _inputs(captured, layer)[0].double()
    W_Q, W_K = query_key_weights(x, found.q, found.k)
    before, after = attention(q, k, scale), attention(x @ W_Q, x @ W_K, scale)
    H = before @ T
    row = {
        "model": name,
        "layer": layer + 1,
        "head": head,
        "n_tokens": len(q),
        "d_head_qk": q.shape[1],
        "relative_change": float((after - before).norm() / before.norm()),
        "largest_change": float((after - before).abs().max()),
        "rows_with_another_largest": float((after.argmax(1) != before.argmax(1)).double().mean()),
        "residual": float((after @ T - H).abs().max() / H.abs().max()),
        "logit_rank": minimum_logit_rank(after),
    }
    return pd.DataFrame([row])


def boundary() -> pd.DataFrame:
    """The largest d_head_qk without an excess, for generic T of more than d_head_vo + 1 tokens."""
    return pd.DataFrame(
        {"d_head_vo": d, "n_tokens": n,
         "largest": sum(p4_excess(n, r, d + 1) <= 0 for r in range(1, n)),
         "excess_at_equal_sizes": p4_excess(n, d, d + 1)}
        for d in VALUE_SIZES
        for n in range(d + 2, 513)
    )  # fmt: skip


def _head(captured: ActivationCache, layer: int, head: int) -> tuple[Tensor, Tensor, Tensor, float]:
    """q, k and T of the first sentence in double precision, and the logits' scale."""
    at = captured.layers[layer]
    T = at.v[0, head].double() @ at.W_O[head].double()
    return at.q[0, head].double(), at.k[0, head].double(), T, at.scale


def _inputs(captured: ActivationCache, layer: int) -> Tensor:
    """The residual stream that a layer (counted from 0) reads."""
    stream = captured.start
    for step in captured.steps:
        if isinstance(step, Written) and (step.layer, step.term) == (layer, "heads"):
            break
        stream = step.applied_to(stream)
    return stream
