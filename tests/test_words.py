"""Listed words are found in prose and nowhere else, and pages and help have none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from capacity.cli import application
from tests.oracles import ROOT
from tools import check_docstrings, check_pages
from tools.sentences import sentences
from tools.words import places, prose, text_of, words

STYLE = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")


def found(text: str) -> list[str]:
    """The listed words of a text, sorted."""
    return sorted(place.word.word for place in places(text))


@pytest.mark.parametrize("word", words(), ids=lambda word: word.word)
def test_a_word_is_found_by_its_pattern_and_its_substitute_is_not_listed(word) -> None:  # type: ignore[no-untyped-def]
    assert word.word in found(word.word)
    # what is in parentheses is the use that a substitute is for
    assert found(re.sub(r"\([^)]*\)", "", word.use)) == []


def test_forms_of_a_word_are_found_whatever_the_case() -> None:
    assert found("Tells what was\ntold.") == ["tell", "tell"]
    assert found("It fore-\ntold; foretells") == ["foretell", "tell"]
    assert found("a standard understanding, given, amended, essay") == []
    assert found("One row a fact. A line a minute, one\nfile a format") == ["a row a predicate"] * 3
    # these are no rates
    assert found("one for a bound, one is an error, a graph of a kind, an array as a list") == []


def test_code_formulas_addresses_and_quotations_are_no_prose() -> None:
    assert found('`say` ``a `say` b`` $say$ [x](say.md) <!-- say --> "say" $$\nsay\n$$ x') == []
    assert found('```{code-cell} python3\nsay\n```\n"an\nend" said "x"') == ["say"]
    assert found("---\ntitle: say\n---\n# Text\n") == []
    # what is between two formulas, and between two quotations, is prose
    assert found('$$ a $$ says $$ b $$ and $a$ says $b$, "a" says "b"') == ["say"] * 3


def test_lines_keep_their_numbers() -> None:
    text = "---\na\n---\n\n```text\nx\n```\nIt says.\n"
    assert prose(text).count("\n") == text.count("\n")
    assert [place.line for place in places(text)] == [8]


def test_a_notebook_is_its_text_between_cells_of_code(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(
        '{"cells": [{"cell_type": "markdown", "source": ["It\\n", "says."]},'
        ' {"cell_type": "code", "source": ["print(1)  # say"]}]}'
    )
    assert text_of(path) == "It\nsays."


def test_a_template_is_what_a_report_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.html.j2"
    path.write_text(
        '{# say #}<p title="say">{% if say %}It\n{{ say }} <code>say</code> says p >= 0.95.\n'
        "{% endif %}</p><style>\nsay </style> We <b>say</b> so."
    )
    lines = [(place.line, place.text) for place in places(text_of(path))]
    assert lines == [(2, "says"), (4, "say")]


def test_docstrings_are_read_without_their_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_docstrings, "ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text(
        '"""Module."""\n\n\ndef f():\n    """Return it.\n\n    >>> f()\n    say\n\n'
        '    It says `say`.\n    """\n    # say\n'
    )
    assert list(check_docstrings.of_files([path])) == [
        "a.py:10: 'says': use print, show, state, contain, explain; mean"
    ]


def test_messages_are_read_and_names_code_and_remarks_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_docstrings, "ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text(
        'COLUMN = "said"\n"""A remark says it."""\n'
        "raise ValueError(f\"{x} says 'a'. \"\n"
        '    "Give it, or `say it`.")\n'
        "warn('It tells {}'.format(x)); option(help=\"What stands there\")\n"
        'f"{a}say"\n'
    )
    faults = [fault.partition(": use")[0] for fault in check_docstrings.of_files([path])]
    assert sorted(faults) == [
        "a.py:3: 'Give'", "a.py:3: 'says'", "a.py:5: 'stands'", "a.py:5: 'tells'"
    ]  # fmt: skip


def test_sentences_are_counted_without_headings_tables_code_and_links() -> None:
    page = (
        "# A heading. With a point.\n\nL. Z. Wong (*A title*, 2025) proves it. Is it\nso?\n"
        "```python\nit = 1\n```\n\n| a | b. |\n\n* one item; [a link](b.md)\n* two. [Alone](c.md)\n"
    )
    assert list(sentences(page)) == [
        (3, "L. Z. Wong (*A title*, 2025) proves it."),
        (3, "Is it so?"),
        (11, "one item; [a link](b.md)"),
        (12, "two."),
    ]


def test_no_page_has_a_listed_word() -> None:
    for path in check_pages.pages():
        assert not [*places(text_of(path))], path


def test_no_help_of_a_command_has_a_listed_word() -> None:
    commands: Any = typer.main.get_command(application())
    for command in [commands, *commands.commands.values()]:
        texts = [command.help, *(getattr(option, "help", "") for option in command.params)]
        assert not [*places("\n\n".join(filter(None, texts)))], command.name


def test_the_page_on_style_has_all_words_and_twenty_examples() -> None:
    for word in words():
        assert f"| “{word.word}” | {word.use} |" in STYLE
    examples = re.findall(r"^\| \d+ \| “[^”]+” \| “[^”]+” \|$", STYLE, re.MULTILINE)
    assert len(examples) >= 20
    # an example's second form has no listed word
    assert [found(re.sub("[“”]", "", row.split("|")[3])) for row in examples] == [[]] * len(
        examples
    )
