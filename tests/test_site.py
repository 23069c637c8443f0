"""The site: it builds without a warning, is whole, and can be read on a telephone and at night."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup
from filelock import FileLock
from sphinx.util.inventory import InventoryFile

from capacity import errors
from tests.browser import MEASURE, chromium
from tests.oracles import ROOT
from tests.test_face import faces, public
from tools.executed import NOTEBOOKS, TUTORIALS, executed, files_of, words
from tools.words import pages_of_docs

DOCS = ROOT / "docs"
PAGES = pages_of_docs()
PAGES_OF_THEIR_OWN = {face.__name__.rpartition(".")[2] for face in faces()} | {"errors"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; one worker builds it, with every cell of every page executed."""
    own = tmp_path_factory.getbasetemp()
    # workers have folders within that of the run
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "site"
    with FileLock(shared / "site.lock"):
        if not (folder / "objects.inv").exists():
            command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs",
                       "-D", f"nb_execution_cache_path={shared / 'executed'}"]  # fmt: skip
            done = subprocess.run(
                [*command, ".", str(folder)], cwd=ROOT, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_it_builds_without_a_warning(site: Path) -> None:
    assert (site / "docs" / "index.html").exists()
    # the folder itself leads to the first page
    assert "docs/index.html" in (site / "index.html").read_text()


@pytest.mark.parametrize("page", [*TUTORIALS, *NOTEBOOKS], ids=lambda path: path.name)
def test_the_repository_shows_what_the_cells_of_a_page_give(site: Path, page: Path) -> None:
    notebook = executed(page, site.parent / "executed")
    for path, content in files_of(page, notebook).items():
        assert path.exists(), "Run make pages"
        if path.suffix != ".png":
            assert words(path.read_text("utf-8")) == words(content.decode())


def test_every_public_name_is_documented(site: Path) -> None:
    with (site / "objects.inv").open("rb") as file:
        inventory: Any = InventoryFile.loads(file.read(), uri="").data
    documented = {name for kind, names in inventory.items() if kind.startswith("py:")
                  for name in names}  # fmt: skip
    wanted = {f"{face.__name__}.{name}" for face in faces() for name in public(face)
              if face.__name__ != "capacity"}  # fmt: skip
    wanted |= {f"capacity.errors.{name}" for name, value in vars(errors).items()
               if isinstance(value, type) and value.__module__ == "capacity.errors"}  # fmt: skip
    # a name of two rooms is documented in the one that defines it
    missing = {name for name in wanted - documented if _defined_at(name) not in documented}
    assert not missing
    # the top level has no name that a room hasn't
    page = (site / "docs" / "api" / "capacity.html").read_text()
    assert all(f'id="{name.lower()}"' in page or name.startswith("_") or name in PAGES_OF_THEIR_OWN
               for name in public(faces()[0]))  # fmt: skip


def _defined_at(name: str) -> str:
    room, _, own = name.rpartition(".")
    return f"{getattr(importlib.import_module(room), own).__module__}.{own}"


def links(page: Path) -> Iterator[str]:
    for tag in BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").find_all(
        ["a", "img", "script", "link"]
    ):
        target = tag.get("href") or tag.get("src")
        if isinstance(target, str) and not re.match(r"[a-z]+:|//|data:", target):
            yield target


def test_no_link_is_dead_and_nothing_is_fetched(site: Path) -> None:
    anchors: dict[Path, set[str]] = {}

    def of(page: Path) -> set[str]:
        if page not in anchors:
            soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
            anchors[page] = {str(tag["id"]) for tag in soup.find_all(id=True)}
        return anchors[page]

    dead: list[str] = []
    for page in site.rglob("*.html"):
        for target in links(page):
            name, _, anchor = unquote(target).partition("#")
            path = page if not name else (page.parent / name.partition("?")[0]).resolve()
            if not path.exists() or (anchor and path.suffix == ".html" and anchor not in of(path)):
                dead.append(f"{page.relative_to(site)}: {target}")
    assert not dead
    # scripts and styles are in the folder, so that pages and their search work without a network
    outside = r'<(?:script|link rel="stylesheet")[^>]+(?:src|href)="(?:https?:)?//'
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(outside, text)
    assert (site / "searchindex.js").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_every_code_block_of_a_page_runs(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^(?:```|~~~|:::+)(.*)$", text, re.MULTILINE)
    # fences come in pairs, and the second has no kind
    assert len(fences) % 2 == 0
    assert not any(fences[1::2])
    blocks = {re.sub(r"[{}]", "", kind).split(" ")[0] for kind in fences[::2]}
    allowed = {"code-cell", "text", "toctree", "note", "warning", "eval-rst", "math"}
    # an example that a test of sweeps reads
    assert not blocks - allowed - ({"toml"} if page.name == "sweep-reference.md" else set())
    assert "raises-exception" not in text
    if "code-cell" in blocks:
        assert text.startswith("---\nfile_format: mystnb\n")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


def test_pages_can_be_read(site: Path, browser: Any) -> None:
    page = browser.new_page()
    told: dict[tuple[str, int, str], list[str]] = {}
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in sorted(site.rglob("*.html")):
        name = str(path.relative_to(site))
        # the index of the root leads on at once
        if name == "index.html":
            continue
        page.goto(path.as_uri())
        for width, scheme in product((400, 1600), ("light", "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate(MEASURE)
            if found:
                told[name, width, scheme] = found
    page.close()
    assert not told
    # nothing comes from a network
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked)


def test_the_measure_finds_what_cannot_be_read(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 900})
    page.set_content(
        '<body style="background: white"><p style="font-size: 8px">small</p>'
        '<p style="color: #aaa">pale</p><div style="width: 900px">wide</div></body>'
    )
    told = " ".join(page.evaluate(MEASURE))
    assert "8px" in told
    assert "contrast" in told
    assert "scrolls sideways" in told
    page.close()


def test_search_works_from_a_folder(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "search.html").as_uri() + "?q=substitution")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert page.locator("#search-results li").count() >= 3
    page.close()
