"""What e = i + h + f + c costs beside the forward pass, and heads' terms beside tokens' terms.

    python benchmarks/decomposition.py

Ratios to the forward's median CPU seconds on one thread, BERT-base's shape. `decompose` includes
the capture, which is a forward pass with hooks. Peer for h: the published code weighs every token's
x W_V W_O, n^2 d_model numbers a head, before it sums them; beside it ours, A (X W_V) W_O, for one
layer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from record import medians, write
from shapes import D_MODEL, LENGTHS, N_HEADS, bert, tokens
from torch import Tensor

from capacity.transformer import ActivationCache, capture, decompose, head_importance, head_terms

REPEATS = 5
# the peer needs 2.4 GB a layer at 256 tokens
PEER_UP_TO = 256


def weigh_every_token(captured: ActivationCache) -> Tensor:
    layer = captured.layers[0]
    by_token = layer.v_unbiased[0] @ layer.W_O
    return (layer.pattern[0][..., None] * by_token[:, None]).sum((0, 2))


def weigh_values(captured: ActivationCache) -> Tensor:
    layer = captured.layers[0]
    return (layer.pattern[0] @ layer.v_unbiased[0] @ layer.W_O).sum(0)


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    model = bert()
    for n in LENGTHS:
        ids = tokens(n)
        with torch.no_grad():
            captured = capture(model, ids)
            runs: dict[str, Callable[[], object]] = {
                "forward": lambda ids=ids: model(ids),
                "decompose": lambda ids=ids: decompose(capture(model, ids)),
                "head_terms": lambda c=captured: head_terms(c),
                "head_importance": lambda c=captured: head_importance(c),
                "h_of_values": lambda c=captured: weigh_values(c),
            }
            if n <= PEER_UP_TO:
                runs["h_of_tokens"] = lambda c=captured: weigh_every_token(c)
                off = (weigh_every_token(captured) - weigh_values(captured)).abs().max()
                assert off < 1e-4 * weigh_values(captured).abs().max()
            seconds = medians(runs, repeats=REPEATS)
        forward = seconds["forward"]
        row = {"n": n, "repeats": REPEATS, "forward_seconds": round(forward, 4)}
        for name in ("decompose", "head_terms", "head_importance"):
            row[f"{name}_over_forward"] = round(seconds[name] / forward, 3)
        row["h_of_values_seconds"] = round(seconds["h_of_values"], 5)
        if n <= PEER_UP_TO:
            row["h_of_tokens_seconds"] = round(seconds["h_of_tokens"], 4)
            row["tokens_over_values"] = round(seconds["h_of_tokens"] / seconds["h_of_values"], 1)
            row["h_of_tokens_mib"] = N_HEADS * n * n * D_MODEL * 4 / 2**20
        rows.append(row)
    write(
        "decomposition",
        what="CPU seconds of the four terms after all layers, over the forward's",
        peer="weighing every token's term of h, as in the published code",
        rows=rows,
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
