"""What effective attention costs beside the forward pass whose attention it explains.

    python benchmarks/effective_attention.py

Ratios are (forward + analysis) / forward, of median CPU seconds on one thread, BERT-base's shape.
Peers: a full singular value decomposition of V a head (Sun and Marasovic 2021, section 2; their
Table 3 has about 2), a thin one, a QR decomposition; for causal models a Gram matrix and a Cholesky
decomposition for every row. `floor` is what the products that no method avoids would add at the
forward's own speed: V^T V and O W V^T, 2 n d^2 + 2 n^2 d operations a head.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from record import medians, write
from shapes import D_MODEL, LENGTHS, N_HEADS, N_LAYERS, bert, forward_operations, gpt2, tokens
from torch import Tensor

from capacity.transformer import ActivationCache, capture, effective_attention

REPEATS = 5
D_HEAD = D_MODEL // N_HEADS


def full_svd(captured: ActivationCache) -> None:
    for layer in captured.layers:
        for pattern, v in zip(layer.pattern[0], layer.v[0], strict=True):
            U, s, _ = torch.linalg.svd(v, full_matrices=True)
            null = U[:, int((s > s[0] * max(v.shape) * torch.finfo(v.dtype).eps).sum()) :]
            _ = pattern - (pattern @ null) @ null.T


def by_basis(basis: Callable[[Tensor], Tensor]) -> Callable[[ActivationCache], None]:
    def run(captured: ActivationCache) -> None:
        for layer in captured.layers:
            U = basis(layer.v)
            _ = (layer.pattern @ U) @ U.mT

    return run


def prefixes(captured: ActivationCache) -> None:
    """Every row by its own Gram matrix, batched; rows of up to d tokens keep their attention."""
    for layer in captured.layers:
        v = layer.v[0].double()
        gram = (v[..., None] * v[..., None, :]).cumsum(1)[:, D_HEAD:]
        L = torch.linalg.cholesky(gram)
        w = torch.cholesky_solve(layer.z[0, :, D_HEAD:, :, None].double(), L).squeeze(-1)
        _ = torch.tril(w.float() @ layer.v[0].mT, diagonal=D_HEAD)


METHODS: dict[str, Callable[[ActivationCache], object]] = {
    "ours, plain": lambda c: effective_attention(c, "plain"),
    "ours, simplex": lambda c: effective_attention(c, "simplex"),
    "full SVD": full_svd,
    "thin SVD": by_basis(lambda v: torch.linalg.svd(v, full_matrices=False)[0]),
    "QR": by_basis(lambda v: torch.linalg.qr(v)[0]),
}
CAUSAL: dict[str, Callable[[ActivationCache], object]] = {
    "ours, causal": lambda c: effective_attention(c, "causal"),
    "a Gram matrix a row": prefixes,
}


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for model, methods in ((bert(), METHODS), (gpt2(), CAUSAL)):
        for n in LENGTHS:
            ids = tokens(n)
            with torch.no_grad():
                captured = capture(model, ids)
                runs: dict[str, Callable[[], object]] = {
                    "forward": lambda model=model, ids=ids: model(ids),
                    "capture": lambda model=model, ids=ids: capture(model, ids),
                } | {name: lambda run=run, c=captured: run(c) for name, run in methods.items()}
                seconds = medians(runs, repeats=REPEATS)
            forward = seconds.pop("forward")
            least = N_LAYERS * N_HEADS * (2 * n * D_HEAD**2 + 2 * n * n * D_HEAD)
            rows.append(
                {"model": type(model).__name__, "n": n, "forward_seconds": round(forward, 4),
                 "repeats": REPEATS, "floor": round(1 + least / forward_operations(n), 3),
                 # hooks, and the check that heads average values
                 "capture": round(seconds.pop("capture") / forward, 3),
                 **{name: round(1 + s / forward, 3) for name, s in seconds.items()}}
            )  # fmt: skip
    write(
        "effective_attention",
        what="(forward + effective attention) / forward, median CPU seconds, BERT-base's shape",
        peer="full SVD, thin SVD and QR of every head's V; for causal models a Gram matrix a row",
        rows=rows,
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
