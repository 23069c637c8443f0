"""A layer in a folder is whole or refused, whatever the file holds and whenever a writer dies."""

import json
import multiprocessing
import os
import pickle
import random
import resource
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import capacity.layer.model.attention_layer
from capacity.errors import CapacityError, InvalidArgumentError, LeftoverWarning, StorageError
from capacity.layer import AttentionLayer, LayerConfig
from capacity.layer.model.storage import WEIGHTS

CONFIG = LayerConfig(4, 2, 2, 3)
FORK = multiprocessing.get_context("fork")


def equal(a: AttentionLayer, b: AttentionLayer) -> bool:
    x, y = a.state_dict(), b.state_dict()
    return (
        a.config == b.config
        and x.keys() == y.keys()
        and all(torch.equal(x[name], y[name]) for name in x)
    )


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and tensors of a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def write(path: Path, header: bytes | dict[str, Any], tensors: bytes) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + tensors)


def configured(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change the configuration that a file holds."""

    def spoil(path: Path) -> None:
        header, tensors = parts(path)
        sizes = json.loads(header["__metadata__"]["config"])
        changed = change(sizes)
        text = changed if isinstance(changed, str) else json.dumps(changed)
        write(path, {**header, "__metadata__": {"config": text}}, tensors)

    return spoil


def stated(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change the header in place, or replace it."""

    def spoil(path: Path) -> None:
        header, tensors = parts(path)
        write(path, change(header) or header, tensors)

    return spoil


def weights(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    """Change the weights and keep the configuration."""

    def spoil(path: Path) -> None:
        tensors = safetensors.torch.load(path.read_bytes())
        change(tensors)
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        metadata = parts(path)[0]["__metadata__"]
        path.write_bytes(safetensors.torch.save(contiguous, metadata=metadata))

    return spoil


def filled(value: float) -> Callable[[dict[str, torch.Tensor]], Any]:
    return lambda w: w["W_K"].view(-1)[3].fill_(value)


DEEP = "[" * 20_000
SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no configuration": (stated(lambda h: h.pop("__metadata__") and h), "holds no configuration"),
    "metadata a list": (stated(lambda h: h.update(__metadata__=[1])), "holds no configuration"),
    "null": (configured(lambda _: None), "must be a JSON object; got None"),
    "a string": (configured(lambda _: '"x"'), "must be a JSON object; got 'x'"),
    "a number": (configured(lambda _: 3), "must be a JSON object; got 3"),
    "a list": (configured(lambda _: [1, 2]), "must be a JSON object"),
    "deep lists": (configured(lambda _: DEEP), "its configuration is broken JSON"),
    "a deep header": (stated(lambda _: DEEP.encode()), "its header is broken JSON"),
    "a long header": (stated(lambda _: DEEP.encode() * 10), "begin with the header"),
    "a dtype that is a list": (stated(lambda h: h["W_E"].update(dtype=[])), "they are"),
    "not UTF-8": (stated(lambda _: b'{"W_E": "\xff"}'), "its header is broken JSON"),
    "UTF-16": (stated(lambda h: json.dumps(h).encode("utf-16")), "its header is broken JSON"),
    "a header that is a list": (stated(lambda _: b"[]"), "its header must be a JSON object"),
    "a repeated key": (
        stated(lambda h: json.dumps(h).replace('{"__meta', '{"W_E": 1, "__meta', 1).encode()),
        "its header has a key twice",
    ),
    "an unknown key": (configured(lambda c: {**c, "d_ff": 3}), "must have the keys"),
    "a missing key": (configured(lambda c: {k: c[k] for k in c if k != "bias"}), "must have the"),
    "a bool for a size": (configured(lambda c: {**c, "n_heads": True}), "`n_heads` must be an int"),
    "a fraction": (configured(lambda c: {**c, "n_heads": 2.0}), "`n_heads` must be an integer"),
    "10^12 tokens": (configured(lambda c: {**c, "d_vocab": 10**12}), "`d_vocab` must be at most"),
    "10^8 tokens": (configured(lambda c: {**c, "d_vocab": 10**8}), "W_E must have the shape"),
    "d_model of 10^9": (configured(lambda c: {**c, "d_model": 10**9}), "`d_model` must be at most"),
    "2 * 10^8 heads": (
        configured(lambda c: {**c, "n_heads": 2 * 10**8}),
        "`n_heads` must be at mo",
    ),
    "10^6 heads": (configured(lambda c: {**c, "n_heads": 10**6}), "W_Q must have the shape"),
    "5,000 digits": (
        configured(lambda c: json.dumps(c).replace('"d_vocab": 9', '"d_vocab": ' + "9" * 5000)),
        "its configuration is broken JSON",
    ),
    "a missing tensor": (weights(lambda w: w.pop("W_U")), "lacks 'W_U'"),
    "a tensor too many": (weights(lambda w: w.update(b_O=torch.zeros(4))), "also has 'b_O'"),
    "transposed": (
        weights(lambda w: w.update(W_K=w["W_K"].transpose(1, 2))),
        r"W_K must have the shape \[2, 2, 4\]; it has \[2, 4, 2\]",
    ),
    "a shape that isn't one": (
        stated(lambda h: h["W_E"].update(shape="x")),
        "W_E must have the sh",
    ),
    "a tensor that isn't one": (stated(lambda h: h.update(W_E=[])), "W_E must have the shape"),
    "float16": (weights(lambda w: w.update({k: x.half() for k, x in w.items()})), "'F16'"),
    "complex": (weights(lambda w: w.update({k: x * 1j for k, x in w.items()})), "float32"),
    "integers": (weights(lambda w: w.update({k: x.long() for k, x in w.items()})), "'I64'"),
    "mixed": (weights(lambda w: w.update(W_O=w["W_O"].double())), "'F32, F64'"),
    "a dtype that isn't one": (stated(lambda h: h["W_E"].update(dtype="F31")), "F31"),
    "NaN": (weights(filled(float("nan"))), "W_K holds NaN or infinities"),
    "infinity": (weights(filled(float("inf"))), "W_K holds NaN or infinities"),
    "offsets that overlap": (
        stated(lambda h: h["W_K"].update(data_offsets=h["W_Q"]["data_offsets"])),
        "must hold a layer",
    ),
    "offsets beyond the end": (
        stated(lambda h: h["W_K"].update(data_offsets=[2**62, 2**63])),
        "must hold a layer",
    ),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps({"W_E": 1})), "begin with the header"),
    "empty": (lambda path: path.write_bytes(b""), "begin with the header"),
    "one more byte": (lambda path: path.write_bytes(path.read_bytes() + b"x"), "must hold a layer"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_file_is_refused_in_a_line_that_names_it(case: str, tmp_path: Path) -> None:
    spoil, message = SPOILT[case]
    AttentionLayer(CONFIG, 9).save(tmp_path)
    spoil(tmp_path / WEIGHTS)
    with pytest.raises(InvalidArgumentError, match=message) as refusal:
        AttentionLayer.load(tmp_path)
    text = str(refusal.value)
    assert str(tmp_path / WEIGHTS) in text
    assert "\n" not in text
    assert len(text) < len(str(tmp_path)) + 500


def _never(*_: Any, **__: Any) -> None:
    raise AssertionError("this must not be called")


@pytest.mark.parametrize(
    "case", ["10^8 tokens", "2 * 10^8 heads", "10^6 heads", "transposed", "float16", "mixed"]
)
def test_no_tensor_is_made_before_the_shapes_were_looked_at(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AttentionLayer(CONFIG, 9).save(tmp_path)
    SPOILT[case][0](tmp_path / WEIGHTS)
    monkeypatch.setattr(safetensors.torch, "load", _never)
    monkeypatch.setattr(capacity.layer.model.attention_layer, "initial_weights", _never)
    with pytest.raises(InvalidArgumentError, match="must hold a layer"):
        AttentionLayer.load(tmp_path)


def test_no_beginning_of_a_file_is_a_layer(tmp_path: Path) -> None:
    AttentionLayer(LayerConfig(1, 1, 1, 1), 2).save(tmp_path)
    path = tmp_path / WEIGHTS
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(InvalidArgumentError, match="must hold a layer"):
            AttentionLayer.load(tmp_path)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"{WEIGHTS}: no such file"):
        AttentionLayer.load(tmp_path)
    path = tmp_path / WEIGHTS
    os.mkfifo(path)
    with pytest.raises(StorageError, match=f"{WEIGHTS}: it is a named pipe"):
        AttentionLayer.load(tmp_path)
    with pytest.raises(StorageError, match=f"{WEIGHTS}: can't be written, for it is a named pipe"):
        AttentionLayer(CONFIG, 9).save(tmp_path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(StorageError, match="it is a device"):
        AttentionLayer.load(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        AttentionLayer.load(tmp_path)


def test_loading_draws_no_weights_and_reads_one_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = AttentionLayer(CONFIG, 9, seed=3, dtype=torch.float64)
    layer.save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == {"d_vocab": 9, **CONFIG.to_dict()}
    (tmp_path / "config.json").unlink()
    os.mkfifo(tmp_path / "config.json")
    monkeypatch.setattr(capacity.layer.model.attention_layer, "initial_weights", _never)
    again = AttentionLayer.load(tmp_path)
    assert equal(again, layer)
    assert all(parameter.requires_grad for parameter in again.parameters())


def test_one_layer_is_one_file_byte_for_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        AttentionLayer(CONFIG, 9, seed=3).save(tmp_path / name)
    assert (tmp_path / "a" / WEIGHTS).read_bytes() == (tmp_path / "b" / WEIGHTS).read_bytes()


def test_a_layer_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    layer = AttentionLayer(CONFIG, 9)
    layer.save(tmp_path)
    other = AttentionLayer(CONFIG, 9, seed=1)
    for spoil in (
        lambda: other.half(),
        lambda: setattr(other.float(), "W_O", torch.nn.Parameter(other.W_O.double())),
        lambda: other.float().register_buffer("more", torch.zeros(1)),
    ):
        spoil()
        with pytest.raises(
            InvalidArgumentError, match="The weights must be those of d4-h2-qk2-vo3"
        ):
            other.save(tmp_path)
    assert equal(AttentionLayer.load(tmp_path), layer)


def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    AttentionLayer(CONFIG, 9).save(tmp_path)
    with pytest.raises(InvalidArgumentError, match="`device` must be one"):
        AttentionLayer.load(tmp_path, device="nowhere")


def both() -> list[AttentionLayer]:
    """Two layers of different sizes; the files are too large for a single write of a pipe."""
    return [AttentionLayer(LayerConfig(d, 3, 2, 2), 5000, seed=d) for d in (2, 3)]


def save_for_ever(folder: Path, layers: list[AttentionLayer], ready: Any) -> None:
    # of the one that was killed before
    warnings.simplefilter("ignore", LeftoverWarning)
    for layer in layers:
        layer.save(folder)
    ready.set()
    while True:
        for layer in layers:
            layer.save(folder)


@pytest.mark.slow
def test_a_reader_beside_a_writer_sees_whole_saves(tmp_path: Path) -> None:
    layers = both()
    ready = FORK.Event()
    writer = FORK.Process(target=save_for_ever, args=(tmp_path, layers, ready))
    writer.start()
    seen = [0, 0]
    try:
        assert ready.wait(30)
        end = time.monotonic() + 2
        while time.monotonic() < end or not all(seen):
            loaded = AttentionLayer.load(tmp_path)
            which = [equal(loaded, layer) for layer in layers]
            assert sum(which) == 1
            seen[which.index(True)] += 1
    finally:
        writer.kill()
        writer.join()


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_a_whole_layer(tmp_path: Path) -> None:
    layers, rng = both(), random.Random(0)
    for _ in range(10):
        ready = FORK.Event()
        writer = FORK.Process(target=save_for_ever, args=(tmp_path, layers, ready))
        writer.start()
        assert ready.wait(30)
        time.sleep(rng.uniform(0, 0.02))
        writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
        loaded = AttentionLayer.load(tmp_path)
        assert any(equal(loaded, layer) for layer in layers)


def save_on_a_full_disk(folder: Path, layer: AttentionLayer, answer: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    try:
        layer.save(folder)
    except CapacityError as error:
        answer.send((type(error), str(error)))
    else:
        answer.send((None, ""))


def test_a_full_disk_names_the_file_and_leaves_the_old_layer(tmp_path: Path) -> None:
    old, new = both()
    old.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    receiver, sender = FORK.Pipe()
    writer = FORK.Process(target=save_on_a_full_disk, args=(tmp_path, new, sender))
    writer.start()
    kind, message = receiver.recv()
    writer.join()
    assert kind is StorageError
    assert message.startswith(f"{tmp_path / WEIGHTS}: can't be written")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert equal(AttentionLayer.load(tmp_path), old)
