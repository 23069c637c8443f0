"""Wrong numbers and files on the command line: one line on standard error, and exit code 2."""

import os
from pathlib import Path

import pytest

from capacity.cli import main
from tests.oracles import EXAMPLES

FIGURE_1 = str(EXAMPLES / "figure-1.ttl")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that wrong use ends with."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    assert err.startswith("capacity: ")
    assert err.count("\n") == 1
    assert len(err) < 600
    return err


TRAIN = {
    "2 * 10^9 epochs": (["--epochs", "2000000000"], "`epochs` must be at most 10,000,000"),
    "epochs of 31 digits": (["--epochs", "9" * 31], "`epochs` must be at most 10,000,000"),
    "negative epochs": (["--epochs", "-1"], "`epochs` must be an integer of at least 0"),
    "d_model of 10^9": (["--d-model", "1000000000"], "`d_model` must be at most 1,048,576"),
    "d_model of 10^12": (["--d-model", "1000000000000"], "`d_model` must be at most 1,048,576"),
    "2^70 heads": (["--n-heads", str(2**70)], "`n_heads` must be at most 1,048,576"),
    "heads of 10^9": (["--d-head-qk", "1000000000"], "`d_head_qk` must be at most 1,048,576"),
    # 2 * 2^20 * 2^10 * (2^10 + 2) numbers of the heads alone
    "weights of 17 TB": (
        ["--d-model", "1024", "--n-heads", "1048576", "--d-head-qk", "1024", "--d-head-vo", "2"],
        "must take at most 8,589,934,592 bytes in float64; they would take 17",
    ),
    "seed -1": (["--seed", "-1"], "`--seed` must be at least 0; got '-1'"),
    "seed 2^63": (["--seed", str(2**63)], "`--seed` must be at most 9223372036854775807"),
    "seed 2^70": (["--seed", str(2**70)], "`--seed` must be at most"),
    "a learning rate without end": (["--learning-rate", "1e999"], "`learning_rate` must be a pos"),
    "a learning rate that is none": (["--learning-rate", "nan"], "`learning_rate` must be a pos"),
}


@pytest.mark.parametrize("case", TRAIN)
def test_train_refuses_numbers_out_of_range(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, message = TRAIN[case]
    assert message in refused(capsys, "train", FIGURE_1, *options)


def test_the_largest_seed_of_a_table_is_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", FIGURE_1, "--epochs", "1", "--seed", str(2**63 - 1)])
    assert end.value.code == 0
    assert "completed after 1 epochs" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json", "run.json"])
def test_train_refuses_a_pipe_for_its_output_before_it_trains(
    name: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import capacity.sweep.training.one_run

    monkeypatch.setattr(capacity.sweep.training.one_run, "train_run", None)
    os.mkfifo(tmp_path / name)
    err = refused(capsys, "train", FIGURE_1, "--out", str(tmp_path))
    assert f"{tmp_path / name}: can't be written, for it is a named pipe" in err


def test_train_refuses_a_folder_that_it_can_not_make(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert str(out) in refused(capsys, "train", FIGURE_1, "--out", str(out))
    assert (tmp_path / "file").read_text() == "mine"


def test_train_on_a_full_disk_names_the_file_and_leaves_no_part(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / "layer"
    err = refused(capsys, "train", FIGURE_1, "--epochs", "1", "--out", str(out))
    assert f"{out / 'weights.safetensors'}: can't be written (No space left on device)" in err
    assert not list(out.iterdir())


@pytest.mark.parametrize(
    "shard",
    ["3", "0/" + "9" * 5000, "0/1234567890", "\u0660/\u0661", "\u00b2/3", "-1/2", "0x1/2", " 0/1"],
    ids=lambda shard: ascii(shard)[:20],
)
def test_a_shard_is_two_short_numbers_in_ascii(
    shard: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    err = refused(capsys, "sweep", str(tmp_path / "none.toml"), "--shard", shard)
    assert "--shard must read i/N, such as 0/4; got" in err
