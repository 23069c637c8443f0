"""The command `capacity report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from capacity.database import load
from capacity.report import database_report, sweep_report
from tests.commands import run, run_json
from tests.oracles import EXAMPLES
from tests.report.parsed import assert_one_file, facts_of, text_of

FIGURE_1 = EXAMPLES / "figure-1.ttl"


@pytest.mark.slow
def test_the_page_of_a_file_is_that_of_the_function(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "new" / "page.html"
    code, told, err = run(capsys, "report", FIGURE_1, "--out", out)
    assert (code, err) == (0, "")
    assert told == f"page: {out}, {out.stat().st_size:,} bytes\n"
    assert out.read_text(encoding="utf-8") == database_report(load(FIGURE_1))


def test_options_choose_the_facts_and_stand_in_the_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    code, _, err = run(
        capsys, "report", FIGURE_1, "--exclude", "currency", "--multi", "first", "--out", out
    )
    assert code == 0
    kept = load(FIGURE_1, exclude="currency", multi="first")
    assert str(kept.selected) in err
    page = out.read_text(encoding="utf-8")
    assert facts_of(page)["triples"] == {str(kept.n_facts)}
    assert str(kept.selected) in text_of(page, "#first")
    command = "capacity rank figure-1.ttl --multi first --exclude currency --certificate rank.json"
    assert command in text_of(page, "main")


def test_a_certificates_command_gives_the_certificate_of_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    run(capsys, "report", "figure-1.ttl", "--effort", "standard", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    command = "rank figure-1.ttl --effort standard --certificate rank.json"
    assert f"capacity {command}" in text_of(page, "main")
    made = tmp_path / "rank.json"
    run(capsys, *command.split()[:-1], made)
    ends = [one["value"] for one in json.loads(made.read_text())]
    assert [facts_of(page)[f"certified.{side}"] for side in ("lower", "upper")] == [
        {str(end)} for end in ends
    ]


@pytest.mark.slow
def test_the_page_of_a_sweeps_folder(
    capsys: pytest.CaptureFixture[str], sweep_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    got = run_json(capsys, "report", sweep_folder, "--tau", "0.75", "--out", out)
    page = out.read_text(encoding="utf-8")
    assert got == {"page": str(out), "about": "sweep", "bytes": len(page.encode())}
    assert page == sweep_report(sweep_folder, tau=0.75)


def test_the_page_of_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(0)
    folder = tmp_path / "a model"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "court", "case"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    BertModel(
        BertConfig(vocab_size=6, hidden_size=4, num_hidden_layers=1, num_attention_heads=2,
                   intermediate_size=4)
    ).save_pretrained(folder)  # fmt: skip
    # progress of saving
    capsys.readouterr()
    out = tmp_path / "page.html"
    got = run_json(
        capsys, "report", "--attention", folder, "--text", "case court case", "--out", out
    )
    assert got["about"] == "model"
    page = out.read_text(encoding="utf-8")
    assert_one_file(page)
    assert text_of(page, "h1") == "Attention of a model on one page"
    assert text_of(page, "#tokens").split() == ["[CLS]", "case", "court", "case", "[SEP]"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["x.ttl"], "--out must name the page, a file that ends in .html; got none"),
     (["x.ttl", "--out", "page.pdf"], "ends in .html; got page.pdf"),
     (["--out", "page.html"], "Name one of them"),
     (["x.ttl", "--text", "hi", "--out", "page.html"], "add --attention FOLDER"),
     (["x.ttl", "--tau", "0.9", "--out", "page.html"],
      "--tau has no meaning for a page about facts"),
     (["--attention", "m", "--out", "page.html"], "needs --text, the text that the model reads"),
     (["x.ttl", "--attention", "m", "--text", "hi", "--out", "page.html"], "Omit one of them"),
     (["--attention", "m", "--text", "hi", "--multi", "keep", "--out", "page.html"],
      "--multi has no meaning for a page about a model"),
     (["https://example.org/sparql", "--out", "page.html"], "Pass a file of facts"),
     (["facts.duckdb", "--out", "page.html"], "Pass a file of facts"),
     (["missing.ttl", "--out", "page.html"], "missing.ttl: no such file")],
)  # fmt: skip
def test_wrong_use_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "report", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_options_of_facts_are_refused_of_a_sweep(
    capsys: pytest.CaptureFixture[str], sweep_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    code, _, err = run(capsys, "report", sweep_folder, "--literals", "drop", "--out", out)
    assert code == 2
    assert "--literals has no meaning for a page about a sweep" in err
    assert not out.exists()


def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "page.html").mkdir()
    code, _, err = run(capsys, "report", "missing.ttl", "--out", tmp_path / "page.html")
    assert code == 2
    assert "page.html" in err
    assert "missing.ttl" not in err
