"""Peak memory of effective attention on a long text, one layer at a time.

    python benchmarks/long_texts.py

A model of BERT-base's shape, 12 layers, reads 4,096 random tokens; effective attention and its
share of every head are computed as the layers come (`capacity.transformer.capture_layers`). The
peer is the forward pass alone, with attention in full. Each is in a process of its own, on one
thread. To keep all layers (`capacity.transformer.capture`) would take 9.7 GB for attention alone,
which is over the limit of that function.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from record import write
from shapes import bert, tokens

from capacity.transformer import capture_layers, effective_attention, effective_share

N = 4096
GIB = 2**20  # of the KiB that the system counts


def forward(model: Any, ids: torch.Tensor) -> None:
    model(ids)


def layer_by_layer(model: Any, ids: torch.Tensor) -> None:
    for one in capture_layers(model, ids):
        effective_share(one.layers[0].pattern, effective_attention(one).layers[0])


METHODS: dict[str, tuple[Callable[[Any, torch.Tensor], None], int]] = {
    "forward pass": (forward, N),
    "ours, layer by layer": (layer_by_layer, N),
    "forward pass, half the text": (forward, N // 2),
    "ours, layer by layer, half the text": (layer_by_layer, N // 2),
}


def measured(name: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    run, n = METHODS[name]
    model, ids = bert(n_positions=N), tokens(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB
    start = time.process_time()
    with torch.no_grad():
        run(model, ids)
    return {
        "what": name,
        "n": n,
        "cpu_seconds": round(time.process_time() - start, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB, 2),
        "of_which_before_gib": round(before, 2),
    }


def main() -> None:
    context = multiprocessing.get_context("spawn")
    rows = []
    for name in METHODS:
        with context.Pool(1) as pool:
            rows.append(pool.apply(measured, (name,)))
        print(rows[-1], flush=True)
    write(
        "long_texts",
        what="Peak memory (resident set of the process) and CPU seconds of one run: 12 layers of "
        "BERT-base's shape, effective attention and its shares",
        peer="the forward pass alone",
        rows=rows,
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
