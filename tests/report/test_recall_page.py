"""The page about what a language model knows: its numbers are those of `Recall`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capacity.cli.output import write_table
from capacity.errors import CapacityError, FormatError, InvalidArgumentError
from capacity.recall import Recall
from capacity.report import recall_report
from capacity.report.recall_page import is_recall_table
from tests.commands import run, run_json
from tests.recall.test_result import FIRST, SECOND, by_hand
from tests.report.parsed import assert_one_file, facts_of, rows_of, text_of

HOSTILE = '<script>alert("1")</script>'


def test_the_numbers_of_the_page_are_those_of_the_answers() -> None:
    found = by_hand()
    page = recall_report(found)
    assert_one_file(page)
    assert text_of(page, "h1") == "What Model knows"
    # four facts by two templates; by hand in tests/recall/test_result.py: each is known by one of
    # its two, and of the eight greedy answers, all "B", those of p are right
    assert facts_of(page) == {
        "facts": {"4"}, "rows": {"8"}, "templates": {"2"}, "known": {"4"}, "worst": {"0"},
        "best": {"4"}, "greedy": {"0.25"},
    }  # fmt: skip
    (row,) = rows_of(page, "predicates")
    assert row == {
        "predicate": "has", "facts": "4", "known": "4", "share": "1.0", "by one": "4",
        "by all": "0", "templates": "2", "candidates": "3", "greedy": "0.25",
    }  # fmt: skip
    facts = rows_of(page, "facts")
    assert [(one["subject"], one["object"], one["templates"]) for one in facts] == [
        ("p", "B", "0.5"), ("q", "C", "0.5"), ("r", "C", "0.5"), ("r", "D", "0.5"),
    ]  # fmt: skip
    means = found.table.groupby("fact")["probability"].mean()
    assert [float(one["probability"]) for one in facts] == pytest.approx(list(means))


def test_templates_are_compared() -> None:
    found = by_hand()
    by_template = found.by_template()
    # by the first template p, and r twice; by the second q alone. By calibrated scores of the
    # first: B less -8/3, C less -5/3, D less -14/3, so that p, q, r have (5/3, -1/3, 5/3),
    # (2/3, -1/3, -13/3), (-7/3, 2/3, 8/3). Of r both objects are before the wrong B; p ties B with
    # the wrong D. By the second B less -8/3, C less -7/3, D less -20/3: p (-1/3, 4/3, -7/3),
    # q (-4/3, -2/3, -7/3), r (5/3, -2/3, 14/3)
    assert by_template.to_dict("list") == {
        "predicate": ["has", "has"], "template": [FIRST, SECOND], "facts": [4, 4],
        "candidates": [3, 3], "known": [3, 1], "known_calibrated": [2, 2],
        "greedy_right": [1, 1],
        "probability": list(found.table.groupby("template")["probability"].mean()[[FIRST, SECOND]]),
    }  # fmt: skip
    rows = rows_of(recall_report(found), "templates")
    assert [(one["template"], one["known"], one["calibrated"]) for one in rows] == [
        (FIRST, "3", "2"), (SECOND, "1", "2"),
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_has_the_page_of_its_table(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = by_hand()
    # names that readers of CSV take for what is missing
    table = found.table.replace({"subject": {"p": "NA", "q": "nan"}, "answer": {"B": "null"}})
    path, out = tmp_path / f"answers{suffix}", tmp_path / "page.html"
    write_table(table, path)
    assert is_recall_table(path)
    got = run_json(capsys, "report", path, "--out", out)
    assert got["about"] == "recall"
    page = out.read_text(encoding="utf-8")
    assert page == recall_report(table, title="answers")
    assert [one["subject"] for one in rows_of(page, "facts")] == ["NA", "nan", "r", "r"]
    # a part of the table, whose facts have other numbers
    part = recall_report(table[table["fact"] > 1])
    assert facts_of(part)["facts"] == {"2"}


def test_best_answers_alone_have_no_probability_and_no_calibrated_scores() -> None:
    table = by_hand().table
    table = table.assign(probability=None, rank_calibrated=pd.array([None] * 8, "Int64"))
    table["rank"] = table["rank"].where(table["rank"] == 1)
    rows = rows_of(recall_report(table), "templates")
    assert [(one["known"], one["calibrated"], one["probability"]) for one in rows] == [
        ("3", "", ""), ("1", "", ""),
    ]  # fmt: skip


def test_names_of_others_are_no_code_of_the_page() -> None:
    found = by_hand()
    table = found.table.assign(subject=HOSTILE, predicate=HOSTILE, answer=HOSTILE, template=HOSTILE)
    page = recall_report(
        Recall(table, found.facts, HOSTILE, HOSTILE, (HOSTILE,), 1, 1), title=HOSTILE
    )
    assert_one_file(page)
    assert HOSTILE not in page
    assert page.count("&lt;script&gt;") > 5


@pytest.mark.slow
def test_many_facts_are_cut_and_that_is_stated() -> None:
    table = pd.concat([by_hand().table.assign(fact=i) for i in range(1200)])
    page = recall_report(table.drop_duplicates(["fact", "template"]))
    assert len(rows_of(page, "facts")) == 1000
    assert facts_of(page)["shown"] == {"1000"}
    assert facts_of(page)["facts"] == {"1200"}


def test_other_tables_and_files_are_refused(tmp_path: Path) -> None:
    table = by_hand().table
    wrong: list[tuple[Any, str]] = [
        (table.drop(columns="rank"), "rank is missing"), (table[:0], "it is empty"), (5, "got 5"),
    ]  # fmt: skip
    for source, message in wrong:
        with pytest.raises(CapacityError, match=message):
            recall_report(source)
    for name, content in (("a.parquet", b"PAR1"), ("b.csv", b"\xff\xfe,")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FormatError, match="no table of answers"):
            recall_report(tmp_path / name)
        assert not is_recall_table(tmp_path / name)
    (tmp_path / "c.csv").write_text("a,b,c\n")
    with pytest.raises(InvalidArgumentError, match="subject is missing"):
        recall_report(tmp_path / "c.csv")
    for other in (tmp_path, tmp_path / "c.csv", tmp_path / "none.csv"):
        assert not is_recall_table(other)


def test_the_command_refuses_options_of_other_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "answers.csv", tmp_path / "page.html"
    write_table(by_hand().table, path)
    for options, message in (
        (["--tau", "0.5"], "--tau has no meaning for a page about what a model knows"),
        (["--effort", "quick"], "--effort has no meaning"),
        (["--text", "a"], "--text is about a model"),
    ):
        code, _, err = run(capsys, "report", path, *options, "--out", out)
        assert (code, out.exists()) == (2, False)
        assert message in err
