"""Capture beside TransformerLens and nnsight: the same numbers, and the time that each takes.

    make peers

makes an environment of its own, build/peers, with both of them, and writes
benchmarks/results/peers.json. The model is a GPT-2 of four layers with random weights. What parts
of models contribute to logits is compared for three families (benchmarks/peer_components.py).
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch
from peer_components import FAMILIES, compared
from record import medians, write
from torch import Tensor

from capacity.transformer import capture, from_tensors, from_transformer_lens

LENGTHS, LAYERS, REPEATS = (128, 512), 4, 7
KEPT = ("hook_pattern", "hook_v", "hook_z")


def gpt2() -> Any:
    """A model and a tokenizer that needs no network."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    eager: Any = {"attn_implementation": "eager"}
    config = GPT2Config(n_layer=LAYERS, **eager)
    return GPT2LMHeadModel(config).eval()


def lens_of(model: Any) -> Any:
    """The model as TransformerLens wraps it."""
    from tokenizers import Tokenizer, models
    from transformer_lens.model_bridge import (  # pyright: ignore[reportMissingImports]
        TransformerBridge,
    )
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    words = {"<|endoftext|>": 0, "the": 1}
    inner = Tokenizer(models.WordLevel(words, unk_token="<|endoftext|>"))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        **dict.fromkeys(("unk_token", "bos_token", "eos_token", "pad_token"), "<|endoftext|>"),
    )
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        loaded = AutoTokenizer.from_pretrained(folder)
        return TransformerBridge.boot_transformers(folder, hf_model=model, tokenizer=loaded)


def largest(pairs: Any) -> float:
    """Largest difference of pairs of tensors."""
    return max(float((a - b).abs().max()) for a, b in pairs)


def by_lens(model: Any, tokens: Tensor) -> dict[str, Any]:
    """TransformerLens's cache, whole and filtered."""
    # it changes the model that it is given
    bridge = lens_of(gpt2())
    own = capture(model, tokens)
    _, cache = bridge.run_with_cache(tokens)
    found = from_transformer_lens(cache)
    pairs = list(zip(found.layers, own.layers, strict=True))
    keep: Callable[[str], bool] = lambda name: name.endswith(KEPT)  # noqa: E731
    times = medians(
        {
            "forward": lambda: model.transformer(tokens),
            "capture": lambda: capture(model, tokens),
            "bridge forward": lambda: bridge(tokens),
            "run_with_cache": lambda: bridge.run_with_cache(tokens),
            "run_with_cache, filtered": lambda: bridge.run_with_cache(tokens, names_filter=keep),
        },
        repeats=REPEATS,
    )
    forward, theirs = times.pop("forward"), times.pop("bridge forward")
    ours = times.pop("capture")
    return {
        "largest differences": {
            name: largest((getattr(a, name), getattr(b, name)) for a, b in pairs)
            for name in ("pattern", "v", "z", "q", "k")
        },
        # theirs computes logits, too
        "capture over the body's forward pass": round(ours / forward, 3),
        **{f"{k} over its own forward pass": round(t / theirs, 3) for k, t in times.items()},
    }


def by_nnsight(model: Any, tokens: Tensor) -> dict[str, Any]:
    """Patterns and projections that nnsight saves in a trace."""
    from nnsight import NNsight  # pyright: ignore[reportMissingImports]

    own = capture(model, tokens)
    traced = NNsight(model)
    with traced.trace(tokens):
        # the block is run elsewhere: what it saves comes back
        patterns, wide = list().save(), list().save()  # noqa: C408  # pyright: ignore
        for block in traced.transformer.h:
            wide.append(block.attn.c_attn.output)
            patterns.append(block.attn.output[1])
    values = [x.chunk(3, dim=-1)[2].unflatten(-1, (12, 64)).transpose(1, 2) for x in wide]
    found = from_tensors(patterns, values)
    pairs = list(zip(found.layers, own.layers, strict=True))
    return {
        "largest differences": {
            name: largest((getattr(a, name), getattr(b, name)) for a, b in pairs)
            for name in ("pattern", "v", "z")
        }
    }


def main() -> None:
    """Write the record."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = []
    for n in LENGTHS:
        tokens = torch.randint(1000, 30_000, (1, n), generator=torch.Generator().manual_seed(n))
        for name, run in (("transformer-lens", by_lens), ("nnsight", by_nnsight)):
            with torch.no_grad():
                rows.append({"peer": f"{name} {version(name)}", "n": n, **run(gpt2(), tokens)})
            print(json.dumps(rows[-1]), flush=True)
    for family in FAMILIES:
        peer = f"transformer-lens {version('transformer-lens')}"
        rows.append({"peer": peer, "family": family, **compared(family, lens_of)})
        print(json.dumps(rows[-1]), flush=True)
    write(
        "peers",
        what="activations of capture and of peers: largest differences, CPU seconds, one thread",
        peer="TransformerLens (TransformerBridge), nnsight",
        rows=rows,
        packages=["torch", "transformers", "transformer-lens", "nnsight"],
    )


if __name__ == "__main__":
    main()
