"""Models in files of llama.cpp: read into floats, or refused in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from capacity.errors import InvalidArgumentError, MissingExtraError
from capacity.transformer import capture, decompose, load_pretrained, output_head

WORDS = ["<unk>", "<s>", "</s>", "\u2581court", "\u2581rules", "\u2581on", "\u2581cases", "\u2581a"]
D, HEADS, GROUPS, WIDE = 32, 4, 2, 64


@pytest.fixture
def needs_gguf() -> Any:
    pytest.importorskip("accelerate")
    return pytest.importorskip("gguf")


def written(gguf: Any, path: Path, *, layers: int = 2) -> dict[str, Any]:
    """Write a tiny Llama with random weights, those of one matrix in four bits; return these."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(D)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(D // HEADS)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(WORDS)
    writer.add_token_scores([0.0] * 3 + [-float(i) for i in range(len(WORDS) - 3)])
    writer.add_token_types([2, 3, 3] + [1] * (len(WORDS) - 3))
    for name, number in (("bos", 1), ("eos", 2), ("unk", 0)):
        getattr(writer, f"add_{name}_token_id")(number)
    rng = np.random.default_rng(0)
    shapes = {"token_embd": (len(WORDS), D), "output_norm": (D,), "output": (len(WORDS), D)}
    for i in range(2):
        shapes |= {
            f"blk.{i}.{name}": shape
            for name, shape in (
                ("attn_norm", (D,)), ("attn_q", (D, D)), ("attn_k", (D // 2, D)),
                ("attn_v", (D // 2, D)), ("attn_output", (D, D)), ("ffn_norm", (D,)),
                ("ffn_gate", (WIDE, D)), ("ffn_up", (WIDE, D)), ("ffn_down", (D, WIDE)),
            )
        }  # fmt: skip
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    coarse = gguf.GGMLQuantizationType.Q4_1
    for name, weight in weights.items():
        if name == "blk.1.attn_output":
            bits = gguf.quants.quantize(weight, coarse)
            weights[name] = gguf.quants.dequantize(bits, coarse)
            writer.add_tensor(f"{name}.weight", bits, raw_dtype=coarse)
        else:
            writer.add_tensor(f"{name}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def test_the_weights_are_those_of_the_file(needs_gguf: Any, tmp_path: Path) -> None:
    weights = written(needs_gguf, tmp_path / "tiny.gguf")
    model, tokenizer = load_pretrained(tmp_path, gguf_file="tiny.gguf")
    assert type(model).__name__ == "LlamaModel"
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert len(tokenizer) == len(WORDS)
    captured = capture(model, torch.tensor([[1, 3, 4, 5, 6]]), check="full")
    W_O = captured.layers[1].W_O.flatten(0, 1).T.numpy()
    np.testing.assert_array_equal(W_O, weights["blk.1.attn_output"])
    assert decompose(captured).terms.shape[0] == 3
    # what has been read into floats can be saved as such
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    again, _ = load_pretrained(tmp_path / "saved")
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name))


def test_the_head_is_kept_if_it_is_asked_for(needs_gguf: Any, tmp_path: Path) -> None:
    weights = written(needs_gguf, tmp_path / "tiny.gguf")
    model, _ = load_pretrained(tmp_path, gguf_file="tiny.gguf", head=True)
    e = torch.randn(1, 2, D, generator=torch.Generator().manual_seed(0))
    expected = e @ torch.from_numpy(weights["output"]).T
    with torch.no_grad():
        torch.testing.assert_close(output_head(model)(e), expected)


def test_a_file_that_asks_for_more_than_it_holds_is_refused(
    needs_gguf: Any, tmp_path: Path
) -> None:
    written(needs_gguf, tmp_path / "tiny.gguf", layers=400)
    with pytest.raises(InvalidArgumentError, match="must hold a model"):
        load_pretrained(tmp_path, gguf_file="tiny.gguf")


def test_what_is_no_gguf_file_of_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "capacity.transformer.activations.models.pretrained.require_packages", lambda *_: None
    )
    (tmp_path / "model").mkdir()
    (tmp_path / "outside.gguf").write_bytes(b"GGUF")
    (tmp_path / "model" / "weights.gguf").write_bytes(b"PK\3\4")
    names: dict[Any, str] = {
        "../outside.gguf": "must be the name of a file in the folder",
        3: "must be the name of a file in the folder",
        "other.gguf": "there is no other.gguf. Files that end in .gguf: weights.gguf",
        "weights.gguf": "must begin with GGUF",
    }
    for name, message in names.items():
        with pytest.raises(InvalidArgumentError, match=message):
            load_pretrained(tmp_path / "model", gguf_file=name)


def test_the_extra_that_reads_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.optional.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"gguf, accelerate; install the extra `gguf`"):
        load_pretrained(tmp_path, gguf_file="tiny.gguf")


def test_a_folder_with_such_a_file_alone_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    with pytest.raises(
        InvalidArgumentError, match=r"'tiny.gguf', which load_pretrained.*with the extra `gguf`"
    ):
        load_pretrained(tmp_path, head=True)
