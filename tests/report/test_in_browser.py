"""Pages in headless Chromium: nothing is fetched, and all can read and use them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from capacity.database import Database, load
from capacity.database.describing.dataset import describe
from capacity.layer import AttentionLayer, LayerConfig
from capacity.report import (
    attention_report,
    database_report,
    recall_report,
    sweep_page,
    sweep_report,
)
from tests.browser import MEASURE, chromium
from tests.oracles import EXAMPLES
from tests.recall.test_result import by_hand
from tests.report.test_database_page import ALGEBRA, HOSTILE

pytestmark = pytest.mark.slow

KINDS = ("facts", "hostile", "sweep", "attention", "recall")
WIDTHS = (400, 1600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, sweep_folder: Path, mixed_runs: pd.DataFrame
) -> dict[str, Path]:
    """A page of each kind, and one of facts with hostile and long labels."""
    folder = tmp_path_factory.mktemp("reports")
    rows = [(HOSTILE, HOSTILE + "p", "v" * 3000), (HOSTILE, HOSTILE + "p", "</svg>"),
            ("w" * 3000, "-" * 3000, "-->"), ("w" * 3000, "q", "\u202e\u0000")]  # fmt: skip
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=12, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_page, "load", lambda _: mixed_runs)
        of_sweep = sweep_report(sweep_folder)
    written = {
        "facts": database_report(load(EXAMPLES / "figure-1.ttl")),
        "hostile": database_report(Database.from_triples(rows, multi="keep")),
        "sweep": of_sweep,
        "recall": recall_report(by_hand().table.assign(subject=HOSTILE, template="w" * 3000)),
        "attention": attention_report(layer.capture(torch.arange(9)[None]), [HOSTILE[:20]] * 9),
    }
    paths = {name: folder / f"{name}.html" for name in written}
    for name, text in written.items():
        paths[name].write_text(text, encoding="utf-8")
    return paths


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Iterator[Callable[..., Any]]:
    """Open a page of a kind; in the end, nothing was fetched and no error was told."""
    contexts: list[Any] = []
    asked: list[str] = []
    told: list[str] = []

    def page_of(kind: str, width: int = 1600, scheme: str = "light") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.goto(pages[kind].as_uri())
        return page

    yield page_of
    for context in contexts:
        context.close()
    assert not told
    files = {path.as_uri() for path in pages.values()}
    assert asked
    assert all(url.startswith("data:") or url.partition("#")[0] in files for url in asked)


# texts of pictures: size as it is drawn, and contrast with what they stand on
MEASURE_PICTURES = """
() => {
  const told = [];
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = c => {
    const [r, g, b] = c.map(v => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const solid = element => {
    const style = getComputedStyle(element);
    return style.fill !== "none" && style.fillOpacity > 0.2 ? rgb(style.fill) : null;
  };
  let n = 0;
  for (const text of document.querySelectorAll("svg text")) {
    n += 1;
    const style = getComputedStyle(text);
    const size = parseFloat(style.fontSize) * text.getScreenCTM().a;
    if (size < 11.999) told.push(`${size}px: ${text.textContent}`);
    const box = text.getBoundingClientRect();
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    const under = [...text.closest("figure").querySelectorAll("svg rect")].filter(rect => {
      const b = rect.getBoundingClientRect();
      return solid(rect) && b.left <= x && x <= b.right && b.top <= y && y <= b.bottom;
    }).pop();
    const back = under ? solid(under) : rgb(getComputedStyle(document.body).backgroundColor);
    const [a, b] = [light(rgb(style.fill)), light(back)].sort((p, q) => q - p);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) told.push(`contrast ${ratio.toFixed(2)}: ${text.textContent}`);
  }
  return [n, told];
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_pages_can_be_read(opened: Callable[..., Any], kind: str, width: int, scheme: str) -> None:
    page = opened(kind, width, scheme)
    assert page.evaluate(MEASURE) == []
    n, told = page.evaluate(MEASURE_PICTURES)
    assert told == []
    # a page of answers has tables alone
    assert n > 0 or kind == "recall"


def test_the_measure_of_pictures_finds_what_cannot_be_read(browser: Any) -> None:
    page = browser.new_page()
    page.set_content(
        '<body style="background: #fff"><figure><svg width="90" height="90" viewBox="0 0 900 900">'
        '<rect width="900" height="450" fill="#000"></rect><text y="99" font-size="99">a</text>'
        '</svg><svg><text y="20" font-size="16" fill="#ccc">b</text></svg></figure>'
    )
    n, told = page.evaluate(MEASURE_PICTURES)
    assert n == 2
    # 99 units of a tenth of a pixel, black on black; and grey on white
    assert [one.split(":")[0] for one in told] == ["9.9px", "contrast 1.00", "contrast 1.61"]
    page.close()


def test_both_schemes_are_drawn(opened: Callable[..., Any]) -> None:
    grounds = {
        scheme: opened("facts", 1600, scheme).evaluate(
            "() => getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    }
    assert grounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_screen_shows_no_word_of_algebra(opened: Callable[..., Any], width: int) -> None:
    seen = opened("facts", width).evaluate("""
        () => {
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          const seen = [];
          while (walker.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(walker.currentNode);
            const box = range.getBoundingClientRect();
            if (box.width && box.top < innerHeight && box.bottom > 0)
              seen.push(walker.currentNode.textContent);
          }
          return seen.join(" ");
        }
    """)
    assert "How large is it?" in seen
    assert not ALGEBRA.findall(seen)


def order_of(page: Any, table: str, column: int) -> list[str]:
    cells = page.locator(f"#{table} tbody tr > :nth-child({column + 1})")
    return cells.evaluate_all("cells => cells.map(cell => cell.dataset.value)")


def test_a_heading_sorts_by_exact_values_and_says_its_order(opened: Callable[..., Any]) -> None:
    page, rows = opened("facts"), describe(load(EXAMPLES / "figure-1.ttl")).predicates
    headings = page.locator("#predicates thead th")
    titles = headings.all_inner_texts()
    facts = next(i for i, title in enumerate(titles) if title.split() == ["facts"])
    # numbers begin with the largest
    headings.nth(facts).locator("button").click()
    assert headings.nth(facts).get_attribute("aria-sort") == "descending"
    assert [int(n) for n in order_of(page, "predicates", facts)] == sorted(
        (row.facts for row in rows), reverse=True
    )
    headings.nth(facts).locator("button").click()
    assert headings.nth(facts).get_attribute("aria-sort") == "ascending"
    assert [int(n) for n in order_of(page, "predicates", facts)] == sorted(
        row.facts for row in rows
    )
    # names with the first; and only one column says that it sorts
    headings.nth(0).locator("button").click()
    assert order_of(page, "predicates", 0) == sorted(
        (row.name for row in rows), key=lambda name: name.lower()
    )
    orders = [headings.nth(i).get_attribute("aria-sort") for i in range(len(titles))]
    assert orders == ["ascending", *["none"] * (len(titles) - 1)]


def test_tables_sort_by_the_keyboard_alone(opened: Callable[..., Any]) -> None:
    page = opened("facts")
    for _ in range(60):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "() => [document.activeElement.closest('table')?.id, document.activeElement.innerText]"
        )
        if here == ["predicates", "facts"]:
            break
    else:
        pytest.fail("Tab never reached the heading.")
    line = page.locator("#predicates").locator("xpath=ancestor::*[@data-explained]//p")
    assert line.inner_text() == "Number of its facts."
    # the focus can be seen
    style = "() => getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate(style) == "3px"
    page.keyboard.press("Enter")
    assert line.inner_text().startswith("Sorted by facts, descending.")
    page.keyboard.press(" ")
    assert line.inner_text().startswith("Sorted by facts, ascending.")
    # the focus stays where it was
    assert page.evaluate("() => document.activeElement.innerText") == "facts"


@pytest.mark.parametrize("kind", ["facts", "sweep", "attention"])
def test_marks_are_explained_by_mouse_and_by_arrow_keys(
    opened: Callable[..., Any], kind: str
) -> None:
    page = opened(kind)
    boxes = page.locator("[data-explained]:has(.mark)")
    assert boxes.count() >= 1
    for i in range(boxes.count()):
        marks, line = boxes.nth(i).locator(".mark"), boxes.nth(i).locator(".says")
        assert boxes.nth(i).locator('.mark[tabindex="0"]').count() == 1
        said = [marks.nth(j).get_attribute("data-says") for j in (0, 1, marks.count() - 1)]
        marks.nth(0).focus()
        assert line.inner_text() == said[0]
        page.keyboard.press("ArrowRight")
        assert line.inner_text() == said[1]
        page.keyboard.press("End")
        assert line.inner_text() == said[2]
        page.keyboard.press("ArrowDown")
        assert line.inner_text() == said[2]
        page.keyboard.press("Home")
        assert line.inner_text() == said[0]
        assert boxes.nth(i).locator('.mark[tabindex="0"]').count() == 1
        marks.nth(1).dispatch_event("mouseover")
        assert line.inner_text() == said[1]


def test_wide_tables_scroll_in_their_own_boxes_which_the_keyboard_reaches(
    opened: Callable[..., Any],
) -> None:
    page = opened("facts", 400)
    wide = page.evaluate("""
        () => [...document.querySelectorAll(".scroll")].map(box =>
          [box.scrollWidth > box.clientWidth, box.tabIndex, box.getAttribute("aria-label")])
    """)
    assert any(scrolls for scrolls, _, _ in wide)
    assert all(index == 0 and label for _, index, label in wide)


def test_a_certificate_can_be_saved_from_the_page(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    page = opened("facts")
    with page.expect_download() as waiting:
        page.locator("a[download='rank.json']").click()
    waiting.value.save_as(tmp_path / "rank.json")
    link = page.locator("a[download='rank.json']").get_attribute("href")
    assert json.loads((tmp_path / "rank.json").read_text()) == json.loads(
        base64.b64decode(link.partition(",")[2])
    )


def test_a_policy_stops_scripts_that_are_not_the_pages_own(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    # as a fault of the escaping would let them in
    bad = "<script>document.title = 'run'</script><img src='x' onerror='document.title = 2'></main>"
    path = tmp_path / "bad.html"
    path.write_text(pages["facts"].read_text(encoding="utf-8").replace("</main>", bad), "utf-8")
    page, told = browser.new_page(), []
    page.on("console", lambda message: told.append(message.text))
    page.goto(path.as_uri())
    assert page.title() == "figure-1.ttl on one page"
    assert any("Content Security Policy" in text for text in told)
    page.close()


@pytest.mark.parametrize("kind", KINDS)
def test_pages_print(opened: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    page = opened(kind, 1600, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    # what is wider than the paper is shrunk to fit, by a third at most; headings stay words
    page.set_viewport_size({"width": 718, "height": 1000})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1.5 * 718
    headings = page.locator("thead th")
    assert all(headings.nth(i).bounding_box()["height"] < 100 for i in range(headings.count()))
    # on white, whatever the scheme of the screen is
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    raw = page.pdf(format="A4", print_background=True, path=str(tmp_path / "page.pdf"))
    assert raw.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", raw)) >= 1
