"""Find words in the pages that the project doesn't use (tools/words.toml, docs/style.md).

    python tools/check_pages.py [PAGE ...]
    python tools/check_pages.py --lower

With pages, their words are listed, each with what to use instead. Without, the number of each page
is compared with tools/words_left.toml, where it may only fall. `--lower` writes today's numbers
there if none has risen. Pages that no table lists have none. Of the library the first lines of
docstrings are looked at, by room.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.words import Place, pages_of_docs, places, text_of  # noqa: E402

LEFT = ROOT / "tools" / "words_left.toml"
HEAD = """# Words of tools/words.toml that are left, of each page and of the first lines of
# docstrings of each room. `python tools/check_pages.py --lower` writes this file, and no number
# may rise.
"""


def pages() -> list[Path]:
    """All pages: those of the repository's root, the site, the experiments and the notebooks."""
    found = [
        *ROOT.glob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        *pages_of_docs(),
        *(ROOT / "experiments").rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
    ]
    return sorted(found)


def summaries(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the first line of each docstring of a module, and the number of what it is of."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text.split("\n\n")[0]


def places_of(path: Path) -> list[Place]:
    """The listed words of a page, or of the first lines of a module's docstrings."""
    if path.suffix != ".py":
        return sorted(places(text_of(path)), key=lambda place: place.line)
    return [
        Place(number, place.text, place.word)
        for number, text in summaries(path)
        for place in places(text)
    ]


def counts() -> dict[str, dict[str, int]]:
    """Numbers of listed words, of the pages and of the rooms of the library that have some."""
    of_pages = {path.relative_to(ROOT).as_posix(): len(places_of(path)) for path in pages()}
    of_rooms: dict[str, int] = {}
    for path in sorted((ROOT / "capacity").rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        room = "/".join(parts[: 2 if len(parts) > 2 else 1])
        of_rooms[room] = of_rooms.get(room, 0) + len(places_of(path))
    return {
        name: {key: n for key, n in sorted(table.items()) if n}
        for name, table in (("pages", of_pages), ("docstrings", of_rooms))
    }


def ceilings() -> dict[str, dict[str, int]]:
    """The numbers that may not be exceeded."""
    return tomllib.loads(LEFT.read_text(encoding="utf-8"))


def as_toml(tables: Mapping[str, Mapping[str, int]]) -> str:
    """The numbers as the text of the file."""
    lines = [
        f"\n[{name}]\n" + "".join(f'"{key}" = {n}\n' for key, n in table.items())
        for name, table in tables.items()
    ]
    return HEAD + "".join(lines)


def risen(
    now: Mapping[str, Mapping[str, int]], most: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """Yield the pages and rooms that have more of the words than they may, as sentences."""
    for name, table in now.items():
        for key, n in table.items():
            allowed = most.get(name, {}).get(key, 0)
            if n > allowed:
                yield f"{key}: {n} words of tools/words.toml, and at most {allowed} are allowed"


def main() -> None:
    """List the words of some pages, or compare the numbers of all with what they may be."""
    given = [Path(one).resolve() for one in sys.argv[1:] if not one.startswith("--")]
    for path in given:
        for place in places_of(path):
            print(f"{path.relative_to(ROOT)}:{place}")
    if given:
        return
    now, most = counts(), ceilings()
    wrong = list(risen(now, most))
    fallen = not wrong and now != most
    total = {name: sum(table.values()) for name, table in now.items()}
    print("\n".join(wrong))
    print(f"{total['pages']} listed words in pages, {total['docstrings']} in first lines")
    if fallen and "--lower" in sys.argv:
        LEFT.write_text(as_toml(now), encoding="utf-8")
    elif fallen:
        print("fewer than tools/words_left.toml allows: run tools/check_pages.py --lower")
    sys.exit(bool(wrong) or (fallen and "--lower" not in sys.argv))


if __name__ == "__main__":
    main()
