"""Pages say of nothing that there is that there isn't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import capacity
from capacity.cli import app
from tests.oracles import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")])
NOT_YET = re.compile(r"\bnot yet\b", re.IGNORECASE)
# the beginnings of what pages say isn't there, by page; who adds it takes the words out, and who
# writes such words looks whether they are true
MISSING = {
    "docs/questions.md": ["says what there is none of", "Fact by fact"],
    "docs/tutorials/mathematician.md": ["Ranks over $\\mathbb{C}$ or finite fields"],
    "docs/tutorials/student.md": ["layers with an MLP and stacks of layers"],
    "docs/concepts/layers.md": ["certified bounds of the rank of a trained L from below"],
    "docs/concepts/memorise.md": ["accuracies for databases whose pairs have several objects"],
    "docs/concepts/frozen-gates.md": ["a lower end that grows with the number of objects"],
    "docs/how-to/read-an-interval.md": ["The facts that a bound rests on, by name"],
    "docs/how-to/pretrained-model.md": ["Attention of GPT-Neo, GPT-J, BLOOM, Falcon and DeBERTa",
                                        "The decomposition of decoders"],
    "docs/how-to/sweep.md": ["there is no search for good hyperparameters"],
    "docs/how-to/cluster.md": ["Dask trains on CPUs only"],
    "docs/how-to/gpu.md": ["a kernel for batches of facts"],
    "docs/how-to/facts-by-hand.md": ["the size of such a layer can't be asked from the shell"],
}  # fmt: skip
# what pages once denied, and where it is
THERE = {
    "fact_table": capacity.evaluator,
    "held_size": capacity.evaluator,
    "plot_training": capacity.plots,
    "plot_circuits": capacity.plots,
    "count_duckdb": capacity.stores,
    "database_report": capacity.report,
    "attention_report": capacity.report,
}


def of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_what_isnt_there_yet_is_in_the_list(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    said = MISSING.get(of(page), [])
    assert bool(NOT_YET.search(text)) == bool(said)
    for words in said:
        assert words in text
    # a section is its points, which are all in the list
    section = re.search(r"^## Not yet\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if section:
        assert section[1].count("\n* ") == len(said)


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_no_page_names_the_number_of_an_issue(page: Path) -> None:
    # whoever reads it can't open it
    found = re.findall(r"\bissues? \d+", page.read_text(encoding="utf-8"))
    assert found == []


@pytest.mark.parametrize("name", THERE)
def test_what_pages_once_denied_is_there_and_named(name: str) -> None:
    assert callable(getattr(THERE[name], name))
    assert any(name in page.read_text(encoding="utf-8") for page in PAGES)


def test_commands_that_pages_once_denied_are_there() -> None:
    names = {getattr(one.callback, "__name__", "") for one in app.registered_commands}
    assert {"report", "dimension", "describe"} <= names


def test_the_tutorial_for_mathematicians_says_what_its_output_says() -> None:
    text = (ROOT / "docs/tutorials/mathematician.md").read_text(encoding="utf-8")
    assert "Both ends are 7" in text
    assert "no method that proves 7" not in text
