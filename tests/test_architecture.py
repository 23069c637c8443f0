"""The page on architecture: its picture shows today's imports, and what it names is there."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import networkx as nx
import pytest

from tests.oracles import ROOT
from tools import draw_architecture as drawing

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


# all modules of the library are parsed
@pytest.mark.slow
def test_the_picture_shows_the_imports_of_today() -> None:
    # `python tools/draw_architecture.py` draws it anew
    assert drawing.text_of() == drawing.as_text(drawing.edges())


def test_arrows_lead_downward() -> None:
    pairs = [(one, other) for one, _, other in map(str.split, drawing.text_of().split("; "))]
    graph = nx.DiGraph(pairs)
    height = drawing.rows(graph)
    assert all(height[one] > height[other] for one, other in pairs)
    # each box has a place and a purpose, and no place is left over
    assert set(height) == set(drawing.ROOMS)
    # boxes of one row don't overlap: the widest is 1.9 wide
    for one, other in itertools.combinations(height, 2):
        if height[one] == height[other]:
            assert abs(drawing.ROOMS[one][0] - drawing.ROOMS[other][0]) > 2


def test_edges_are_those_of_imports_that_run(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "__init__.py").touch()
    (tmp_path / "errors.py").write_text("import numpy\n")
    (tmp_path / "one" / "a.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from capacity.errors import CapacityError\n"
        "if TYPE_CHECKING:\n    from capacity.three import x\n"
        "def f():\n    from capacity import two\n    import numpy\n    import capacity.one.b\n"
    )
    assert drawing.edges(tmp_path) == [("one", "foundations"), ("one", "two")]
    assert drawing.as_text([("one", "two")]) == "one imports two"


def test_every_file_and_function_that_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:capacity|tools|experiments)/[\w/.]*)`", PAGE)
    assert len(named) > 40
    for path in named:
        assert (ROOT / path).exists(), path
    faces = (ROOT / "capacity").rglob("*.pyi")
    sources = "".join(path.read_text(encoding="utf-8") for path in faces)
    registered = set(re.findall(r"`(register_\w+)`", PAGE))
    assert registered == set(re.findall(r"\b(?<!un)(register_\w+) as", sources))
