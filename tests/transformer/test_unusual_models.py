"""Models whose inputs, embeddings or parts are unusual: right, or refused in words."""

from typing import Any

import pytest
import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer import capture, decompose, effective_attention
from tests.transformer.tiny_models import TWO, WAVES, WIDE, build, inputs_of

F32 = torch.float32
TOKENS = inputs_of("BERT", F32)["input_ids"]


def made(name: str, sizes: dict[str, Any]) -> Any:
    import transformers

    kind: Any = getattr(transformers, name)
    torch.manual_seed(0)
    return kind(kind.config_class(**sizes)).eval()


# values by integers, attention in blocks, and an encoder without a configuration
REFUSED = {
    "I-BERT": ("IBertModel", WIDE, {"input_ids": TOKENS}, None, "must be columns of a linear"),
    "CANINE": (
        "CanineModel",
        {**WIDE, "num_hash_functions": 2, "num_hash_buckets": 32, "downsampling_rate": 2,
         "local_transformer_stride": 4, "upsampling_kernel_size": 2},
        {"input_ids": torch.arange(40, 56)[None]}, None, "before the same module attends again",
    ),
    **{
        f"FSMT, {part}": (
            "FSMTModel",
            {"src_vocab_size": 60, "tgt_vocab_size": 60, "langs": ["en", "de"], **TWO},
            {"input_ids": TOKENS, "decoder_input_ids": TOKENS}, part, "is a plain FSMTEncoder",
        )
        for part in ("encoder", "decoder", "cross")
    },
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_models_of_unusual_parts_are_refused_in_words(case: str) -> None:
    name, sizes, inputs, part, message = REFUSED[case]
    if part == "encoder":
        inputs = {"input_ids": inputs["input_ids"]}
    with pytest.raises(InvalidArgumentError, match=message):
        capture(made(name, sizes), inputs, part=part)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["Wav2Vec2Model", "HubertModel", "UniSpeechModel"])
@pytest.mark.parametrize("first", [True, False], ids=["norms first", "norms last"])
def test_a_padded_sound_is_the_sound_alone(name: str, first: bool) -> None:
    norm = "layer" if first else "group"
    model = made(name, {**WAVES, "do_stable_layer_norm": first, "feat_extract_norm": norm})
    if not first:
        # a norm over all of a sound takes its padding, too, as in the model itself
        model.feature_extractor.conv_layers[0].layer_norm = torch.nn.Identity()
    sounds = torch.randn(2, 120, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 120, dtype=torch.int64)
    sounds[1, 66:], mask[1, 66:] = 0, 0
    together = capture(model, {"input_values": sounds, "attention_mask": mask}, check="full")
    alone = capture(model, {"input_values": sounds[1:, :66]}, check="full")
    # the kernels of 4 and 3 with strides of 3 and 2 leave 10 of 66 samples, and 19 of 120
    assert (together.n_tokens, alone.n_tokens) == ((19, 10), (10,))
    for one, both in zip(alone.layers, together.layers, strict=True):
        assert torch.allclose(one.pattern[0], both.pattern[1, :, :10, :10], atol=1e-5)
        assert both.seen is None
    terms = decompose(together).terms[-1][:, 1, :10]
    assert torch.allclose(decompose(alone).terms[-1][:, 0], terms, atol=1e-4)


def test_a_padded_sound_whose_tokens_the_model_doesn_t_know_is_refused() -> None:
    model: Any = made("Wav2Vec2Model", WAVES)

    def forgets(*_: Any) -> Tensor:
        return torch.ones(2, 3)

    own = model._get_feature_vector_attention_mask
    model.encoder.register_forward_pre_hook(
        lambda *_: setattr(model, "_get_feature_vector_attention_mask", forgets)
    )
    mask = torch.tensor([[1] * 120, [1] * 60 + [0] * 60])
    with pytest.raises(InvalidArgumentError, match="19 tokens are of a sound's padding"):
        capture(model, {"input_values": torch.randn(2, 120), "attention_mask": mask})
    model._get_feature_vector_attention_mask = own


def test_layers_that_see_fewer_tokens_than_come_out_have_no_terms() -> None:
    # SEW puts pairs of tokens together before its layers, and apart after them
    model = made("SEWModel", {**WAVES, "squeeze_factor": 2})
    captured = capture(model, {"input_values": torch.randn(2, 120)}, check="full")
    assert captured.n_tokens == (9, 9)
    assert effective_attention(captured).mode == "plain"
    with pytest.raises(InvalidArgumentError, match="18 in its layers, and 38 last embeddings"):
        decompose(captured)


def test_a_model_within_which_a_model_reads_embeddings_is_run_whole() -> None:
    model = build("DINOv3", F32)
    inputs = inputs_of("DINOv3", F32)
    with torch.no_grad():
        last = model(**inputs).last_hidden_state
    captured = capture(model, inputs)
    assert captured.source == "DINOv3ViTModel"
    assert (decompose(captured).embeddings[-1] - last).abs().max() <= 1e-6 * last.abs().max()
