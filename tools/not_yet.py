"""Write what the library doesn't do into docs/not-yet.md and the pages that deny it.

    python tools/not_yet.py [--check]

The one list is docs/not-yet.toml, whose checks tests/test_not_yet.py runs. A page has the sentences
of its entries between two comments, which this tool puts at its end if they aren't there. With
--check nothing is written; the exit code is 1 if a page isn't current.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.words import pages_of_docs  # noqa: E402

LIST = "docs/not-yet.toml"
PAGE = "docs/not-yet.md"
BEGIN = "<!-- Written by tools/not_yet.py from docs/not-yet.toml. -->"
END = "<!-- End of what tools/not_yet.py writes. -->"
BLOCK = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}\n", re.DOTALL)
HEAD = f"""# Not yet

{BEGIN}

This page lists what the library doesn't do and what readers have looked for. A test checks each
sentence against the library, so that the sentence goes when the feature comes.
"""


@dataclass(frozen=True)
class Entry:
    """A sentence that denies something, and what shows that it is true.

    Attributes
    ----------
    part : str
        Heading of `PAGE` under which it is.
    text : str
        The sentences, in Markdown, with links from the folder of the repository.
    pages : tuple of str
        The pages that contain it.
    absent, unknown : tuple of str
        Names that must not exist, and command lines that must be unknown.
    refused, error, message : str
        Code, the error that it must raise, and a part of its text.
    holds : str
        An expression that must be true.
    """

    part: str
    text: str
    pages: tuple[str, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    refused: str = ""
    error: str = ""
    message: str = ""
    holds: str = ""


def entries() -> list[Entry]:
    """The entries of the list, in its order."""
    table = tomllib.loads((ROOT / LIST).read_text(encoding="utf-8"))
    return [Entry(**{key: _frozen(value) for key, value in one.items()}) for one in table["entry"]]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def from_page(text: str, page: str) -> str:
    """A sentence whose links begin at a page, and not at the folder of the repository."""
    folder = Path(page).parent
    return re.sub(
        r"\]\((docs/[^)]+)\)",
        lambda link: f"]({Path(os.path.relpath(link[1], folder)).as_posix()})",
        text,
    )


def block(page: str, denied: list[Entry]) -> str:
    """The part of a page that the tool writes."""
    lines = [f"* {from_page(entry.text, page)}" for entry in denied]
    link = from_page(f"[All of it]({PAGE})", page)
    return "\n".join([BEGIN, "## Not yet", "", *lines, "", f"{link} is on one page.", END]) + "\n"


def list_page(denied: list[Entry]) -> str:
    """The page with all entries, by their parts."""
    parts = list(dict.fromkeys(entry.part for entry in denied))
    sections = [
        f"\n## {part}\n\n" + "".join(
            f"* {from_page(entry.text, PAGE)}\n" for entry in denied if entry.part == part)
        for part in parts
    ]  # fmt: skip
    return HEAD + "".join(sections)


def current(page: str, denied: list[Entry]) -> str:
    """The text of a page with today's entries."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    mine = [entry for entry in denied if page in entry.pages]
    if not mine:
        return BLOCK.sub("", text).rstrip("\n") + "\n"
    written = block(page, mine)
    if BLOCK.search(text):
        return BLOCK.sub(lambda _: written, text)
    return text.rstrip("\n") + "\n\n" + written


def pages_with_blocks() -> set[str]:
    """Pages that have a part that the tool has written."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in pages_of_docs(ROOT)
        if BLOCK.search(path.read_text(encoding="utf-8"))
    }


def all_pages() -> dict[str, str]:
    """Every page that the tool writes or has written, and its text with today's entries."""
    denied = entries()
    named = {page for entry in denied for page in entry.pages} | pages_with_blocks()
    return {page: current(page, denied) for page in sorted(named)} | {PAGE: list_page(denied)}


def main() -> None:
    """Write the pages, or compare them with the list."""
    stale = []
    for page, text in all_pages().items():
        path = ROOT / page
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(page)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    print("\n".join(stale))
    sys.exit("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    main()
