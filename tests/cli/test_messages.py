"""Weak messages that newcomers met, as they are today: what must hold, what came, what to do."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from capacity.cli import main
from tests.commands import run
from tests.oracles import EXAMPLES

# of a line that is typed in the workplace, what its one message says
MESSAGES = {
    "rank examples/figure-1.ttl --effort quik": "Did you mean `quick`?",
    "rank examples/figure-1.ttl --format turtel": "Did you mean `turtle`?",
    "rank examples/figure-1.ttl --method 'flip grap'": "Did you mean `flip graph over F_2`?",
    "rank examples/figure-1.ttl --table wid": "Did you mean `wide`?",
    "rank examples/figure-1.ttl --graph defualt": "Did you mean `default`?",
    "rank examples/figure-1.ttl --annotations-of-facts kep": "Did you mean `keep`?",
    "describe examples/figure-1.ttl --as turle": "Did you mean `turtle`?",
    "describe examples/figure-1.ttl --schema dorp": "Did you mean `drop`?",
    "dimension examples/figure-1.ttl --model TuckR": "`--model` must be one of",
    "dimension examples/figure-1.ttl --task rankng": "Did you mean `ranking`?",
    "train examples/figure-1.ttl --device cuba": "Did you mean `cuda`?",
    "doctor --device cudaa": "Did you mean `cuda`?",
    "attention model --text the --mode simplx": "Did you mean `simplex`?",
    "grid demo --tau argmx": "`--tau` must be a number, 'argmax' or 'argmax_paper'",
    # not of columns, but of the tau to say
    "grid demo --tau 0.9": "`--tau` must be a threshold that the runs were scored at: argmax, "
    "argmax_paper, 0.50, 0.75, 0.95, 0.99; got 0.9.",
    "verify examples/figure-1.ttl examples/figure-1.ttl": "it isn't JSON, at line 1, column 1. The "
    "file of certificates comes first, and then that of the facts.",
    "verify none.json examples/figure-1.ttl": "no such file or directory. The file of certificates",
    "rank examples/figure-1.ttl --effrt quick": "No such option: --effrt. Did you mean `--effort`?",
    "rank examples/figure-1.ttl --multi": "See `capacity rank --help`.",
    "rank examples/figure-1.ttl --arity 1": "`--arity` must be at least 2; got '1'.",
    "rank examples/figure-1.ttl --arity=99": "`--arity` must be at most 32; got '99'.",
    "train examples/figure-1.ttl --d-model four": "`--d-model` must be an integer; got 'four'.",
    "train examples/figure-1.ttl --learning-rate x": "`--learning-rate` must be a number; got 'x'.",
    "rank examples/figure-1.ttl --certificate file/c.json": "can't be written",
    "train examples/figure-1.ttl --out file/layer": "Choose another place.",
    "sweep plan.toml --out file/sweep": "can't be the folder of a sweep (Not a directory). Choose "
    "another one with --out.",
    "rank wide.csv": "one column per property",
}


@pytest.mark.parametrize("line", MESSAGES)
def test_a_slip_is_one_message_that_says_what_to_do(
    line: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workplace)
    Path("file").write_text("not a folder")
    Path("wide.csv").write_text("name,born,city\nBob,1980,Rome\nAnn,1990,Oslo\n")
    code, out, err = run(capsys, *shlex.split(line))
    assert (code, out) == (2, "")
    assert err.startswith("capacity: ")
    assert err.count("\n") == 1
    assert MESSAGES[line] in err
    # of Python's and the parser's own words none
    for raw in ("Errno", "char 0", "Expecting", "Input should", "unable to parse"):
        assert raw not in err


@pytest.mark.slow
def test_a_folder_made_for_a_certificate_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, workplace: Path
) -> None:
    figure_1 = workplace / "examples" / "figure-1.ttl"
    for command in ("rank", "dimension"):
        new = tmp_path / command / "c.json"
        _, out, _ = run(capsys, command, figure_1, "--certificate", new)
        assert f"{new}, in a new folder\n" in out
        _, out, _ = run(capsys, command, figure_1, "--certificate", new)
        assert f"{new}\n" in out


@pytest.mark.parametrize(
    ("number", "advice"),
    [(28, "Free some space, or choose another path."),
     (13, "Check the folder's permissions, or choose another path."),
     (5, ". Choose another path.")],
    ids=["no space left", "permission denied", "input/output error"],
)  # fmt: skip
def test_the_advice_about_a_file_that_is_not_written_depends_on_why(
    number: int,
    advice: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    workplace: Path,
) -> None:
    import os

    def fails(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    figure_1 = workplace / "examples" / "figure-1.ttl"
    code, _, err = run(capsys, "rank", figure_1, "--certificate", tmp_path / "c.json")
    assert code == 2
    assert err.endswith(f"({os.strerror(number)}). {advice.removeprefix('. ')}\n")


def test_rank_says_first_what_it_found(capsys: pytest.CaptureFixture[str], workplace: Path) -> None:
    examples = workplace / "examples"
    _, out, _ = run(capsys, "rank", examples / "countries.ttl", "--effective")
    first, second, third, *_ = out.splitlines()
    assert first.startswith("The rank is between 3,155 and 3,339: at least 3,155, because ")
    assert second.startswith(
        "The effective rank is between 3,155 and 3,339: at least 3,155, because "
    )
    assert third.startswith("countries.ttl: ")
    _, out, _ = run(capsys, "rank", examples / "figure-1.ttl")
    assert out.startswith("The rank is 5: at least 5, because ")


def test_counted_facts_say_first_what_was_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # two objects, each the only one of its pair; the predicate has two objects and one subject
    facts = tmp_path / "a.nt"
    facts.write_text("<x:a> <x:p> <x:b> .\n<x:c> <x:p> <x:d> .\n")
    code, out, _ = run(capsys, "rank", facts, "--out-of-core")
    assert code == 0
    assert out.startswith(
        "The rank is 2: at least 2, because as many objects are the only object of "
    )


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
