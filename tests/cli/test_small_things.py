"""Small things that newcomers met: names, hints, and words that fit what they are about."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from capacity.cli.commands.attention import EXAMPLES, TEXT
from capacity.database import Database, load
from capacity.embedding import dimensions, save_dimensions
from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError, MultiValuedError
from capacity.rank import rank_interval, save_certificates, verify
from capacity.tensor import from_dense, from_fractions
from tests.commands import run
from tests.oracles import EXAMPLES as FILES

FIGURE_1 = FILES / "figure-1.ttl"


def test_the_folder_of_a_model_is_taken_for_one(
    capsys: pytest.CaptureFixture[str], model_folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "model.html"
    text = "new antibiotics work against bacteria ."
    code, out, err = run(capsys, "report", model_folder, "--text", text, "--out", page, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["about"] == "model"
    code, _, err = run(capsys, "report", model_folder, "--out", page)
    assert code == 2
    assert "A page about the model" in err
    assert "needs --text" in err
    # options of facts are refused as for --attention
    code, _, err = run(
        capsys, "report", model_folder, "--text", text, "--out", page, "--effort", "quick"
    )
    assert code == 2
    assert "--effort has no meaning for a page about a model" in err


def test_the_example_of_attention_has_more_tokens_than_a_small_heads_values() -> None:
    assert all(TEXT in example for example in EXAMPLES)
    # a token a word or sign at least; MiniLM's values have 32 dimensions
    assert len(TEXT.replace(",", " ,").replace(".", " .").replace(":", " :").split()) > 32


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_refused(
    capsys: pytest.CaptureFixture[str], model_folder: Path, text: str
) -> None:
    code, _, err = run(capsys, "attention", model_folder, "--text", text)
    assert code == 2
    assert "must hold a word" in err


@pytest.mark.parametrize("name", ["c.json.gz", "c.json.zst", "c.bz2"])
def test_certificates_are_not_written_under_a_name_of_compression(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path, better = tmp_path / name, name.rpartition(".")[0]
    for command in ("rank", "dimension"):
        code, _, err = run(capsys, command, FIGURE_1, "--certificate", path)
        assert code == 2
        assert f"{better}.\n" in err
    db = load(FIGURE_1)
    with pytest.raises(InvalidArgumentError, match="without compression"):
        save_certificates(rank_interval(db), path)
    with pytest.raises(InvalidArgumentError, match="without compression"):
        save_dimensions(dimensions(db, ["CP"], witness=False), path)
    assert not path.exists()


def test_a_path_in_place_of_a_certificate_is_told_how_it_is_read() -> None:
    for path in ("c.json", Path("c.json")):
        with pytest.raises(InvalidTypeError, match=r"pass load_certificates\(path\)"):
            verify(path, load(FIGURE_1))  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"got 3\.$"):
        verify(3, load(FIGURE_1))  # type: ignore[arg-type]


def test_a_policy_is_advised_by_its_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "several.tsv"
    path.write_text("a\tp\tb\na\tp\tc\nb\tp\tc\n")
    code, _, err = run(capsys, "train", path)
    assert code == 2
    assert "Choose another policy with --multi: first, majority" in err
    with pytest.raises(MultiValuedError, match="another policy with multi=: first"):
        load(path, multi="error")


def test_a_tensor_has_entries_and_a_database_facts() -> None:
    # open at this effort: a 0/1 tensor without structure
    array = (np.random.default_rng(0).random((6, 6, 6)) < 0.5).astype(int)
    said = " ".join(rank_interval(from_dense(array)).explanation)
    assert f"open: {array.sum()} entries, " in said
    facts = [tuple("abcdef"[i] for i in at) for at in np.argwhere(array)]
    db = Database.from_triples(facts, multi="keep")
    said = " ".join(rank_interval(db).explanation)
    assert f"open: {array.sum()} facts, " in said


def test_a_method_is_guessed_by_a_word_of_its_name_before_the_file_is_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "several.tsv"
    path.write_text("a\tp\tb\na\tp\tc\n")
    code, _, err = run(capsys, "rank", path, "--method", "kozul")
    assert code == 2
    assert "Did you mean `Koszul flattening`?" in err
    # nothing is said of the facts before
    assert "several objects" not in err
    code, _, err = run(capsys, "rank", path, "--method", "pencl")
    assert err.count("Did you mean `pencil`?") == 1


def test_what_is_typed_stands_as_code_on_a_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, page = tmp_path / "facts.ttl", tmp_path / "facts.html"
    path.write_text(
        "@prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        ":a a owl:Class ; :p :b , :c . :b a owl:Class ; :p :c ; :q '`x`' ."
    )
    assert run(capsys, "report", path, "--out", page, "--multi", "keep")[0] == 0
    text = page.read_text()
    assert "<code>--schema drop</code> leaves" in text
    assert "`--schema" not in text


@pytest.mark.parametrize("command", ["rank", "describe"])
@pytest.mark.parametrize("name", ["graph.ttl", "facts.nt.gz", "a/b.csv?x=1"])
def test_the_address_of_a_file_is_none_of_an_endpoint(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, command, f"https://example.org/{name}")
    assert code == 2
    assert "files are not fetched. Save it" in err


def test_fractions_as_text_are_told_what_to_give() -> None:
    with pytest.raises(CapacityError, match=r"'1/2' at \[0, 1\]\. .*fractions\.Fraction\(text\)"):
        from_fractions([[1, "1/2"]])
