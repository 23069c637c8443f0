"""Cost of capture beside the forward pass of a model of many small layers, on short texts.

    python benchmarks/capturing.py

Ratios to the forward pass's median CPU seconds on one thread, for the shape of SmolLM2-135M: 30
layers of 9 heads in 3 groups. "eager" is the same model with the attention that `capture` records,
in place of torch's fused one; "table" is `identifiability_table` with its capture.
"""

from __future__ import annotations

import torch
from record import medians, write
from shapes import smollm2, tokens

from capacity.transformer import capture, identifiability_table

LENGTHS, REPEATS = (64, 128, 256), 9


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
            identifiability_table(capture(model, ids))
            seconds = medians(
                {
                    "forward": lambda ids=ids: model(ids),
                    "eager": lambda ids=ids: eager(ids),
                    "capture": lambda ids=ids: capture(model, ids),
                    "table": lambda ids=ids: identifiability_table(capture(model, ids)),
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
