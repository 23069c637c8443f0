"""Words that pages and docstrings don't use (tools/words.toml), and their places in a text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tools" / "words.toml"
# folders of docs that tools write
GENERATED = {"api", "executed"}
# between the words of a pattern: spaces, or the end of a line that isn't the paragraph's last
SPACE = r"(?: +|[ \t]*\n[ >*]*)"
# in place of each sign of what isn't prose: no space, and no part of a word
NOT_PROSE = "\N{SECTION SIGN}"
# what isn't the page's own prose: code, comments, names of code, addresses, formulas, quotations
NO_PROSE = [
    re.compile(r"\A---\n.*?^---$", re.DOTALL | re.MULTILINE),
    re.compile(r"^[ >]*(```|~~~|:::).*?^[ >]*\1[^\n]*$", re.DOTALL | re.MULTILINE),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL),
    re.compile(r"(?<=\])\([^)]*\)"),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"\$(?!\s)[^$]{1,300}(?<!\s)\$"),
    re.compile(r'(?<!\w)"[^"]{1,400}"(?!\w)|“[^”]{1,400}”'),
]
# of a template of a page: what isn't read on the page, and code
NO_TEXT = re.compile(
    r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<(style|script|code)\b.*?</\1>|<[/a-z!][^>]*>", re.DOTALL
)
# of a docstring: from a prompt to an empty line, and the names of parameters
EXAMPLE = re.compile(r"^[ ]*>>> .*?(?=\n[ ]*\n|\Z)|^[ ]*[\w, ]+(?= : )", re.DOTALL | re.MULTILINE)


def pages_of_docs(root: Path = ROOT) -> list[Path]:
    """The pages under docs that people write."""
    paths = (root / "docs").rglob("*.md")
    return sorted(path for path in paths if not GENERATED & set(path.relative_to(root).parts))


@dataclass(frozen=True)
class Word:
    """A word that isn't used, as a pattern, with what to use instead."""

    word: str
    pattern: re.Pattern[str]
    use: str
    code: bool = False


@dataclass(frozen=True)
class Place:
    """A word in a text, with the number of its line, counted from 1."""

    line: int
    text: str
    word: Word

    def __str__(self) -> str:
        """The place as a line of a checker's output."""
        return f"{self.line}: {self.text!r}: use {self.word.use}"


@cache
def words() -> tuple[Word, ...]:
    """The list of words."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return tuple(
        Word(one["word"], re.compile(one["pattern"].replace(" ", SPACE), re.IGNORECASE),
             one["use"], one.get("code", False))
        for one in table["word"]
    )  # fmt: skip


def prose(text: str) -> str:
    """A page's own prose: the rest is replaced sign by sign, and lines keep their numbers."""
    for pattern in NO_PROSE:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", NOT_PROSE, found[0]), text)
    return text


def text_of(path: Path) -> str:
    """The text of a page; of a notebook the text between its cells of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".j2":
        return NO_TEXT.sub(lambda found: re.sub(r"[^\n]", NOT_PROSE, found[0]), text)
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")


def without_examples(docstring: str) -> str:
    """A docstring without examples, their output, and names; lines keep their numbers."""
    return EXAMPLE.sub(lambda found: "\n" * found[0].count("\n"), docstring)


def places(text: str) -> Iterator[Place]:
    """Yield the listed words of a text's prose, in the order of the list."""
    own = prose(text)
    for word in words():
        for found in word.pattern.finditer(own):
            line = own.count("\n", 0, found.start()) + 1
            yield Place(line, " ".join(found[0].split()), word)
