"""Write docs/families.md: what is analysed of each family of models, by tiny random models.

python tools/families.py
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    ActivationCache,
    capture,
    decompose,
    effective_attention,
    identifiability_table,
)
from tests.transformer.tiny_models import FAMILIES, HIDDEN, REFUSED, build, inputs_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "families.md"
OWN = "attention of its own, which doesn't go through the interface"
HEAD = """# Families of models

[`capture`](how-to/pretrained-model.md) records the attention of every model of `transformers`
whose layers hand queries, keys and values to its `AttentionInterface`: no list of families is
needed. These are tried: a tiny model of each with random weights, by `python tools/families.py`,
which writes this page; the tests hold it to what they find (transformers {version}).

* **Pattern**: attention, queries, keys, values, outputs of heads and W_O are recorded, rows sum
  to 1, A V is the heads' output and z W_O + b what they write, entry by entry; effective attention
  has the same output.
* **Identifiability**: ranks, nullities and unique rows of every head.
* **Decomposition**: last embeddings are the sum of the four terms (of five where there are
  *mixers*), to rounding.

| family | pattern | identifiability | decomposition | notes |
|---|---|---|---|---|
"""
FOOT = """
Where the decomposition isn't computed, the first two columns are still true. A *window* is a layer
whose tokens attend to some of the others alone: in causal mode rows are projected onto the values
that they may attend to. A *sink* takes weight from a row, and counts as one more column with values
of 0. A *gate* multiplies the outputs of heads by numbers of each token before W_O. *Mixers* are
sublayers of hybrids that mix tokens without attention (Mamba, gated linear attention, short
convolutions): they are a term of their own. Where *logits aren't scale q k* (biases of positions,
caps) `p4_excess` is missing, for it assumes logits of rank d_head_qk.
"""


def main() -> None:
    """Write the page."""
    DOCUMENT.write_text(page(), encoding="utf-8")


def page() -> str:
    """Text of the page."""
    warnings.simplefilter("ignore")
    rows = [*(_row(name, part) for name, family in FAMILIES.items() for part in family.parts),
            *(_refused(name, OWN) for name in HIDDEN),
            *(_refused(name, why) for name, (_, why) in REFUSED.items())]  # fmt: skip
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return HEAD.format(version=version("transformers")) + lines + FOOT


def _row(name: str, part: Any) -> list[str]:
    model, inputs = build(name, torch.float32), inputs_of(name, torch.float32, part)
    captured = capture(model, inputs, part=part, check="full")
    for layer, found in zip(captured.layers, effective_attention(captured).layers, strict=True):
        assert torch.allclose(found.pattern @ layer.v, layer.z, atol=1e-4)
    assert len(identifiability_table(captured)) == 2 * 4 * captured.n_layers
    try:
        decompose(captured)
        decomposed = "yes"
    except InvalidArgumentError:
        # the only reason there is among these; another one would be said
        assert part in ("decoder", "cross")
        decomposed = "no: attention across sequences"
    shown = name if part is None else f"{name}, {'across' if part == 'cross' else part}"
    return [shown, "yes", "yes", decomposed, ", ".join(_remarks(captured)) or "-"]


def _remarks(captured: ActivationCache) -> Iterator[str]:
    if captured.causal:
        yield "causal"
    if any(getattr(step, "term", "") == "mixers" for step in captured.steps):
        yield "mixers"
    if any(layer.seen is not None for layer in captured.layers):
        yield "windows"
    if any(layer.sink is not None for layer in captured.layers):
        yield "a sink"
    if any(layer.gate is not None for layer in captured.layers):
        yield "a gate"
    if not all(layer.soft for layer in captured.layers):
        yield "logits aren't scale q k"


def _refused(name: str, why: str) -> list[str]:
    try:
        capture(build(name, torch.float32), inputs_of(name, torch.float32))
    except InvalidArgumentError:
        return [name, "no", "no", "no", why]
    raise AssertionError(f"{name} is captured: say so")


if __name__ == "__main__":
    main()
