"""Cost of capture beside the forward pass of a model of many small layers, on short texts.

    python benchmarks/capturing.py

Ratios to the forward pass's median CPU seconds on one thread, for the shape of SmolLM2-135M: 30
layers of 9 heads in 3 groups. "eager" is the same model with the attention that `capture` records,
in place of torch's fused one; "table" is `identifiability_table` with its capture, "table_alone"
without it, and "first_table" is that of weights that it hasn't met, without the capture, too.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from record import medians, write
from shapes import smollm2, tokens

from capacity.transformer import ActivationCache, capture, identifiability_table

LENGTHS, REPEATS = (64, 128, 256), 7


def renewed(captured: ActivationCache) -> ActivationCache:
    """The same with other copies of output weights, of which nothing is known."""
    layers = tuple(replace(layer, W_O=layer.W_O.clone()) for layer in captured.layers)
    return replace(captured, layers=layers)


def main() -> None:
    """Write the record."""
    torch.set_num_threads(1)
    rows = []
    model, eager = smollm2(), smollm2()
    eager.set_attn_implementation("eager")
    for n in LENGTHS:
        ids = tokens(n)
        with torch.no_grad():
            # a model is compared with itself at its first capture of a length
            captured = capture(model, ids)
            identifiability_table(captured)
            seconds = medians(
                {
                    "forward": lambda ids=ids: model(ids),
                    "eager": lambda ids=ids: eager(ids),
                    "capture": lambda ids=ids: capture(model, ids),
                    "table": lambda ids=ids: identifiability_table(capture(model, ids)),
                    "table_alone": lambda c=captured: identifiability_table(c),
                    "first_table": lambda c=captured: identifiability_table(renewed(c)),
                },
                repeats=REPEATS,
            )
        forward = seconds.pop("forward")
        ratios = {f"{name}_over_forward": round(s / forward, 3) for name, s in seconds.items()}
        rows.append({"n": n, "repeats": REPEATS, "forward_seconds": round(forward, 4), **ratios})
    write(
        "capturing",
        what="CPU seconds of capture, and of identifiability_table with it, over the forward's",
        peer="the model's own forward pass, with its attention and with the eager one",
        rows=rows,
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
