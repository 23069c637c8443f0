"""Number the sentences of a page, for somebody who marks those that have to be read twice.

    python tools/sentences.py PAGE ...

Headings, tables, code, comments, pictures and a link alone aren't counted. An item of a list is a
sentence, or several. docs/style.md has the counts of some pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.words import NO_PROSE, text_of  # noqa: E402

# front matter, blocks of code and comments; what else isn't prose is part of a sentence
_BLOCKS = [*NO_PROSE[:3], re.compile(r"!\[[^\]]*\]\([^)]*\)")]
_NO_SENTENCE = re.compile(r"#+ |\||\[[^\]]*\]: |\{[%#]|\*\*[^*]*\*\*$")
_ITEM = re.compile(r"^([*-]|\d+\.) +")
_LINK_ALONE = re.compile(r"\[[^\]]*\]\([^)]*\)\.?")
# the end of a sentence; a name's initial and "et al." end none
_END = re.compile(r"(?<![A-Z]\.)(?<!al\.)(?:(?<=[.?!])|(?<=[.?!][”\")*]))\s+(?=[^a-z])")


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the line, counted from 1, and the text of each sentence of a page."""
    for block in _BLOCKS:
        page = block.sub(lambda found: "\n" * found[0].count("\n"), page)
    start, lines = 0, []
    for number, line in enumerate([*page.splitlines(), ""], start=1):
        text = line.strip()
        ends = not text or _NO_SENTENCE.match(text)
        if lines and (ends or _ITEM.match(text)):
            for one in _END.split(" ".join(lines)):
                if re.search(r"\w{2}", one) and not _LINK_ALONE.fullmatch(one.strip()):
                    yield start, one.strip()
            lines = []
        if not ends:
            start = start if lines else number
            lines.append(_ITEM.sub("", text, count=1))


def main() -> None:
    """Print the sentences of some pages, and their number."""
    for path in map(Path, sys.argv[1:]):
        found = list(sentences(text_of(path)))
        for number, (line, text) in enumerate(found, start=1):
            print(f"{path}:{line}: {number}. {text}")
        print(f"{path}: {len(found)} sentences")


if __name__ == "__main__":
    main()
