"""Real weights of two more models: chemical reactions, and antibodies."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from capacity.transformer import (
    capture,
    decompose,
    effective_attention,
    identifiability_table,
    output_head,
)
from experiments.common.models import Smiles, antibodies, antibody_bert, reaction_bert

pytestmark = pytest.mark.slow
# of aspirin, and the variable domain of a heavy chain
REACTION = "CC(=O)OC(C)=O.OC(=O)c1ccccc1O.CCN(CC)CC.ClCCl.CN(C)c1ccncc1>>CC(=O)Oc1ccccc1C(O)=O"
CHAIN = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAV"
    "YYCAK"
)
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], dict[str, Tensor]]]] = {
    "reactions": (lambda: reaction_bert("pretrained"), lambda: Smiles().encode([REACTION])),
    "reactions, finetuned": (
        lambda: reaction_bert("finetuned"),
        lambda: Smiles().encode([REACTION]),
    ),
    "antibodies": (antibody_bert, lambda: antibodies([CHAIN, CHAIN[::-1]])),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_the_analyses_hold_on_real_weights(name: str, dtype: torch.dtype) -> None:
    build, text = MODELS[name]
    model, inputs = build().to(dtype), text()
    slack = 1e-5 if dtype == torch.float32 else 1e-12
    captured = capture(model, inputs, check="full")
    modes: list[Any] = ["plain", "simplex"]
    for mode in modes:
        for layer, found in zip(
            captured.layers, effective_attention(captured, mode).layers, strict=True
        ):
            off = (found.pattern @ layer.v - layer.z).norm() / layer.z.norm()
            assert off < slack
    split = decompose(captured)
    with torch.no_grad():
        told = model(**inputs, output_hidden_states=True)
    for ours, theirs in zip(split.embeddings, told.hidden_states, strict=True):
        assert (ours - theirs).norm() <= slack * theirs.norm()
    table = identifiability_table(captured)
    n, d = captured.n_tokens[0], captured.layers[0].v.shape[-1]
    assert n > d
    # of some heads the values lack rank
    assert (table["nullity"] >= n - d).all()
    assert (table["nullity"] == n - d).mean() > 0.9
    if hasattr(told, "logits"):
        logits = output_head(model)(split.embeddings[-1])
        assert (logits - told.logits).norm() <= 10 * slack * told.logits.norm()
