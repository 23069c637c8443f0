"""Ranks of T = V W_O and [T, 1] of every head, by triangular factors and directly.

    python benchmarks/identifiability.py

Median CPU seconds on one thread, all heads of a model of BERT-base's shape, in a ratio to the
forward pass as well. Peer: singular values of T and of [T, 1] themselves, n x d_model a head, as
the paper's threshold has them; and, for the joint rank, of all heads' constraints together, an
(n_heads n) x (d_model + n_heads) matrix a layer. Ours is both.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from record import medians, write
from shapes import LENGTHS, bert, tokens

from capacity.transformer import ActivationCache, capture, identifiability_table

REPEATS = 3


def heads(captured: ActivationCache) -> None:
    for layer in captured.layers:
        T = layer.v @ layer.W_O
        ones = torch.ones(*T.shape[:-1], 1)
        for matrix in (T, torch.cat([T, ones], -1)):
            s = torch.linalg.svdvals(matrix)
            _ = (s > s[..., :1] * max(matrix.shape[-2:]) * torch.finfo(s.dtype).eps).sum(-1)


def jointly(captured: ActivationCache) -> None:
    for layer in captured.layers:
        T = (layer.v @ layer.W_O)[0]
        ones = torch.block_diag(*[torch.ones(T.shape[1], 1)] * len(T))
        s = torch.linalg.svdvals(torch.cat([T.flatten(0, 1), ones], -1))
        _ = (s > s[0] * max(ones.shape) * torch.finfo(s.dtype).eps).sum()


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
                "ours": lambda c=captured: identifiability_table(c),
                "direct_heads": lambda c=captured: heads(c),
                "direct_jointly": lambda c=captured: jointly(c),
            }
            seconds = medians(runs, repeats=REPEATS)
        rows.append(
            {"n": n, "repeats": REPEATS,
             **{f"{name}_seconds": round(s, 4) for name, s in seconds.items()},
             "direct_over_ours": round(
                 (seconds["direct_heads"] + seconds["direct_jointly"]) / seconds["ours"], 2
             ),
             "ours_over_forward": round(seconds["ours"] / seconds["forward"], 3)}
        )  # fmt: skip
    write(
        "identifiability",
        what="CPU seconds of ranks of T and [T, 1], and of all heads together, 12 layers of 12",
        peer="singular values of T and [T, 1] of every head, and of all heads' constraints",
        rows=rows,
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
