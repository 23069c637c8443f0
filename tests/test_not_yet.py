"""What pages deny is one list, docs/not-yet.toml, and the library doesn't have it."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import capacity
from capacity.cli import application
from tests.oracles import ROOT
from tools import not_yet
from tools.not_yet import Entry
from tools.words import GENERATED

ENTRIES = not_yet.entries()
GIVEN: dict[str, Any] = {
    "capacity": capacity, "inspect": inspect, "importlib": importlib, "ROOT": ROOT
}  # fmt: skip
PAGES = sorted(
    path
    for folder in ("docs", "experiments", "notebooks", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".md", ".j2", ".ipynb"} and not GENERATED & set(path.relative_to(ROOT).parts)
)
PAGES += [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
                                   "paper.md")]  # fmt: skip


def exists(name: str) -> bool:
    """True if a dotted name leads to something: a module, or an attribute of what is before it."""
    first, *rest = name.split(".")
    thing = importlib.import_module(first)
    for part in rest:
        if not hasattr(thing, part):
            try:
                importlib.import_module(f"{getattr(thing, '__name__', '')}.{part}")
            except ImportError:
                return False
        thing = getattr(thing, part)
    return True


def is_unknown(line: str) -> bool:
    """True if the command of a line, or an option of it, isn't there."""
    done = CliRunner().invoke(application(), line.split())
    return done.exit_code == 2 and bool(re.search(r"(?i)no such (command|option)", done.output))


def assert_denied(entry: Entry) -> None:
    """Assert that an entry has a check, and that today's library passes each of them."""
    assert entry.absent or entry.unknown or entry.refused or entry.holds
    assert bool(entry.refused) == bool(entry.error) == bool(entry.message)
    for name in entry.absent:
        assert not exists(name), name
    for line in entry.unknown:
        assert is_unknown(line), line
    if entry.refused:
        error = getattr(capacity.errors, entry.error)
        with pytest.raises(error, match=re.escape(entry.message)):
            exec(entry.refused, dict(GIVEN))
    if entry.holds:
        assert eval(entry.holds, dict(GIVEN)), entry.holds


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.text[:40])
def test_what_pages_deny_is_not_there(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_denied(entry)


@pytest.mark.parametrize(
    "check",
    [
        {"absent": ("capacity.rank.verify",)},
        {"absent": ("capacity.nothing", "capacity.report.drawing")},
        {"unknown": ("rank --effort quick nothing.ttl",)},
        {"refused": "1 + 1", "error": "InvalidTypeError", "message": "no"},
        {"refused": "capacity.rank_interval(7, of=2)", "error": "InvalidTypeError", "message": "x"},
        {"holds": "hasattr(capacity, 'nothing')"},
        {},
    ],
    ids=str,
)
def test_a_feature_that_has_come_is_noticed(check: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        assert_denied(Entry(part="", text="", pages=(), **check))


@pytest.mark.parametrize("page", not_yet.all_pages(), ids=str)
def test_pages_have_the_sentences_of_the_list(page: str) -> None:
    # `python tools/not_yet.py` writes them
    assert (ROOT / page).read_text(encoding="utf-8") == not_yet.all_pages()[page]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_denies_beside_the_list_or_names_an_issue_by_its_number(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    beside = "" if name == not_yet.PAGE else not_yet.BLOCK.sub("", text)
    # a link to the list may be called so, and nothing else that isn't in the list
    beside = re.sub(r"\[Not yet\]\([^)]*not-yet\.md[^)]*\)", "", beside)
    assert not re.findall(r"(?i)\bnot (?:\w+ )?yet\b", beside)
    assert not re.findall(r"(?i)\bissues? #?\d+", text)


def test_links_of_sentences_begin_at_their_page() -> None:
    linked = "see [a](docs/how-to/sweep.md#share-it), [b](https://example.org)"
    assert not_yet.from_page(linked, "docs/not-yet.md").startswith("see [a](how-to/sweep.md#share")
    assert not_yet.from_page(linked, "docs/how-to/gpu.md").startswith("see [a](sweep.md#share-it)")
    assert not_yet.from_page(linked, "docs/concepts/rank.md").startswith("see [a](../how-to/sweep")


def test_a_page_that_no_entry_names_any_more_loses_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(not_yet, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "a.md"
    entry = Entry(part="x", text="No b.", pages=("docs/a.md",), absent=("capacity.b",))
    page.write_text("# A\n\nText.\n")
    page.write_text(not_yet.current("docs/a.md", [entry]))
    assert "* No b.\n" in page.read_text()
    assert not_yet.pages_with_blocks() == {"docs/a.md"}
    # written again, it is the same
    assert not_yet.current("docs/a.md", [entry]) == page.read_text()
    assert not_yet.current("docs/a.md", []) == "# A\n\nText.\n"
