"""Models of known shapes with random weights, for benchmarks of capacity.transformer."""

from __future__ import annotations

from typing import Any

import torch

LENGTHS = (128, 256, 512)
D_MODEL, N_HEADS, N_LAYERS = 768, 12, 12
EAGER: dict[str, Any] = {"attn_implementation": "eager"}


def bert(n_layers: int = N_LAYERS, n_positions: int = 512) -> Any:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    sizes = {"num_hidden_layers": n_layers, "max_position_embeddings": n_positions}
    return BertModel(BertConfig(**sizes, **EAGER)).eval()


def gpt2(n_layers: int = N_LAYERS, n_positions: int = 1024) -> Any:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    return GPT2Model(GPT2Config(n_layer=n_layers, n_positions=n_positions, **EAGER)).eval()


def smollm2() -> Any:
    """A model of the shape of SmolLM2-135M, with the attention that it is loaded with."""
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
             "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152}  # fmt: skip
    return LlamaModel(LlamaConfig(**sizes)).eval()


def tokens(n: int) -> torch.Tensor:
    return torch.randint(1000, 30_000, (1, n), generator=torch.Generator().manual_seed(n))


def forward_operations(n: int) -> float:
    """Of one forward pass: projections, attention, and a feed-forward of four times the width."""
    d = D_MODEL
    return N_LAYERS * (2 * n * 12 * d * d + 4 * n * n * d)
