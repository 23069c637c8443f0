"""docs/api, as the repository shows it, is what the library has today."""

from __future__ import annotations

import sys

import pytest

from tests.oracles import ROOT

sys.path.append(str(ROOT / "docs" / "_extensions"))

from public_names import (  # type: ignore[import-not-found]
    FOLDER,
    repository_pages,
)

# every room is imported
pytestmark = pytest.mark.slow


def test_pages_of_the_api_are_those_of_todays_library() -> None:
    pages = repository_pages()
    assert {path.name for path in FOLDER.iterdir()} == set(pages)
    stale = [name for name, text in pages.items() if (FOLDER / name).read_text("utf-8") != text]
    assert not stale, "Run python docs/_extensions/public_names.py"


def test_every_name_leads_to_the_file_that_defines_it() -> None:
    text = repository_pages()["capacity.rank.md"]
    assert "## Koszul\n" in text
    line = text.partition("## Koszul\n")[2].strip().partition("\n")[0]
    assert line.endswith("[Source](../../capacity/rank/verifier/kinds/koszul.py)")
    assert (FOLDER / "../../capacity/rank/verifier/kinds/koszul.py").resolve().exists()
