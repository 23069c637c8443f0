"""Attribution, lens and scores of heads beside TransformerLens, for models of three families.

Run by benchmarks/peers.py (`make peers`). Where both compute the same thing the values must agree,
or this stops. Where they don't, the row has how far the peer's own shares are from its own sums: in
Gemma 2 a norm comes after the heads, which its attribution of heads passes by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from capacity.transformer import capture, head_scores, logit_attribution, logit_lens

# float32, and gains that TransformerLens multiplies into its weights
SAME = 1e-4
TOKEN, OTHER = 5, 7
PEER_ALONE = "the peer's heads, summed, from its own attention"


def gpt2() -> Any:
    """A GPT-2 of two layers, with norms that have means and biases."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, **_TOKENS)  # pyright: ignore
    )


def llama() -> Any:
    """A Llama of two layers, with groups of heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**_SIZES, **_TOKENS))  # pyright: ignore


def gemma2() -> Any:
    """A Gemma 2 of two layers, with norms of what sublayers write, and a cap of logits."""
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(
        **_SIZES, **_TOKENS, head_dim=8, query_pre_attn_scalar=8, final_logit_softcapping=2.0
    )  # pyright: ignore
    return Gemma2ForCausalLM(config)


_TOKENS: dict[str, Any] = {
    "vocab_size": 60, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
_SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "num_key_value_heads": 2,
}  # fmt: skip
FAMILIES: dict[str, Callable[[], Any]] = {"GPT-2": gpt2, "Llama": llama, "Gemma 2": gemma2}


def built(make: Callable[[], Any]) -> Any:
    """A model whose every weight is random, the same each time."""
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.config._attn_implementation = "eager"
    return model.eval()


def compared(family: str, lens_of: Callable[[Any], Any]) -> dict[str, float]:
    """Largest differences for one family; an error if they are more than rounding."""
    tokens = torch.randint(3, 20, (2, 12), generator=torch.Generator().manual_seed(0))
    model, bridge = built(FAMILIES[family]), lens_of(built(FAMILIES[family]))
    # gains into the weights that read them; biases of values would go from heads to b_O
    bridge.enable_compatibility_mode(fold_value_biases=False)
    _, cache = bridge.run_with_cache(tokens)
    captured = capture(model, tokens)
    found = {
        **_of_attribution(model, captured, cache),
        "logit lens, shares of tokens": _of_lens(model, captured, bridge, cache),
        "scores of heads": _of_scores(captured, tokens),
    }
    for name, difference in found.items():
        if name != PEER_ALONE and not difference <= SAME:
            raise SystemExit(f"{family}: {name} differs by {difference:.2g} from the peer's.")
    return found


def _of_attribution(model: Any, captured: Any, cache: Any) -> dict[str, float]:
    cache.compute_head_results()
    own = logit_attribution(model, captured, TOKEN, contrast=OTHER)
    by_layer = own.by_layer()

    def theirs(stack: Tensor) -> Tensor:
        return cache.logit_attrs(
            stack[:, :, -1], tokens=TOKEN, incorrect_tokens=OTHER, pos_slice=-1
        )

    stack, labels = cache.decompose_resid(return_labels=True)
    parts = dict(zip(labels, theirs(stack).detach(), strict=True))
    rows = own.terms[own.terms["component"] == "head"]
    heads = torch.tensor(rows["logit"].to_numpy()).view(2, -1).T
    of_heads = theirs(cache.stack_head_results()).detach()
    attention, feed_forward, sums = 0.0, 0.0, 0.0
    for layer in range(captured.n_layers):
        ours = by_layer.xs(layer, level="layer")
        fed = torch.tensor(ours["feed_forward"].to_numpy())
        written = [name for name in ("head", "attention_bias") if name in ours]
        of_layer = torch.tensor(ours[written].to_numpy()).sum(1)
        attention = max(attention, _apart(of_layer, parts[f"{layer}_attn_out"]))
        feed_forward = max(feed_forward, _apart(fed, parts[f"{layer}_mlp_out"]))
        summed = of_heads.view(captured.n_layers, -1, 2)[layer].sum(0)
        sums = max(sums, _apart(summed, parts[f"{layer}_attn_out"]))
    found = {"attribution of attention": attention, "attribution of feed-forwards": feed_forward}
    # b_O is no head's
    if "attention_bias" not in by_layer and sums > SAME:
        return {**found, PEER_ALONE: sums}
    return {**found, "attribution of heads": _apart(heads, of_heads)}


def _of_lens(model: Any, captured: Any, bridge: Any, cache: Any) -> float:
    """Shares of all tokens at every stage; the peer's logits lack their mean."""
    streams, labels = cache.accumulated_resid(return_labels=True, incl_mid=False)
    normed = cache.apply_ln_to_stack(streams, recompute_ln=True)
    logits = (normed @ bridge.W_U + bridge.b_U).detach()
    cap = getattr(model.config, "final_logit_softcapping", None)
    logits = logits if cap is None else cap * torch.tanh(logits / cap)
    shares = logits.log_softmax(-1).exp()
    own = logit_lens(model, captured, top=60)
    of_stage = torch.zeros(len(labels), *shares.shape[1:], dtype=torch.float64)
    columns = ("stage", "sentence", "position", "token")
    at = tuple(torch.tensor(own[name].to_numpy()) for name in columns)
    of_stage[at] = torch.tensor(own["probability"].to_numpy())
    return _apart(of_stage, shares)


def _of_scores(captured: Any, tokens: Tensor) -> float:
    from transformer_lens import head_detector as peer  # pyright: ignore[reportMissingImports]

    own = head_scores(captured, tokens, rows="all")
    off = 0.0
    for sentence, row in enumerate(tokens):
        ours = own[own["sentence"] == sentence]
        for name in ("previous_token", "duplicate_token", "induction"):
            where = getattr(peer, f"get_{name}_head_detection_pattern")(row[None])
            for layer in range(captured.n_layers):
                for head, pattern in enumerate(captured.layers[layer].pattern[sentence]):
                    theirs = peer.compute_head_attention_similarity_score(
                        pattern, detection_pattern=where, exclude_bos=False,
                        exclude_current_token=False, error_measure="mul",
                    )  # fmt: skip
                    mine = ours[(ours["layer"] == layer) & (ours["head"] == head)][name].iloc[0]
                    off = max(off, abs(float(theirs) - float(mine)))
    return off


def _apart(found: Tensor, expected: Tensor) -> float:
    return float((found.double() - expected.double()).abs().max())
