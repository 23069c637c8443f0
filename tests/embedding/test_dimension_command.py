"""The command ``capacity dimension``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity.cli import main
from capacity.embedding import MODELS
from tests.commands import run, run_json


@pytest.fixture
def circle(tmp_path: Path) -> Path:
    file = tmp_path / "circle.tsv"
    file.write_text("Ada\tknows\tBob\nBob\tknows\tEve\nEve\tknows\tAda\n")
    return file


def test_the_page_has_a_line_a_family(circle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dimension", str(circle), "--no-witness"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 facts, 3 entities, 1 relation; 3 queries (s, q, ?)")
    assert "not about predicting new facts" in lines[2]
    rows = {line.split()[0]: line for line in lines[4:12]}
    assert {*rows} == {*MODELS}
    assert "none    does" in rows["DistMult"]
    assert rows["DistMult"].endswith("such as knows: Ada, Bob, Eve, Ada")
    assert "score 1 at every fact" in lines[12]


def test_json_has_reasons_witnesses_and_what_stops_a_family(
    circle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run_json(capsys, "dimension", str(circle), "--model", "CP", "--model", "DistMult")
    by = {(one["model"], one["task"]): one for one in found["models"]}
    assert {*by} == {(m, t) for m in ("CP", "DistMult") for t in ("ranking", "exact")}
    cp, distmult = by["CP", "ranking"], by["DistMult", "ranking"]
    assert (cp["necessary"], cp["sufficient"]) == (2, 2)
    assert all(reason["words"] for reason in cp["reasons"])
    assert (distmult["necessary"], distmult["sufficient"]) == (None, None)
    (stopped,) = distmult["impossible"]
    assert stopped == {"relation": "knows", "entities": ["Ada", "Bob", "Eve", "Ada"]}
    separate = run_json(capsys, "dimension", str(circle), "--separate", "--model", "DistMult")
    assert separate["models"][0]["sufficient"] == 2
    assert not separate["models"][0]["shared"]


def test_wrong_options_are_told(circle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--model", "TransE"], ["--task", "rank"], ["--model", "linear", "--task",
                                                                "both-sides"]):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(["dimension", str(circle), *options])
        assert ended.value.code == 2
        assert capsys.readouterr().err


def test_what_is_written_is_checked_from_the_shell(
    circle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dimension.json"
    code, _, _ = run(capsys, "dimension", circle, "--certificate", file)
    assert code == 0
    code, out, err = run(capsys, "verify", file, circle)
    assert (code, err) == (0, "")
    # eight families, two tasks, and three ends of ranks that they rest on
    assert len(out.splitlines()) == 19
    about = "subjects and objects shared"
    under = "for all 3 facts (multi=keep): proved"
    assert f"dimension of CP for ranking, {about}: 2 to 2, {under}" in out
    assert f"dimension of DistMult for ranking, {about}: none, {under}" in out
    found = run_json(capsys, "verify", file, circle)
    assert found["proved"]
    rows = [row for row in found["certificates"] if row["quantity"] == "dimension"]
    assert len(rows) == 16
    assert {row["shared"] for row in rows} == {True}
    assert {row["task"] for row in rows} == {"ranking", "exact"}
    data = json.loads(file.read_text())
    (cp,) = (one for one in data if (one.get("model"), one.get("task")) == ("CP", "ranking"))
    del cp["necessary"], cp["sufficient"]
    for reason in cp["reasons"]:
        reason["value"] += 1 if reason["side"] == "necessary" else -1
    file.write_text(json.dumps([cp]))
    code, out, _ = run(capsys, "verify", file, circle)
    assert code == 1
    assert "not proved" in out
    for name, wrong in {
        "task": "rank", "shared": 1, "reasons": {}, "effort": "much", "seed": "0", "notes": None,
        "witness": {"dimension": 1, "factors": {"a": [[1.5]]}},
        "estimate": {"dimension": "1"},
    }.items():  # fmt: skip
        file.write_text(json.dumps([{**cp, name: wrong}]))
        code, _, err = run(capsys, "verify", file, circle)
        assert code == 2
        assert name in err or "factor" in err or "`dimension`" in err
    code, _, err = run(capsys, "verify", tmp_path / "none.json", circle)
    assert code == 2


def test_scales_of_scores_are_told_on_request(
    circle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "dimension", circle, "--model", "linear", "--tau", "0.9")
    assert code == 0
    head, columns, *rows = out.splitlines()[-10:]
    assert head == "softmax >= 0.9 for all single answers, scores <h, e> with |h| |e| <= R:"
    assert columns == "dimension  R at least     R enough"
    assert [int(row.split()[0]) for row in rows] == [2, 4, 8, 16, 32, 64, 128, 256]
    found = run_json(capsys, "dimension", circle, "--model", "linear", "--tau", "0.9")
    assert [one["dimension"] for one in found["margins"]] == [2, 4, 8, 16, 32, 64, 128, 256]
    code, _, err = run(capsys, "dimension", circle, "--tau", "0.3")
    assert code == 2
    assert "above 1/2" in err


def test_scales_are_rounded_away_from_what_isnt_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.tsv"
    file.write_text("a\tr\tx\nb\tr\ty\n")
    _, out, _ = run(capsys, "dimension", file, "--model", "linear", "--tau", "0.95")
    # ln(19) / 2 = 1.472..., both
    assert out.splitlines()[-8].split()[:3] == ["2", "1.4", "1.5"]
    file.write_text("a\tr\tx\n")
    _, out, _ = run(capsys, "dimension", file, "--separate", "--tau", "0.95")
    assert "the only object is 1" in out
    file.write_text("a\tr\tx\na\tr\ty\n")
    _, out, _ = run(capsys, "dimension", file, "--multi", "keep", "--tau", "0.95")
    assert "every query has several answers" in out


def test_verify_says_whether_entities_are_shared_and_insists_on_request(
    circle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symmetric scores can't rank a cycle of one vector an entity; of two they take two numbers."""
    files = {"--shared": tmp_path / "shared.json", "--separate": tmp_path / "separate.json"}
    for flag, file in files.items():
        run(capsys, "dimension", circle, "--model", "DistMult", flag, "--certificate", file)
    shared, separate = files.values()
    _, out, _ = run(capsys, "verify", separate, circle)
    assert "dimension of DistMult for ranking, subjects and objects not shared: 2 to 2, for" in out
    _, out, _ = run(capsys, "verify", shared, circle)
    assert "dimension of DistMult for ranking, subjects and objects shared: none, for" in out
    for file, of in ((shared, True), (separate, False)):
        found = run_json(capsys, "verify", file, circle)
        rows = [row for row in found["certificates"] if row["quantity"] == "dimension"]
        about = {(row["model"], row["task"], row["shared"]) for row in rows}
        assert about == {("DistMult", "ranking", of), ("DistMult", "exact", of)}
        assert found["selection"] is None
    for file, right, wrong in (
        (shared, "--shared", "--separate"),
        (separate, "--separate", "--shared"),
    ):
        code, _, _ = run(capsys, "verify", file, circle, right)
        assert code == 0
        code, out, err = run(capsys, "verify", file, circle, wrong)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert f"{wrong} requires dimensions for subjects and objects that are" in err
    rank = tmp_path / "rank.json"
    run(capsys, "rank", circle, "--certificate", rank)
    code, _, err = run(capsys, "verify", rank, circle, "--shared")
    assert code == 2
    assert "is about dimensions" in err


def test_verify_says_what_was_selected(
    circle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with circle.open("a") as file:
        file.write("Ada\tlikes\tEve\n")
    chosen = ("--predicate", "knows")
    claim = tmp_path / "chosen.json"
    run(capsys, "dimension", circle, "--model", "CP", "--certificate", claim, *chosen)
    code, out, _ = run(capsys, "verify", claim, circle, *chosen)
    assert code == 0
    assert "(multi=keep; selection: predicates=knows): proved" in out
    _, out, _ = run(capsys, "verify", claim, circle, *chosen, "--json")
    assert json.loads(out)["selection"]["options"] == {"predicates": ["knows"]}
    code, _, err = run(capsys, "verify", claim, circle)
    assert code == 2
    assert "must be" in err
