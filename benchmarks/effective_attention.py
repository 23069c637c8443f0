"""What effective attention costs beside the forward pass whose attention it explains.

    python benchmarks/effective_attention.py

Ratios are (forward + analysis) / forward, of median CPU seconds on one thread, for models of the
shape of BERT-base and GPT-2. "products" are those that no method avoids, in float32 and in the same
run: V^T V and O W V^T, 2 n d^2 + 2 n^2 d operations a head, the n x n pattern written. "factors"
leaves the pattern unwritten, and computes the share of attention that has an effect; "pattern"
writes it. "calls alone" are those of factors and shares in float64, with no check and nothing kept:
V^T V, its Cholesky factor R, R^-1, O R^-1 and two norms.

Peers: a full singular value decomposition of V a head (Sun and Marasovic 2021, section 2; their
Table 3 has about 2), a thin one, a QR decomposition; for causal models a Gram matrix and a Cholesky
decomposition for every row. The slowest are omitted for long sentences.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from record import medians, write
from shapes import D_MODEL, N_HEADS, bert, gpt2, tokens
from torch import Tensor

from capacity.transformer import (
    ActivationCache,
    EffectiveMode,
    capture,
    effective_attention,
    effective_share,
)

# the attention of more layers would take more memory than capture allows
LAYERS = {128: 12, 256: 12, 512: 12, 1024: 12, 2048: 6}
REPEATS = {128: 41, 256: 21, 512: 11, 1024: 7, 2048: 5}
D_HEAD = D_MODEL // N_HEADS
LONGEST = {"full SVD": 512, "a Gram matrix a row": 256}
Method = Callable[[ActivationCache], object]


def products(captured: ActivationCache) -> None:
    for layer in captured.layers:
        gram = layer.v.mT @ layer.v
        _ = (layer.z @ gram) @ layer.v.mT


def calls(captured: ActivationCache) -> None:
    """Compute factors and their norms, without a check, a mask or a scale."""
    for layer in captured.layers:
        v = layer.v.double()
        R = torch.linalg.cholesky_ex(v.mT @ v, upper=True).L
        inverse = torch.linalg.solve_triangular(R, torch.eye(D_HEAD).double(), upper=True)
        left = layer.z @ inverse.float()
        _ = torch.linalg.vector_norm(left, dim=(-2, -1))
        _ = torch.linalg.vector_norm(layer.pattern, dim=(-2, -1))


def pattern(mode: EffectiveMode) -> Method:
    def run(captured: ActivationCache) -> None:
        for layer in effective_attention(captured, mode).layers:
            _ = layer.pattern

    return run


def factors(captured: ActivationCache) -> None:
    for layer, found in zip(
        captured.layers, effective_attention(captured, "plain").layers, strict=True
    ):
        effective_share(layer.pattern, found)


def full_svd(captured: ActivationCache) -> None:
    for layer in captured.layers:
        for attention, v in zip(layer.pattern[0], layer.v[0], strict=True):
            U, s, _ = torch.linalg.svd(v, full_matrices=True)
            null = U[:, int((s > s[0] * max(v.shape) * torch.finfo(v.dtype).eps).sum()) :]
            _ = attention - (attention @ null) @ null.T


def by_basis(basis: Callable[[Tensor], Tensor]) -> Method:
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


METHODS: dict[str, Method] = {
    "products": products,
    "calls alone": calls,
    "ours, plain: factors and shares": factors,
    "ours, plain: pattern": pattern("plain"),
    "ours, simplex: pattern": pattern("simplex"),
    "full SVD": full_svd,
    "thin SVD": by_basis(lambda v: torch.linalg.svd(v, full_matrices=False)[0]),
    "QR": by_basis(lambda v: torch.linalg.qr(v)[0]),
}
CAUSAL: dict[str, Method] = {
    "products": products,
    "ours, causal: pattern": pattern("causal"),
    "a Gram matrix a row": prefixes,
}


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    longest = max(REPEATS)
    for shape, methods in ((bert, METHODS), (gpt2, CAUSAL)):
        for n, repeats in REPEATS.items():
            model = shape(LAYERS[n], n_positions=longest)
            ids = tokens(n)
            with torch.no_grad():
                captured = capture(model, ids)
                forward: dict[str, Callable[[], object]] = {
                    "forward": lambda model=model, ids=ids: model(ids)
                }
                recorded: dict[str, Callable[[], object]] = {
                    "capture": lambda model=model, ids=ids: capture(model, ids)
                }
                runs: dict[str, Callable[[], object]] = {
                    name: lambda run=run, c=captured: run(c)
                    for name, run in methods.items()
                    if n <= LONGEST.get(name, longest)
                }
                # by itself: it takes new memory, and what else is run decides where that comes from
                alone = medians(forward | recorded, repeats=repeats)
                seconds = medians(forward | runs, repeats=repeats)
            unit = seconds.pop("forward")
            row = {"model": type(model).__name__, "layers": LAYERS[n], "n": n,
                   "forward_seconds": round(unit, 4), "repeats": repeats,
                   # the run itself with records and checks, not added to another
                   "capture": round(alone["capture"] / alone["forward"], 3),
                   **{name: round(1 + s / unit, 3) for name, s in seconds.items()}}  # fmt: skip
            print(row, flush=True)
            rows.append(row)
    write(
        "effective_attention",
        what="(forward + effective attention) / forward, and capture / forward, median CPU "
        "seconds, models of BERT-base's shape",
        peer="the products alone; full SVD, thin SVD and QR of every head's V; for causal models a "
        "Gram matrix a row",
        rows=rows,
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
