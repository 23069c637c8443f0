"""A page as its tests read it: numbers by their names, tables by their rows, and what it loads."""

from __future__ import annotations

import itertools
import re
from typing import Any

from bs4 import BeautifulSoup, Tag

# what loads or runs something
LOADING = {
    "src", "srcset", "poster", "background", "data", "action", "formaction", "xlink:href",
}  # fmt: skip


def soup_of(page: str) -> BeautifulSoup:
    return BeautifulSoup(page, "html.parser")


def facts_of(page: str) -> dict[str, set[str]]:
    """The exact values that stand in the page, by their names."""
    found: dict[str, set[str]] = {}
    for tag in soup_of(page).find_all("data"):
        found.setdefault(str(tag["data-name"]), set()).add(str(tag["value"]))
    return found


def rows_of(page: str, name: str) -> list[dict[str, str]]:
    """The exact values of a table, a row at a time, by the titles of its columns."""
    table = soup_of(page).find("table", id=name)
    assert isinstance(table, Tag), name
    titles = [tag.get_text(strip=True) for tag in table.select("thead th")]
    return [
        dict(
            zip(titles, (str(tag["data-value"]) for tag in row.find_all(["th", "td"])), strict=True)
        )
        for row in table.select("tbody tr")
    ]


def text_of(page: str, selector: str) -> str:
    tag = soup_of(page).select_one(selector)
    assert tag is not None, selector
    return " ".join(tag.get_text(" ").split())


def loaded(page: str) -> list[str]:
    """Addresses that a browser would load, and those of links that lead out of the page."""
    addresses: list[str] = []
    for tag in soup_of(page).find_all(True):
        attributes: dict[str, Any] = dict(tag.attrs)
        addresses += [str(attributes[key]) for key in LOADING & attributes.keys()]
        if tag.name in ("a", "link", "image", "use") and "href" in attributes:
            addresses.append(str(attributes["href"]))
    style = " ".join(tag.get_text() for tag in soup_of(page).find_all("style"))
    return addresses + re.findall(r"url\(([^)]*)\)|@import ([^;]*)", style)


def assert_one_file(page: str) -> None:
    """The page is whole, loads nothing, runs its own script alone, and isn't large."""
    soup = soup_of(page)
    assert all(re.match(r"data:(image/png|application/json);base64,|#", a) for a in loaded(page))
    assert len(soup.find_all("script")) == 1
    assert not soup.find_all(["iframe", "object", "embed", "link", "base", "form"])
    assert not [a for tag in soup.find_all(True) for a in tag.attrs if a.startswith("on")]
    assert not [tag for tag in soup.find_all(True) if "style" in tag.attrs]
    assert len(page.encode()) < 1_000_000
    # a heading, and no level is skipped
    levels = [int(tag.name[1]) for tag in soup.find_all(re.compile("^h[1-6]$"))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    # every table has a caption, and every sorted one a button in the heading that says its order
    for table in soup.find_all("table"):
        assert table.caption is not None
        assert table.caption.get_text(strip=True)
        for heading in table.select("th[aria-sort]"):
            assert heading.button is not None
            assert heading.button["type"] == "button"
    identifiers = [str(tag["id"]) for tag in soup.find_all(id=True)]
    assert len(identifiers) == len(set(identifiers))
    assert {str(a["href"])[1:] for a in soup.select("a[href^='#']")} <= set(identifiers)
