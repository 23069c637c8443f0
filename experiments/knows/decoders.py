"""Small decoders that are trained on sentences; as a command, the folder of one of them.

    python -m experiments.knows.decoders small 240 0 build/small-240-0

trains a decoder of a size on countries and so many people, from a seed, and writes it and its
tokenizer for ``load_pretrained(folder, head=True)``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from experiments.knows.sentences import lesson, tokenizer_of


class Size(NamedTuple):
    """Sizes of a decoder."""

    d_model: int
    n_layers: int
    n_heads: int


SIZES = {"small": Size(48, 2, 4), "medium": Size(80, 3, 4), "large": Size(128, 4, 4)}
STEPS, BATCH, RATE, WARM_UP = 800, 64, 5e-3, 50


def decoder(size: Size, n_words: int, seed: int) -> Any:
    """A decoder of Llama's form with tied embeddings, with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=n_words, hidden_size=size.d_model, intermediate_size=3 * size.d_model,
        num_hidden_layers=size.n_layers, num_attention_heads=size.n_heads,
        max_position_embeddings=64, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0,
        pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def train(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[str],
    *,
    seed: int,
    steps: int = STEPS,
    at: dict[int, Callable[[], None]] | None = None,
) -> None:
    """Train by AdamW on batches of sentences, each once before any comes again.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        The model is changed.
    sentences : sequence of str
        What is taught.
    seed : int
        Of the order.
    steps : int
        Number of batches. The rate rises over the first and falls along a cosine to 0.
    at : dict of int to callable, optional
        What is called after so many steps.
    """
    batch = tokenizer(list(sentences), padding=True, padding_side="right", return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"].bool()
    rng = np.random.default_rng(seed)
    order = np.concatenate([
        rng.permutation(len(ids)) for _ in range(math.ceil(steps * BATCH / len(ids)))
    ])  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(steps):
        rows = torch.from_numpy(order[step * BATCH : (step + 1) * BATCH])
        warm = min(1.0, (step + 1) / WARM_UP)
        optimizer.param_groups[0]["lr"] = RATE * warm * (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.zero_grad()
        loss_of(model, ids[rows], mask[rows]).backward()
        optimizer.step()
        if at is not None and step + 1 in at:
            at[step + 1]()


def loss_of(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy of all tokens but the first; sentences are padded on the right."""
    longest = int(mask.sum(1).max())
    ids, mask = ids[:, :longest], mask[:, :longest]
    logits = model(input_ids=ids, attention_mask=mask.long()).logits[:, :-1]
    return cross_entropy(logits[mask[:, 1:]], ids[:, 1:][mask[:, 1:]])


def main() -> None:
    """Write the folder of a decoder."""
    name, n_people, seed, folder = sys.argv[1:]
    torch.set_num_threads(1)
    sentences = lesson(int(n_people)).taught()
    tokenizer = tokenizer_of(sentences)
    model = decoder(SIZES[name], len(tokenizer), int(seed))
    train(model, tokenizer, sentences, seed=int(seed))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
