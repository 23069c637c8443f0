"""Small models with random weights, one a family, and sentences for them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

SIZES: dict[str, Any] = {"vocab_size": 50, "attn_implementation": "eager"}
WIDE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    **SIZES,
}
GROUPED: dict[str, Any] = {**WIDE, "num_key_value_heads": 2, "head_dim": 4}
FAMILIES = ["Bert", "Albert", "GPT2", "Llama", "Mistral", "Qwen2"]


def build(family: str, dtype: torch.dtype = torch.float64, **changes: Any) -> nn.Module:
    """A model with a (masked) language-model head; every weight, biases too, is random."""
    import transformers

    suffix = "MaskedLM" if family in ("Bert", "Albert") else "CausalLM"
    if family == "GPT2":
        # no special tokens: their ids lie outside the small vocabulary
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32, "bos_token_id": 0,
                 "eos_token_id": 0, **SIZES}  # fmt: skip
        name = "GPT2LMHeadModel"
    else:
        sizes = {
            "Bert": WIDE,
            "Albert": {**WIDE, "embedding_size": 8, "num_hidden_layers": 3},
        }.get(family, GROUPED)
        name = f"{family}For{suffix}"
    config = getattr(transformers, f"{family}Config")(**{**sizes, **changes})
    torch.manual_seed(0)
    model = getattr(transformers, name)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.to(dtype).eval()


@pytest.fixture(name="build")
def _build() -> Callable[..., nn.Module]:
    return build


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def sentences() -> dict[str, torch.Tensor]:
    """Three of 9, 5 and 1 tokens; the rest is padding, after them."""
    tokens = torch.randint(3, 50, (3, 9), generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([9, 5, 1])
    return {
        "input_ids": tokens,
        "attention_mask": (torch.arange(9) < lengths[:, None]).long(),
    }
