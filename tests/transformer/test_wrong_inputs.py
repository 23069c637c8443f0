"""``capacity attention`` with wrong inputs: one line, exit code 2, soon and within memory."""

import json
import os
import pickle
import re
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from capacity.checks import MAX_SIZE
from capacity.errors import InvalidArgumentError, MemoryBudgetError, StorageError
from capacity.layer import AttentionLayer, LayerConfig
from capacity.transformer import (
    EncoderClassifier,
    EncoderConfig,
    capture,
    decompose,
    load_pretrained,
    output_head,
)
from tests.cli.test_messages import refused

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "court", "said", "that"]
SIZES: dict[str, Any] = {
    "vocab_size": 9,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 8,
}


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Half a minute and 4 GB more than there are: what hangs or grows fails here."""

    def late(*_: Any) -> None:
        raise TimeoutError

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 4 * 10**9, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT, and a small Llama that takes long sentences."""
    from transformers import BertConfig, BertModel, BertTokenizer, LlamaConfig, LlamaModel

    folder = tmp_path_factory.mktemp("models")
    for name, model in (
        ("bert", BertModel(BertConfig(**SIZES, max_position_embeddings=24))),
        ("llama", LlamaModel(LlamaConfig(**SIZES, max_position_embeddings=200_000))),
    ):
        (folder / name).mkdir()
        (folder / name / "vocab.txt").write_text("\n".join(WORDS))
        BertTokenizer(str(folder / name / "vocab.txt")).save_pretrained(folder / name)
        model.save_pretrained(folder / name)
    return folder


@pytest.fixture
def model(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / "bert", tmp_path / "model"))


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("unpickled",)


def content(name: str, data: bytes) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_bytes(data)


def instead(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return spoil


def configured(**changes: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return spoil


def cut(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps([Evil(), bytes(20_000)]))


def saved_by_torch(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Evil(), "more": torch.zeros(5000)}, folder / "pytorch_model.bin")


def led_out(folder: Path) -> None:
    """An index of weights that names a pipe outside of the folder."""
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder.parent / "pipe")
    index = {"metadata": {}, "weight_map": {"embeddings.position_ids": "../pipe"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def templates(folder: Path) -> None:
    (folder / "additional_chat_templates").mkdir()
    os.mkfifo(folder / "additional_chat_templates" / "a.jinja")


PIPE = "it is a named pipe"
FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (shutil.rmtree, "it holds no config.json"),
    "a file": (lambda f: (shutil.rmtree(f), f.write_text("x")), "it holds no config.json"),
    "a pipe": (lambda f: (shutil.rmtree(f), os.mkfifo(f)), "it holds no config.json"),
    "empty": (lambda f: (shutil.rmtree(f), f.mkdir()), "it holds no config.json"),
    "config.json a pipe": (instead("config.json", os.mkfifo), f"config.json: {PIPE}"),
    "weights a pipe": (instead("model.safetensors", os.mkfifo), f"model.safetensors: {PIPE}"),
    "tokenizer a pipe": (instead("tokenizer.json", os.mkfifo), f"tokenizer.json: {PIPE}"),
    "vocabulary a pipe": (instead("vocab.txt", os.mkfifo), f"vocab.txt: {PIPE}"),
    "a file that isn't needed a pipe": (instead("notes", os.mkfifo), f"notes: {PIPE}"),
    "a template a pipe": (templates, f"a.jinja: {PIPE}"),
    "weights a device": (
        instead("model.safetensors", lambda path: path.symlink_to("/dev/zero")),
        "model.safetensors: it is a device",
    ),
    "config.json a folder": (instead("config.json", Path.mkdir), "config.json: it is a folder"),
    "a pipe behind an index": (led_out, "must name files of its folder; it names '../pipe'"),
    "config.json broken": (content("config.json", b'{"a":'), "config.json must hold JSON"),
    "config.json null": (content("config.json", b"null"), "must hold a JSON object; got None"),
    "config.json a list": (content("config.json", b"[1]"), "must hold a JSON object; got [1]"),
    "config.json deep": (content("config.json", b"[" * 100_000), "config.json must hold JSON"),
    "config.json in Latin-1": (content("config.json", b'{"\xe9": 1}'), "must hold JSON"),
    "config.json of 5,000 digits": (content("config.json", b"9" * 5000), "must hold JSON"),
    "config.json too large": (content("config.json", b" " * (2**24 + 1)), "more than 16,777,216"),
    "tokenizer.json broken": (content("tokenizer.json", b'{"a":'), "that transformers can load"),
    "tokenizer.json deep": (content("tokenizer.json", b"[" * 10**5), "that transformers can load"),
    "weights cut": (cut, "SafetensorError"),
    "weights garbage": (content("model.safetensors", b"not weights"), "must hold"),
    "weights a pickle": (content("model.safetensors", pickle.dumps(Evil())), "must hold"),
    "an evil pickle": (pickled, "that transformers can load"),
    "an evil file of torch": (saved_by_torch, "UnpicklingError"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "must hold"),
    "another family": (configured(model_type="t6"), "a model_type that transformers knows"),
    "no family": (configured(model_type=[]), "a model_type that transformers knows"),
    "10^9 layers": (configured(num_hidden_layers=10**9), "`num_hidden_layers` must be at most 512"),
    "no layers": (configured(num_hidden_layers=0), "`num_hidden_layers` must be an integer of at"),
    "an ALBERT of 10^9 groups": (
        configured(model_type="albert", num_hidden_groups=10**9),
        "`num_hidden_groups` must be at most 512",
    ),
    "a GPT-2 of 10^9 layers": (configured(model_type="gpt2", n_layer=10**9), "`n_layer` must be"),
    "10^9 labels": (configured(num_labels=10**9), "`num_labels` must be at most 65,536"),
    "10^9 tokens": (configured(vocab_size=10**9), "which asks for 12,000,002,260 numbers"),
    "10^30 tokens": (configured(vocab_size=10**30), "`vocab_size` must be at most"),
    "10^9 dimensions": (configured(hidden_size=3 * 10**8), "must hold"),
    "-1 heads": (configured(num_attention_heads=-1), "`num_attention_heads` must be an integer"),
    "10^8 positions": (configured(max_position_embeddings=10**8), "which asks for 1,200,00"),
    "10^9 of a feed-forward": (configured(intermediate_size=10**9), "which asks for"),
    "one dimension more": (configured(intermediate_size=9), "has the shape (8,), and (9,) there"),
    "sizes in words": (configured(vocab_size="x"), "Validation error for field 'vocab_size'"),
    "chunks": (configured(chunk_size_feed_forward=None), "that transformers can load"),
    "an unknown activation": (configured(hidden_act="nope"), "KeyError: 'nope'"),
}
FETCHED: dict[str, dict[str, Any]] = {
    "an attention of the hub": {"attn_implementation": "kernels-community/flash-attn"},
    "the same, as transformers holds it": {"_attn_implementation_internal": "org/kernel@v1:f"},
    "one that falls back on the hub": {"_attn_implementation": "flash_attention_2"},
    "one of a part of the model": {"attn_implementation": {"": "sdpa", "text_config": "org/k"}},
    "one in a part": {"text_config": {"attn_implementation": "org/kernel"}},
    "one in a list": {"parts": [{"attn_implementation": "org/kernel"}]},
    "experts of the hub": {"experts_implementation": "kernels-community/sonic-moe"},
    "code of another repository": {"auto_map": {"AutoModel": "org/model--modeling.Model"}},
    "a tokenizer's code": {"auto_map": {"AutoTokenizer": ["org/model--tokenization.T", None]}},
    "kernels of layers": {"kernel_config": {"RMSNorm": "org/kernel:RMSNorm"}},
    "kernels": {"use_kernels": True},
    "quantized weights": {"quantization_config": {"quant_method": "fp8"}},
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_without_a_sound_model_is_refused(
    case: str, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    spoil, message = FOLDERS[case]
    spoil(model)
    err = refused(capsys, "attention", str(model), "--text", "the court")
    assert message in err
    assert str(model) in err
    assert not (model.parent / "unpickled").exists()


@pytest.mark.parametrize("case", FETCHED)
def test_a_config_that_would_have_a_program_fetched_is_refused_before_transformers_sees_it(
    case: str, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoConfig, AutoTokenizer

    def seen(*_: Any, **__: Any) -> None:
        raise AssertionError("transformers was given the folder")

    monkeypatch.setattr(AutoConfig, "from_pretrained", seen)
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", seen)
    names = ["config.json", *["tokenizer_config.json"] * ("tokenizer" in case)]
    for name in names:
        path = model / name
        before = path.read_text()
        path.write_text(json.dumps({**json.loads(before), **FETCHED[case]}))
        err = refused(capsys, "attention", str(model), "--text", "the court")
        path.write_text(before)
        assert f"{path} must need no code but that of transformers" in err
        assert "Nothing is fetched" in err


def test_what_transformers_has_itself_and_code_that_is_not_run_are_no_harm(model: Path) -> None:
    configured(
        attn_implementation="sdpa",
        experts_implementation=None,
        _attn_implementation_autoset=True,
        auto_map={"AutoModel": "modeling_of_the_folder.Model"},
        use_kernels=False,
        conv_kernel=[3, 3],
    )(model)
    (model / "modeling_of_the_folder.py").write_text("raise SystemExit(9)")
    loaded, _ = load_pretrained(model)
    assert type(loaded).__name__ == "BertModel"


ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "a text that is too long": (["--text", "the " * 30], "at most 24 tokens"),
    "100,000 tokens": (["--text", "the " * 100_000], "at most 24 tokens"),
    "half a character": (["--text", "the \udcff court"], r"must be Unicode; it holds '\udcff'"),
    "no such layer": (["--layer", "2", "--head", "0"], "--layer must be from 0 to 1"),
    "layer -1": (["--layer", "-1", "--head", "0"], "--layer must be from 0 to 1"),
    "layer 10^30": (["--layer", str(10**30), "--head", "0"], "--layer must be from 0 to 1"),
    "head 10^30": (["--layer", "1", "--head", str(10**30)], "--head from 0 to 2"),
    "head -1": (["--layer", "1", "--head", "-1"], "--head from 0 to 2"),
    "a layer without a head": (["--layer", "1"], "both together; got 1 and None"),
    "another suffix": (["--out", "{tmp}/a.gif"], "must end in .png, .svg or .pdf"),
    "no suffix": (["--out", "{tmp}"], "must end in .png, .svg or .pdf"),
    "a pipe": (["--out", "{tmp}/pipe.png"], "pipe.png: can't be written, for it is a named pipe"),
    "below a file": (["--out", "{tmp}/file/a.png"], "a.png: can't be written"),
    "causal": (["--mode", "causal"], "Causal mode needs a causal model"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_do_not_suit_the_model_are_refused(
    case: str, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, message = ARGUMENTS[case]
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "file").write_text("mine")
    if "--layer" in arguments:
        arguments = [*arguments, "--out", "{tmp}/figure.png"]
    filled = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    text = [] if "--text" in filled else ["--text", "the court"]
    assert message in refused(capsys, "attention", str(models / "bert"), *text, *filled)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe.png"]


@pytest.mark.parametrize("arguments", [["--out", "a.gif"], ["--out", "pipe.png"], ["--head", "1"]])
def test_where_to_draw_is_looked_at_before_the_model(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.png")
    err = refused(capsys, "attention", "no model", "--text", "the court", *arguments)
    assert "config.json" not in err


def test_attention_beyond_the_budget_is_refused_before_it_is_computed(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # with [CLS] and [SEP]: 4 bytes x 2 layers x 3 heads x 100,002^2
    err = refused(capsys, "attention", str(models / "llama"), "--text", "the " * 100_000)
    assert "1 x 100,002 tokens in 2 layers of 3 heads would take 240,009,600,096." in err


def test_no_text_is_refused(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "must hold a word" in refused(capsys, "attention", str(models / "bert"), "--text", "")


@pytest.mark.parametrize("text", ["the\0court the"])
def test_odd_texts_are_texts(text: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from capacity.cli import main

    with pytest.raises(SystemExit) as end:
        main(["attention", str(models / "bert"), "--text", text])
    assert end.value.code == 0
    assert "2 layers of 3 heads" in capsys.readouterr().out


def test_a_text_without_a_known_word_is_refused(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = refused(capsys, "attention", str(models / "bert"), "--text", "CCO.c1ccccc1 >> CC(=O)O")
    assert re.search(r"all its \d+ words are \[UNK\]", err)


def test_a_tokenizer_of_another_model_is_refused(model: Path) -> None:
    # vocab.txt isn't what an ALBERT's tokenizer reads: it comes back with five tokens
    from transformers import AlbertConfig, AlbertModel

    sizes = {**SIZES, "vocab_size": 591, "embedding_size": 4}
    AlbertModel(AlbertConfig(**sizes)).save_pretrained(model)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).unlink(missing_ok=True)
    (model / "vocab.txt").write_text("\n".join(f"word{i}" for i in range(591)))
    with pytest.raises(InvalidArgumentError, match=r"has 591 tokens; AlbertTokenizer has \d\."):
        load_pretrained(model)


def test_a_head_is_kept_if_it_is_asked_for(model: Path) -> None:
    from transformers import BertConfig, BertForMaskedLM

    with pytest.raises(InvalidArgumentError, match=r"its config\.json has 'BertModel'"):
        load_pretrained(model, head=True)
    BertForMaskedLM(BertConfig(**SIZES)).save_pretrained(model)
    loaded, _ = load_pretrained(model, head=True)
    tokens = torch.tensor([[1, 2, 3]])
    last = decompose(capture(loaded, tokens)).embeddings[-1]
    with torch.no_grad():
        assert torch.allclose(output_head(loaded)(last), loaded(tokens).logits, atol=1e-5)
    assert type(load_pretrained(model)[0]).__name__ == "BertModel"


def test_own_models_have_the_budget_too() -> None:
    tokens = torch.zeros(1, 30_000, dtype=torch.long)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), 4)
    encoder = EncoderClassifier(EncoderConfig(4, 2, 30_000, 2, 1, 1, 2, "add"))
    for model in (layer, encoder):
        with pytest.raises(MemoryBudgetError, match=r"would take 3,600,000,000\."):
            capture(model, tokens)


def test_a_folder_is_looked_at_by_the_library_too(model: Path) -> None:
    (model / "vocab.txt").unlink()
    os.mkfifo(model / "vocab.txt")
    with pytest.raises(StorageError, match=r"vocab\.txt: it is a named pipe"):
        load_pretrained(model)


@pytest.mark.parametrize(
    "sizes",
    [
        {"d_vocab": 2**31}, {"d_model": MAX_SIZE + 1}, {"n_positions": 10**9}, {"n_heads": 2**70},
        {"d_feed_forward": 10**400}, {"d_vocab": 10**9}, {"d_model": MAX_SIZE, "n_heads": 1},
    ],
    ids=lambda sizes: next(iter(sizes)),
)  # fmt: skip
def test_encoders_of_impossible_sizes_are_refused(sizes: dict[str, int]) -> None:
    given = {"d_vocab": 10, "n_classes": 2, "n_positions": 8, "d_model": 4, "n_heads": 2,
             "d_head_qk": 2, "d_feed_forward": 3, **sizes}  # fmt: skip
    with pytest.raises((InvalidArgumentError, MemoryBudgetError), match=r"must (be|take) at most"):
        EncoderClassifier(EncoderConfig(**given, combine="concatenate"))
