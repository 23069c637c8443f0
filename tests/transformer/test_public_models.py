"""Models that people load: narrow embeddings, decoders alone, weights that config.json lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    capture,
    decompose,
    effective_attention,
    head_importance,
    load_pretrained,
)
from tests.transformer.tiny_models import FAMILIES, TEXT, TWO, build, inputs_of
from tools.families import DOCUMENT, Row, page, rows_of, swept, without_sizes
from tools.small_models import model_types

F32 = torch.float32
SOUND = {"num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64,
         "decoder_start_token_id": 0}  # fmt: skip
# decoders whose attention goes through the interface; whatever stands around them hands inputs on
POSITIONS = {"max_position_embeddings": 64}
ALONE: dict[str, dict[str, Any]] = {
    "BartForCausalLM": POSITIONS, "MBartForCausalLM": POSITIONS, "PegasusForCausalLM": POSITIONS,
    "MarianForCausalLM": POSITIONS, "BlenderbotForCausalLM": POSITIONS,
    "BlenderbotSmallForCausalLM": POSITIONS, "PLBartForCausalLM": POSITIONS,
    "BigBirdPegasusForCausalLM": POSITIONS, "WhisperForCausalLM": SOUND,
    "MvpForCausalLM": POSITIONS,
}  # fmt: skip


def model_of(name: str, **sizes: Any) -> Any:
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, name)
    return kind(kind.config_class(**sizes)).eval()


def saved(folder: Path, model: Any, **changes: Any) -> Path:
    """Save a model and a tokenizer of 60 words, then change its config.json."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "<unk>"])}
    words |= {f"w{i}": i for i in range(4, 60)}
    rule = Tokenizer(models.WordLevel(words, "<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=rule, unk_token="<unk>").save_pretrained(folder)
    model.save_pretrained(folder)
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    config.pop("layer_types", None)
    path.write_text(json.dumps(config))
    return folder


def test_a_stream_of_two_widths_has_no_terms_and_says_so() -> None:
    # as OPT-350m: embeddings of 16 features, layers of 32, and 16 again
    model = build("OPT", F32, word_embed_proj_dim=16, do_layer_norm_before=False)
    captured = capture(model, inputs_of("OPT", F32))
    for analysis in (decompose, head_importance):
        with pytest.raises(InvalidArgumentError, match=r"one width.*projected to 16 features"):
            analysis(captured)
    # what doesn't need the stream is there
    assert effective_attention(captured).mode == "causal"


def pattern_of(model: Any, inputs: dict[str, Tensor]) -> Any:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model(**inputs, output_attentions=True)


@pytest.mark.parametrize("name", ALONE)
def test_a_decoder_alone_is_captured_as_it_runs_and_as_it_is_saved(
    name: str, tmp_path: Path
) -> None:
    model = model_of(name, **TWO, **ALONE[name])
    tokens = torch.arange(4, 15)[None]
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    captured = capture(model, inputs, check="full")
    told = pattern_of(model, inputs)
    assert captured.causal
    assert len(captured.layers) == len(told.attentions) == 2
    for layer, pattern in zip(captured.layers, told.attentions, strict=True):
        assert torch.allclose(layer.pattern, pattern, atol=1e-6)
    # the terms sum to its last embeddings, which decompose checks
    assert decompose(captured).terms.shape[:2] == (3, 4)
    again, tokenizer = load_pretrained(saved(tmp_path, model))
    assert len(tokenizer) == 60
    for layer, kept in zip(capture(again, inputs).layers, captured.layers, strict=True):
        assert torch.equal(layer.pattern, kept.pattern)
    # and with its head
    head, _ = load_pretrained(tmp_path, head=True)
    assert type(head).__name__ == name


def test_a_decoder_whose_attention_is_of_another_kind_says_so() -> None:
    sizes = {
        "hidden_size": 32, "num_decoder_layers": 2, "num_decoder_attention_heads": 4,
        "decoder_ffn_dim": 48, **TEXT,
    }  # fmt: skip
    model = model_of("ProphetNetForCausalLM", **sizes)
    with pytest.raises(InvalidArgumentError, match="none of ProphetNetForCausalLM does"):
        capture(model, {"input_ids": torch.arange(4, 15)[None]})


def test_a_module_without_names_of_inputs_is_told_so() -> None:
    model = build("GPT-2", F32)

    def forward(*args: Any, **kwargs: Any) -> Any:
        return type(model).forward(model, *args, **kwargs)

    model.forward = forward
    with pytest.raises(InvalidArgumentError, match="must name its inputs, such as input_ids"):
        capture(model, inputs_of("GPT-2", F32))


# of each a config.json that asks for one layer of two, by the family's own name
FEWER = {
    "BERT": "num_hidden_layers", "DistilBERT": "n_layers", "GPT-2": "n_layer",
    "Llama": "num_hidden_layers", "GPT-OSS": "num_hidden_layers", "ModernBERT": "num_hidden_layers",
    "T5": "num_layers", "BART": "encoder_layers", "Mixtral": "num_hidden_layers",
}  # fmt: skip


@pytest.mark.parametrize("name", FEWER)
def test_weights_of_a_layer_that_the_configuration_lacks_are_refused(
    name: str, tmp_path: Path
) -> None:
    model = build(name, F32)
    assert type(load_pretrained(saved(tmp_path, model))[0]) is type(model)
    refused = r"asks for 1 of \S+; they have \S+\.1, too"
    if name == "ModernBERT":
        # transformers 5.15 and 5.16 refuse its configuration with as few layers
        refused += "|must hold a model"
    with pytest.raises(InvalidArgumentError, match=refused):
        load_pretrained(saved(tmp_path, model, **{FEWER[name]: 1}))


@pytest.mark.parametrize(
    ("kind", "fewer", "head"),
    [("BertForMaskedLM", "num_hidden_layers", True), ("BartForCausalLM", "decoder_layers", False)],
)
def test_so_are_those_of_a_model_with_a_head_and_of_a_decoder_alone(
    kind: str, fewer: str, head: bool, tmp_path: Path
) -> None:
    of = "BERT" if kind.startswith("Bert") else "BART"
    config = build(of, F32).config
    if of == "BART":
        config.is_encoder_decoder = False
    model = getattr(transformers, kind)(config)
    load_pretrained(saved(tmp_path, model), head=head)
    with pytest.raises(InvalidArgumentError, match=r"asks for 1 of \S+; they have \S+\.1, too"):
        load_pretrained(saved(tmp_path, model, **{fewer: 1}), head=head)


def test_a_decoder_may_have_more_layers_than_its_encoder_would(tmp_path: Path) -> None:
    config = build("BART", F32).config
    config.is_encoder_decoder, config.encoder_layers, config.decoder_layers = False, 1, 2
    model = transformers.BartForCausalLM(config)
    assert load_pretrained(saved(tmp_path, model))[0].config.decoder_layers == 2


def test_a_bias_that_the_configuration_lacks_is_refused(tmp_path: Path) -> None:
    model = build("Llama", F32, attention_bias=True)
    with pytest.raises(InvalidArgumentError, match=r"no place for layers\.0\.self_attn\..*bias"):
        load_pretrained(saved(tmp_path, model, attention_bias=False))


@pytest.mark.parametrize(
    ("name", "of"),
    [("LlamaForCausalLM", "Llama"), ("BertForMaskedLM", "BERT"), ("BertForPreTraining", "BERT"),
     ("BertForSequenceClassification", "BERT"), ("GPT2LMHeadModel", "GPT-2"),
     ("T5ForConditionalGeneration", "T5"), ("BartForConditionalGeneration", "BART")],
)  # fmt: skip
def test_a_head_is_rightly_unused(name: str, of: str, tmp_path: Path) -> None:
    loaded, _ = load_pretrained(saved(tmp_path, model_of(name, **FAMILIES[of].sizes)))
    assert type(loaded).__name__ == FAMILIES[of].model


PAGE = DOCUMENT.read_text(encoding="utf-8")
# through the interface, in own code, with a gate, a sink and mixers, of two stacks, and refused
SOME = ("bert", "gpt2", "gemma2", "gpt_oss", "qwen3_next", "lfm2", "t5", "vit",
        "bloom", "deberta-v2", "falcon", "gptj", "fnet", "bitnet")  # fmt: skip


@pytest.mark.parametrize("model_type", SOME)
def test_a_model_type_is_what_its_line_states(model_type: str) -> None:
    for row in rows_of(model_type):
        # numbers that are too large, and other exceptions, would have another outcome
        assert row.outcome in ("captured", "refused"), row.words
        if row.outcome == "captured":
            assert without_sizes(row.line()) in without_sizes(PAGE)
        if row.words:
            (line,) = (one for one in PAGE.splitlines() if one.endswith(f": {row.words}"))
            assert model_type in line.partition(":")[0]


@pytest.mark.slow
@pytest.mark.full
def test_the_page_is_what_a_sweep_writes() -> None:
    rows = [row for _, some in swept(model_types()) for row in some]
    assert not [row for row in rows if row.outcome in ("wrong", "error")]
    assert without_sizes(page(rows)) == without_sizes(PAGE)


def test_a_wrong_number_is_no_capture() -> None:
    # the page lists captured and refused types alone, so that a wrong one is missing from it
    wrong = Row("bert", "wrong", patterns=0.5, words="patterns differ")
    assert wrong.line() not in page([wrong])
