"""Shares of heads, feed-forwards and tokens of origin sum to the model's own logit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.transformer import capture, head_terms, logit_attribution
from tests.transformer.tiny_models import FAMILIES, build, inputs_of

F64 = torch.float64
LM = "LMHeadModel"
# classes with a head that is affine but for a cap, and what their sizes are to be
DECODERS: dict[str, dict[str, Any]] = {
    name: {}
    for name in (
        "GPT-2", "GPT-NeoX (Pythia)", "OPT", "Phi", "Phi-3", "Llama", "Mistral", "Mixtral",
        "Qwen2", "Qwen3", "Gemma", "Gemma 2", "Gemma 3", "OLMo-2", "SmolLM3", "Granite",
        "StarCoder2", "GPT-OSS", "Llama 4", "Gemma 4", "Doge", "MiniMax", "Qwen3-Next", "Qwen3.5",
        "AFMoE", "Laguna", "Granite SWA", "Jamba", "LFM2", "Nemotron-H", "Granite 4", "Falcon-H1",
        "OLMo hybrid", "LongCat-Flash",
    )
}  # fmt: skip
DECODERS["Gemma 2"] = {"final_logit_softcapping": 2.0}
DECODERS["Granite"] = {"logits_scaling": 3.0}
DECODERS["Falcon-H1"] = {"lm_head_multiplier": 0.3}


# the others take a second each, for the import of their code
QUICK = {"GPT-2", "Gemma 2", "Granite", "Jamba"}
FOR_EACH = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DECODERS
]


def lm(name: str, dtype: torch.dtype = F64) -> Any:
    return build(name, dtype, head=LM if name == "GPT-2" else "ForCausalLM", **DECODERS[name])


def inverse_of_cap(logits: Tensor, cap: float | None) -> Tensor:
    return logits if cap is None else cap * torch.atanh(logits / cap)


@pytest.mark.parametrize("name", FOR_EACH)
def test_shares_sum_to_the_models_own_logit(name: str) -> None:
    model, inputs = lm(name), inputs_of(name, F64)
    inputs["attention_mask"] = torch.tensor([[1] * 9, [1] * 6 + [0] * 3])
    found = logit_attribution(model, capture(model, inputs), [5, 8], contrast=[7, 3])
    with torch.no_grad():
        logits = model(**inputs).logits[[0, 1], [8, 5]]
    logits = inverse_of_cap(logits.double(), found.softcap)
    expected = logits[[0, 1], [5, 8]] - logits[[0, 1], [7, 3]]
    assert found.positions.tolist() == [8, 5]
    summed = torch.tensor(found.terms.groupby("sentence")["logit"].sum().to_numpy())
    size = torch.tensor(
        found.terms["logit"].abs().groupby(found.terms["sentence"]).sum().to_numpy()
    )
    # norms of most families compute in float32, whatever their model does
    assert ((summed - expected).abs() <= 2e-6 * size).all()
    assert torch.allclose(found.logits.double(), expected, atol=1e-6)
    assert found.softcap == DECODERS[name].get("final_logit_softcapping")
    by_layer = found.by_layer()
    assert torch.allclose(torch.tensor(by_layer.groupby("sentence").sum().sum(axis=1).to_numpy()),
                          summed)  # fmt: skip


@torch.no_grad()
def by_hand(model: Any, tokens: Tensor) -> dict[tuple[str, int | None, int | None], Tensor]:
    """Last position's shares in the logits of all tokens, of a GPT-2, as its definition has them.

    The last norm is a linear map once its scale is fixed: each part less its own mean, times the
    gain over the standard deviation of their sum.
    """
    kept: dict[tuple[str, int | None, int | None], Tensor] = {}
    body = model.transformer
    hooks = [
        body.drop.register_forward_hook(
            lambda _, __, x: kept.update({("embedding", None, None): x})
        )
    ]
    streams: list[Tensor] = []
    hooks.append(body.ln_f.register_forward_pre_hook(lambda _, x: streams.append(x[0])))
    for i, block in enumerate(body.h):

        def heads(_: Any, args: Any, i: int = i, block: Any = block) -> None:
            z = args[0].unflatten(-1, (4, 8))
            for h in range(4):
                W = block.attn.c_proj.weight[8 * h : 8 * h + 8]
                kept["head", i, h] = z[:, :, h] @ W
            kept["attention_bias", i, None] = block.attn.c_proj.bias.expand_as(kept["head", i, 0])

        hooks.append(block.attn.c_proj.register_forward_pre_hook(heads))
        hooks.append(block.mlp.register_forward_hook(
            lambda _, __, x, i=i: kept.update({("feed_forward", i, None): x})))  # fmt: skip
    model(tokens)
    for hook in hooks:
        hook.remove()
    norm, W_U = body.ln_f, model.lm_head.weight.T
    scale = (streams[0].var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
    shares = {
        key: (((x - x.mean(-1, keepdim=True)) / scale * norm.weight) @ W_U)[:, -1]
        for key, x in kept.items()
    }
    shares["bias", 1, None] = (norm.bias @ W_U).expand(len(tokens), -1)
    return shares


def test_each_share_is_what_a_part_writes_through_the_last_norm_at_its_scale() -> None:
    model, tokens = lm("GPT-2"), inputs_of("GPT-2", F64)["input_ids"]
    captured = capture(model, tokens)
    expected = by_hand(model, tokens)
    found = logit_attribution(model, captured, [5, 8], contrast=7).terms
    assert len(found) == 2 * len(expected)
    for sentence, token in enumerate((5, 8)):
        rows = found[found["sentence"] == sentence]
        for row in rows.to_dict("records"):
            layer, head = (None if pd.isna(row[k]) else row[k] for k in ("layer", "head"))
            share = expected[row["component"], layer, head][sentence]
            assert row["logit"] == pytest.approx(float(share[token] - share[7]), abs=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "GPT-OSS",
        *(pytest.param(name, marks=pytest.mark.slow)
          for name in ("Llama", "Gemma 2", "Qwen3-Next", "Granite SWA")),
    ],
)  # fmt: skip
def test_a_heads_share_is_that_of_its_term_and_of_the_values_it_weighs(name: str) -> None:
    # without means and value biases a head's term is what it writes times later gains over scales
    model, inputs = lm(name), inputs_of(name, F64)
    captured = capture(model, inputs)
    found = logit_attribution(model, captured, 5)
    terms = head_terms(captured)[..., -1, :]
    factor = DECODERS[name].get("logits_scaling", 1.0)
    expected = terms @ model.get_output_embeddings().weight[5] / factor
    heads = found.terms[found.terms["component"] == "head"]
    shares = heads.groupby("sentence")["logit"].apply(list).tolist()
    # b_V is no part of terms: only Qwen2's kin among these has one
    assert torch.allclose(torch.tensor(shares).double(), expected.flatten(0, 1).T.detach(),
                          atol=1e-6)  # fmt: skip
    for at, (layer, origin) in enumerate(zip(captured.layers, found.by_origin, strict=True)):
        # what isn't seen has no part, and neither has a sink
        assert not origin[layer.pattern[:, :, -1] == 0].any()
        assert torch.allclose(origin.sum(-1), expected[at].T.detach(), atol=1e-6)
    one = found.by_token([f"t{i}" for i in range(9)], sentence=1)
    assert one.columns.tolist()[:2] == ["t0", "t1"]
    assert one.index.names == ["layer", "head"]
    number = captured.layer_numbers[-1]
    assert one.xs((number, 2)).to_numpy().tolist() == found.by_origin[-1][1, 2].tolist()


def test_a_value_moved_to_another_token_moves_its_share() -> None:
    # the last token's attention, head 1 of layer 1, is set by hand: uniform over tokens 0 and 3
    model, tokens = lm("GPT-2"), inputs_of("GPT-2", F64)["input_ids"][:1]
    captured = capture(model, tokens)
    found = logit_attribution(model, captured, 5).by_origin[1][0, 1]
    layer = captured.layers[1]
    values = layer.v[0, 1] @ layer.W_O[1]
    norm = model.transformer.ln_f
    gain = norm.weight / captured.steps[-1].scale[0, -1]  # type: ignore[union-attr]
    centred = values - values.mean(-1, keepdim=True)
    expected = layer.pattern[0, 1, -1] * (centred * gain @ model.lm_head.weight[5])
    assert torch.allclose(found, expected.detach())


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_no_share(side: str) -> None:
    model, tokens = lm("Llama"), inputs_of("Llama", F64)["input_ids"][:1]
    alone = logit_attribution(model, capture(model, tokens), 5, contrast=7)
    pad, mask = torch.ones(1, 3).long(), torch.ones_like(tokens)
    parts = {"left": (pad, tokens), "right": (tokens, pad)}[side]
    masks = {"left": (0 * pad, mask), "right": (mask, 0 * pad)}[side]
    both = {"input_ids": torch.cat(parts, 1), "attention_mask": torch.cat(masks, 1)}
    padded = logit_attribution(model, capture(model, both), 5, contrast=7)
    assert padded.positions.tolist() == [11 if side == "left" else 8]
    difference = (padded.terms["logit"] - alone.terms["logit"]).abs().max()
    assert difference < 1e-6
    real = slice(3, None) if side == "left" else slice(9)
    assert torch.allclose(padded.by_origin[0][..., real], alone.by_origin[0], atol=1e-6)


def test_any_position_and_one_sentence_of_many() -> None:
    model, inputs = lm("Gemma 2"), inputs_of("Gemma 2", F64)
    found = logit_attribution(model, capture(model, inputs), 5, positions=[0, 4])
    logits = inverse_of_cap(model(**inputs).logits, 2.0)[[0, 1], [0, 4], 5]
    assert torch.allclose(found.logits, logits.detach(), atol=1e-6)
    # the first token attends to itself alone
    assert not found.by_origin[0][0, :, 1:].any()


def test_tokens_and_positions_that_there_are_not_are_refused() -> None:
    model, inputs = lm("Llama"), inputs_of("Llama", F64)
    inputs["attention_mask"] = torch.tensor([[1] * 9, [1] * 6 + [0] * 3])
    captured = capture(model, inputs)
    cases: list[tuple[Any, str]] = [
        ({"tokens": 60}, "`tokens` must be at most 59; got 60"),
        ({"tokens": -1}, "`tokens` must be an integer of at least 0; got -1"),
        ({"tokens": "Rome"}, "`tokens` must be an integer"), ({"tokens": 2.5}, "`tokens`"),
        ({"tokens": [1, 2, 3]}, "one for each of 2 sentences; got 3"),
        ({"tokens": torch.tensor([[1, 2]])}, "one for each of 2 sentences; got 1"),
        ({"contrast": 10**9}, "`contrast` must be at most"), ({"positions": 9}, "`positions`"),
        ({"positions": [0, 8]}, "8 is padding in sentence 1"),
    ]  # fmt: skip
    for change, said in cases:
        given = {"tokens": 5, **change}
        with pytest.raises(CapacityError, match=said):
            logit_attribution(model, captured, given.pop("tokens"), **given)


def test_models_without_an_affine_head_are_refused_with_the_reason() -> None:
    inputs = inputs_of("Llama", F64)
    body = build("Llama", F64)
    with pytest.raises(InvalidArgumentError, match=r"LM head .*Load it with its head"):
        logit_attribution(body, capture(body, inputs), 5)
    for name in ("BERT", "DistilBERT"):
        masked = build(name, F64, head="ForMaskedLM")
        with pytest.raises(InvalidArgumentError, match="layer of its own before the output"):
            logit_attribution(masked, capture(masked, inputs), 5)
    bart = build("BART", F64, head="ForConditionalGeneration")
    encoder = capture(bart, inputs_of("BART", F64, "encoder"), part="encoder")
    with pytest.raises(InvalidArgumentError, match="LM head alone after one stack"):
        logit_attribution(bart, encoder, 5)


def test_another_models_activations_are_refused() -> None:
    model, tokens = lm("Llama"), inputs_of("Llama", F64)["input_ids"]
    captured = capture(model, tokens)
    some = capture(model, tokens, layers=[1])
    with pytest.raises(InvalidArgumentError, match="residual stream"):
        logit_attribution(model, some, 5)
    with pytest.raises(InvalidArgumentError, match="a GPT2LMHeadModel; got those of a Llama"):
        logit_attribution(lm("GPT-2"), captured, 5)
    # the body's activations are the model's
    body = logit_attribution(model, capture(model.base_model, tokens), 5)
    assert body.terms.equals(logit_attribution(model, captured, 5).terms)
    assert set(DECODERS) <= set(FAMILIES)
