"""The command for pretrained models: its table, its figure and its messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run, run_json

SENTENCE = "The court said that new antibiotics work against bacteria, but nobody makes them."


@pytest.mark.slow
def test_attention_prints_the_contracts_object(
    capsys: pytest.CaptureFixture[str], model_folder: Path
) -> None:
    got = run_json(capsys, "attention", str(model_folder), "--text", SENTENCE)
    assert got["model"] == "BertModel"
    assert got["mode"] == "plain"
    n = len(got["tokens"])
    assert got["tokens"][:3] == ["[CLS]", "the", "court"]
    assert [(row["layer"], row["head"]) for row in got["layers"]] == [
        (layer, head) for layer in (0, 1) for head in (0, 1, 2)
    ]
    for row in got["layers"]:
        # twelve dimensions in three heads; several words are one unknown token, at other places
        assert row["d_head_vo"] == 4
        assert row["rank_values"] == 4
        assert row["nullity"] == n - 4
        assert row["nullity_simplex"] == n - 5
        assert 0 < row["effective_share"] <= 1
        assert {"joint_nullity", "identifiable_rows", "p4_excess", "threshold"} <= row.keys()


@pytest.mark.slow
def test_attention_draws_standard_beside_effective(
    capsys: pytest.CaptureFixture[str], model_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "figure.png"
    arguments = ["attention", str(model_folder), "--text", SENTENCE, "--mode", "simplex"]
    code, text, err = run(capsys, *arguments, "--out", str(out), "--layer", "1", "--head", "1")
    assert (code, err) == (0, "")
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "2 layers of 3 heads" in text
    assert str(out) in text


@pytest.mark.parametrize("layer", [0, 1])
def test_the_layer_and_head_that_are_drawn_are_counted_from_0(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    model_folder: Path,
    tmp_path: Path,
    layer: int,
) -> None:
    import capacity.plots
    from capacity.transformer import capture, load_pretrained

    drawn: dict[str, Any] = {}
    monkeypatch.setattr(
        capacity.plots, "plot_attention", lambda patterns, **named: drawn.update(patterns, **named)
    )
    arguments = ["attention", str(model_folder), "--text", SENTENCE]
    chosen = ["--out", str(tmp_path / "a.png"), "--layer", str(layer), "--head", "2"]
    code, _, err = run(capsys, *arguments, *chosen)
    assert (code, err) == (0, "")
    model, tokenizer = load_pretrained(model_folder)
    captured = capture(model, tokenizer(SENTENCE, return_tensors="pt"))
    expected = captured.layers[layer].pattern[0, 2].numpy()
    assert drawn["standard attention"].to_numpy() == pytest.approx(expected, abs=1e-6)
    assert drawn["title"].startswith(f"layer {layer}, head 2:")
    assert list(drawn["shares"].index) == [0, 1]


WRONG_ATTENTION = {
    "no model": (["attention", "{tmp}", "--text", "the"], "holds no config.json"),
    "causal": (["attention", "{model}", "--text", "the", "--mode", "causal"], "a causal model"),
    "too long": (["attention", "{model}", "--text", "the " * 70], "at most 64 tokens"),
    "no such head": (["attention", "{model}", "--text", "the", "--out", "{tmp}/a.png", "--layer",
                      "1", "--head", "3"], "--head from 0 to 2"),
    "nowhere": (["attention", "{model}", "--text", "the", "--layer", "1", "--head", "1"],
                "--out must name the file"),
    "no figure": (["attention", "{model}", "--text", "the", "--out", "{tmp}/a.txt"],
                  "must end in .png"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_ATTENTION)
def test_wrong_use_of_attention_is_one_message(
    capsys: pytest.CaptureFixture[str], model_folder: Path, tmp_path: Path, case: str
) -> None:
    arguments, message = WRONG_ATTENTION[case]
    filled = [a.format(tmp=tmp_path, model=model_folder) for a in arguments]
    code, out, err = run(capsys, *filled)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_model_without_some_of_its_weights_is_refused(
    capsys: pytest.CaptureFixture[str], model_folder: Path, tmp_path: Path
) -> None:
    for path in model_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    code, _, err = run(capsys, "attention", str(tmp_path), "--text", "hi")
    assert code == 2
    assert "are missing, such as encoder.layer.2" in err
    for path in tmp_path.glob("*token*"):
        path.unlink()
    (tmp_path / "vocab.txt").unlink(missing_ok=True)
    code, _, err = run(capsys, "attention", str(tmp_path), "--text", "hi")
    assert code == 2
    assert "must hold the model's tokenizer" in err


def test_a_damaged_model_is_one_message(
    capsys: pytest.CaptureFixture[str], model_folder: Path, tmp_path: Path
) -> None:
    for path in model_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    code, _, err = run(capsys, "attention", str(tmp_path), "--text", "hi")
    assert code == 2
    assert f"{tmp_path} must hold a model and its tokenizer" in err
    assert err.count("\n") == 1


# two tokens and two signs of the sentence's ends, in four dimensions of values
FEW = "the court"


def test_few_tokens_are_said_to_make_all_of_attention_effective(
    capsys: pytest.CaptureFixture[str], model_folder: Path
) -> None:
    code, out, _ = run(capsys, "attention", model_folder, "--text", FEW)
    assert code == 0
    assert "The text has 4 tokens, and the values of a head 4 dimensions (d_head_vo)" in out
    assert "all of attention is effective. From 5 tokens on" in out
    # the numbers once, and not a row a head
    assert "all 6 heads have the same:" in out
    for mode in ("plain", "simplex"):
        rows = run_json(capsys, "attention", model_folder, "--text", FEW, "--mode", mode)["layers"]
        assert [row["nullity"] for row in rows] == [0] * 6
        assert [row["effective_share"] for row in rows] == pytest.approx([1] * 6)


def test_of_one_more_token_a_part_has_no_effect(
    capsys: pytest.CaptureFixture[str], model_folder: Path
) -> None:
    code, out, _ = run(capsys, "attention", model_folder, "--text", f"{FEW} said")
    assert code == 0
    assert "The text has" not in out
    rows = run_json(capsys, "attention", model_folder, "--text", f"{FEW} said")["layers"]
    assert [row["nullity"] for row in rows] == [1] * 6
    assert max(row["effective_share"] for row in rows) < 1


def test_equal_values_of_few_tokens_are_counted() -> None:
    import pandas as pd

    from capacity.transformer.table import on_few_tokens

    table = pd.DataFrame({"n_tokens": [4, 4], "d_head_vo": [8, 8], "rank_values": [4, 3]})
    said = on_few_tokens(table)
    assert said is not None
    assert "are so in 1 of 2 heads, where all of attention is effective" in said


def test_the_figure_of_few_tokens_has_one_panel_and_says_why(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    model_folder: Path,
    tmp_path: Path,
) -> None:
    import capacity.plots

    drawn: dict[str, Any] = {}
    monkeypatch.setattr(
        capacity.plots, "plot_attention", lambda patterns, **named: drawn.update(patterns, **named)
    )
    arguments = ["attention", model_folder, "--text", FEW, "--out", tmp_path / "a.png"]
    assert run(capsys, *arguments)[0] == 0
    assert set(drawn) == {"attention, all of it effective", "title", "path"}
    assert (
        "with 4 tokens in 4 dimensions of values\nno other pattern has the same" in drawn["title"]
    )


@pytest.fixture(scope="module")
def two_stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small T5 with its tokenizer."""
    from tests.transformer.test_public_models import saved
    from tests.transformer.tiny_models import build

    torch = pytest.importorskip("torch")
    return saved(tmp_path_factory.mktemp("t5"), build("T5", torch.float32))


# "w4", whose only word the tokenizer reads; a decoder begins with <s>
@pytest.mark.parametrize(
    ("part", "tokens", "keys"),
    [("encoder", ["w4"], ["w4"]), ("decoder", ["<s>", "w5"], ["<s>", "w5"]),
     ("cross", ["<s>", "w5"], ["w4"])],
)  # fmt: skip
def test_a_part_of_an_encoder_decoder_is_chosen(
    capsys: pytest.CaptureFixture[str],
    two_stacks: Path,
    tmp_path: Path,
    part: str,
    tokens: list[str],
    keys: list[str],
) -> None:
    arguments = ["attention", str(two_stacks), "--text", "w4", "--part", part]
    arguments += [] if part == "encoder" else ["--decoder-text", "w5"]
    got = run_json(capsys, *arguments, "--out", str(tmp_path / "a.png"))
    assert (got["part"], got["tokens"], got["keys"]) == (part, tokens, keys)
    assert len(got["layers"]) == 2 * 4
    assert (tmp_path / "a.png").stat().st_size > 0


def test_a_report_of_a_part(
    capsys: pytest.CaptureFixture[str], two_stacks: Path, tmp_path: Path
) -> None:
    page = tmp_path / "a.html"
    arguments = ["report", "--attention", str(two_stacks), "--text", "w4", "--out", str(page)]
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "'encoder', 'decoder'" in err
    assert run(capsys, *arguments, "--part", "decoder")[0] == 0
    assert "T5Model" in page.read_text()


def test_parts_are_of_models_that_have_them(
    capsys: pytest.CaptureFixture[str], model_folder: Path
) -> None:
    arguments = ["attention", str(model_folder), "--text", "the"]
    code, _, err = run(capsys, *arguments, "--part", "decoder")
    assert (code, "must be omitted for a model of one stack" in err) == (2, True)
    code, _, err = run(capsys, *arguments, "--decoder-text", "the")
    assert (code, "add --part decoder" in err) == (2, True)
