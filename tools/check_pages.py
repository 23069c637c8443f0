"""Refuse the words that pages don't use (tools/words.toml, docs/style.md).

    python tools/check_pages.py [PAGE ...]

Each place is printed, with what to use instead. Without arguments all pages are read.
tools/check_docstrings.py does the same for docstrings.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.words import pages_of_docs, places, text_of  # noqa: E402


def pages() -> list[Path]:
    """All pages: of the repository's root, the site, experiments, notebooks, and reports."""
    found = [
        *ROOT.glob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        *pages_of_docs(),
        *(ROOT / "experiments").rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
        *(ROOT / "capacity" / "report" / "templates").glob("*.j2"),
    ]
    return sorted(found)


def main() -> None:
    """Print the listed words of some pages, or of all, and exit with 1 if there are any."""
    given = [Path(one).resolve() for one in sys.argv[1:]] or pages()
    found = [
        f"{path.relative_to(ROOT)}:{place}"
        for path in given
        for place in sorted(places(text_of(path)), key=lambda place: place.line)
    ]
    print("\n".join([*found, f"{len(found)} listed words in {len(given)} pages"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
