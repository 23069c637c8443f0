"""``capacity train``: its bar, its curve, its table of facts, and what an interrupt leaves."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import capacity.sweep.training.tried as tried
from capacity.database import load
from capacity.evaluator import fact_table
from capacity.layer import AttentionLayer, Decoder, DecoderConfig
from tests.commands import run, run_json
from tests.oracles import EXAMPLES

FIGURE_1 = str(EXAMPLES / "figure-1.ttl")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_hold_the_curve_and_the_facts_of_the_layer(
    suffix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    curve, facts = tmp_path / f"curve{suffix}", tmp_path / f"facts{suffix}"
    (row,) = run_json(
        capsys, "train", FIGURE_1, "--epochs", "60", "--learning-rate", "0.01",
        "--out", str(tmp_path), "--curve", str(curve), "--facts", str(facts),
    )  # fmt: skip
    read: Any = pd.read_csv if suffix == ".csv" else pd.read_parquet
    losses, table = read(curve), read(facts)
    assert losses.columns.tolist() == ["epoch", "loss", "accuracy_p50"]
    assert losses.iloc[-1].tolist() == [60, row["loss"], row["accuracy_p50"]]
    # 32 epochs, then every other up to 60, of which the last is the end
    assert losses.epoch.tolist() == [*range(32), *range(32, 60, 2), 60]
    layer = AttentionLayer.load(tmp_path)
    pd.testing.assert_frame_equal(table, fact_table(layer, load(FIGURE_1)))
    for name in ("argmax", "argmax_paper", "p50", "p75", "p95", "p99"):
        assert table[name].mean() == row[f"accuracy_{name}"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_of_the_curve_is_drawn(
    suffix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    curve = tmp_path / f"curve{suffix}"
    code, out, err = run(capsys, "train", FIGURE_1, "--epochs", "3", "--curve", str(curve))
    assert (code, err) == (0, "")
    assert f"written to     {curve}" in out
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert curve.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--curve", "curve.txt", r"--curve must name a figure (.png, .svg, .pdf) or a table"),
        ("--facts", "facts.png", r"--facts must end in .csv or .parquet"),
        ("--curve", "taken.png", "taken.png: can't be written, for it is a folder"),
        ("--facts", "taken.csv", "taken.csv: can't be written, for it is a folder"),
    ],
)
def test_a_file_that_cant_be_written_is_told_before_the_training(
    option: str,
    name: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tried, "trained_runs", None)
    for taken in ("taken.png", "taken.csv"):
        (tmp_path / taken).mkdir()
    code, _, err = run(capsys, "train", FIGURE_1, option, str(tmp_path / name))
    assert code == 2
    assert said in err


def test_starts_are_tried_until_one_holds(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("train", FIGURE_1, "--d-model", "2", "--n-heads", "1", "--d-head-vo", "1",
             "--d-head-qk", "1", "--learning-rate", "0.1", "--epochs", "300")  # fmt: skip
    (row,) = run_json(capsys, *small, "--starts", "30")
    assert row["held_by_any"]
    assert row["accuracy_p95"] == 1
    assert 1 < row["starts_tried"] <= 30, "take another layer: the first start holds"
    code, out, _ = run(capsys, *small, "--starts", "30")
    assert code == 0
    n_tried = row["starts_tried"]
    assert f"{n_tried} of 30 tried, the last holds all facts at 0.95; these are" in out
    (one,) = run_json(capsys, *small)
    assert (one["starts_tried"], one["held_by_any"]) == (1, False)
    code, _, err = run(capsys, *small, "--starts", "0")
    assert code == 2
    assert "`starts` must be an integer of at least 1; got 0" in err


def test_flags_of_a_decoder_are_fields_of_its_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = ("train", FIGURE_1, "--epochs", "2", "--out", str(tmp_path))
    flags = ("--mlp", "8", "--gated", "--norm", "rms", "--norm-place", "after")
    run_json(capsys, *few, *flags, "--tie-embeddings")
    config = Decoder.load(tmp_path).config
    asked = DecoderConfig(4, 2, mlp=8, gated=True, norm="rms", norm_place="after",
                          tie_embeddings=True)  # fmt: skip
    assert config == asked
    # each alone, with what it needs
    for flag in ("--tie-embeddings", "--bias"):
        run_json(capsys, *few, flag)
        loaded = Decoder.load(tmp_path).config
        assert (loaded.tie_embeddings, loaded.bias) == (
            flag == "--tie-embeddings",
            flag == "--bias",
        )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--gated",), "`gated` and `activation` must be omitted without an MLP"),
        (("--norm-place", "after"), "`norm_place` must be omitted without a norm"),
        (("--norm", "rms", "--norm-place", "middle"), "`norm_place` must be"),
    ],
)
def test_flags_without_effect_are_refused(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "train", FIGURE_1, *flags)
    assert code == 2
    assert said in err


def test_an_interrupt_leaves_no_file_and_exits_with_130(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tried, "trained_runs", interrupted)
    curve, facts = tmp_path / "curve.png", tmp_path / "facts.csv"
    code, out, err = run(capsys, "train", FIGURE_1, "--curve", str(curve), "--facts", str(facts))
    assert (code, out) == (130, "")
    assert "interrupted; no results were written" in err
    assert not list(tmp_path.iterdir())


def test_the_bar_shows_epochs_and_the_loss_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = run_json(capsys, "train", FIGURE_1, "--epochs", "40")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    _, _, err = run(capsys, "train", FIGURE_1, "--epochs", "40")
    assert "40/40" in err
    assert f"loss {row['loss']:.4f}" in err


@pytest.mark.slow
def test_a_layer_that_diverged_has_a_curve_and_no_table_of_facts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    curve, facts = tmp_path / "curve.csv", tmp_path / "facts.csv"
    arguments = ("train", FIGURE_1, "--epochs", "3", "--learning-rate", "1e38")
    code, _, err = run(capsys, *arguments, "--curve", str(curve), "--facts", str(facts))
    assert code == 2
    assert "must be finite for a table of facts" in err
    losses = pd.read_csv(curve).loss.tolist()
    assert math.isfinite(losses[0])
    assert not math.isfinite(losses[-1])
    assert not facts.exists()
