"""An engine trains on no device before it has trained there as `reference` does on a CPU."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from capacity.errors import DeviceError, InvalidArgumentError, LostDeviceError
from capacity.installation.parts import Gpu
from capacity.layer import Engine, LayerConfig, Recipe, Workload, register_engine, unregister_engine
from capacity.layer.engines import proof as module
from capacity.layer.engines.engine import loaded
from capacity.layer.engines.proof import Proof, proofs, prove, require_proven
from capacity.layer.engines.registry import engine_for, engine_named
from capacity.layer.model.devices import lost_device
from tests.commands import run, run_json
from tests.engines import able


@pytest.fixture
def wrong() -> Iterator[str]:
    """An engine whose smallest mistake is a weight that it moves by a thousandth."""

    def train(layer: Any, *arguments: Any) -> Any:
        training = loaded(engine_named("reference").run)(layer, *arguments)
        with torch.no_grad():
            layer.W_O[0, 0, 0] += 1e-3
        return training

    register_engine(Engine("wrong", why_not=lambda _: None, run=train, cost=lambda _: 0.0))
    yield "wrong"
    unregister_engine("wrong")


@pytest.mark.slow
@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("engine", [name for name in (*able(), "together") if name != "reference"])
def test_the_engines_are_proven_on_a_cpu(engine: str) -> None:
    found = prove(engine, "cpu")
    assert found.holds
    # none if the sums have the reference's order
    assert found.difference < 1e-5


@pytest.mark.slow
def test_a_wrong_weight_is_found_and_refused_with_the_numbers(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = prove(wrong, "cpu")
    assert not found.holds
    assert found.difference == pytest.approx(1e-3, rel=0.1)
    # on a CPU all is tested before it is released
    require_proven(wrong, torch.device("cpu"), "float32")
    monkeypatch.setattr(module, "prove", lambda *_: found)
    with pytest.raises(
        DeviceError, match=r"on cuda, wrong differs .* by 0\.001 .* at most 0\.0001"
    ):
        require_proven(wrong, torch.device("cuda"), "float32")


@pytest.mark.slow
def test_doctor_tells_what_was_compared_and_how_fast_it_is(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "capacity.installation.report.gpu", lambda _: Gpu(True, True, True, ("a chip",), None)
    )
    monkeypatch.setattr(module, "MANY", 2)
    # there is no GPU here: the engines train on the CPU instead
    monkeypatch.setattr(module, "proofs", lambda _: proofs("cpu"))
    engines = {
        one["engine"]: one for one in run_json(capsys, "doctor", "--device", "cuda")["engines"]
    }
    assert engines.keys() == {*able(), "wrong"}
    assert engines["fused"]["runs_a_second"] > engines["reference"]["runs_a_second"] > 0
    assert not engines["wrong"]["holds"]
    assert engines["wrong"]["runs_a_second"] is None
    code, out, _ = run(capsys, "doctor", "--device", "cuda")
    assert code == 0
    assert "wrong on cpu differs from reference on the CPU by 1.0e-03" in out
    assert "runs of 2,000 epochs a second" in out


def test_no_number_is_null_in_json() -> None:
    broken = Proof("toy", "cuda", "float32", 16, math.inf, 1e-4)
    assert json.loads(json.dumps(broken.to_dict(), allow_nan=False))["difference"] is None


def test_without_triton_the_engine_says_what_to_install() -> None:
    work = Workload(LayerConfig(2, 1, 1, 1), Recipe(), 5, 8, device="cuda")
    with pytest.raises(InvalidArgumentError, match=r"pip install 'knowledge-capacity\[gpu\]'"):
        engine_for("triton", work)
    assert engine_for("auto", work).name == "blocked"


def test_on_a_gpu_the_kernel_goes_before_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.layer.engines.triton.find_spec", lambda _: object())

    def chosen(config: LayerConfig, device: str = "cuda", **options: Any) -> str:
        return engine_for("auto", Workload(config, Recipe(), 5, 8, device=device, **options)).name

    small, large = LayerConfig(12, 1, 2, 2), LayerConfig(32, 1, 2, 2)
    assert (chosen(small), chosen(large)) == ("triton", "blocked")
    assert chosen(small, has_frozen_weights=True) == "blocked"
    # triton's interpreter is for tests
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert chosen(small, "cpu") == "tape"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (torch.OutOfMemoryError("tried to allocate 2 GiB"), "has too little memory"),
        (RuntimeError("CUDA error: unspecified launch failure"), "failed"),
        (RuntimeError("Triton Error [CUDA]: device lost"), "failed"),
    ],
)
def test_a_lost_device_is_one_error(error: RuntimeError, says: str) -> None:
    with pytest.raises(LostDeviceError, match=f"cuda {says}"), lost_device("cuda"):
        raise error
    # a CPU is never lost, and other errors are errors
    with pytest.raises(type(error)), lost_device("cpu"):
        raise error
    with pytest.raises(RuntimeError, match="of its own"), lost_device("cuda"):
        raise RuntimeError("of its own")
