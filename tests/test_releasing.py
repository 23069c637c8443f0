"""Pages on releases and stability name what is there, and every public room has a status."""

from __future__ import annotations

import re

import capacity
from tests.oracles import ROOT
from tests.test_face import faces

RELEASING = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
STABILITY = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
FAMILIES = (ROOT / "docs" / "families.md").read_text(encoding="utf-8")
PAPER = (ROOT / "paper.md").read_text(encoding="utf-8")


def test_every_target_and_file_of_a_release_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`", RELEASING))
    assert {"release-check", "test", "test-full", "bench", "docs"} <= targets
    assert all(f"\n{target}:" in makefile for target in targets)
    files = set(re.findall(r"\b((?:tests|tools|benchmarks|capacity)/[\w/]+\.\w+)", RELEASING))
    files |= set(re.findall(r"`([\w-]+\.(?:toml|md|cff|json))`", RELEASING))
    assert len(files) > 8
    assert all((ROOT / name).exists() for name in files), files


def test_every_room_has_a_status() -> None:
    rows = re.findall(r"^\| (.*) \| ((?:stable|provisional|no interface)\b.*) \|$", STABILITY,
                      re.MULTILINE)  # fmt: skip
    named = " ".join(part for part, _ in rows)
    rooms = {face.__name__ for face in faces()} | {"capacity.errors"}
    assert {room for room in rooms if f"`{room}`" not in named} == set()
    # and what is stable by name is public
    public = {name for face in faces() for name in dir(face)}
    for part, status in rows:
        if status.startswith("stable") and part.startswith("`capacity."):
            names = set(re.findall(r"`(\w+)`", part))
            assert names <= public, names - public


def test_what_the_package_has_is_in_the_source_that_is_published() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    included = set(re.findall(r'"/([^"]+)"', text))
    # what is committed at the top, but for what git alone reads
    there = {path.name for path in ROOT.iterdir()}
    missing = {"README.md", "CHANGELOG.md", "capacity", "tests", "tools", "docs", "Makefile",
               "constraints.txt", "paper.md", "LICENSE", "CITATION.cff"} - included  # fmt: skip
    assert not missing
    assert included <= there


def test_the_paper_says_how_many_types_of_models_were_tried() -> None:
    (counts,) = re.findall(r"(\d+) of (\d+) types are captured", FAMILIES)
    assert "({} of {} types of models tried)".format(*counts) in PAPER


def test_the_version_is_that_of_the_changelogs_first_section() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (version, date), *_ = re.findall(r"^## (\S+) - (\S+)$", text, re.MULTILINE)
    assert version == capacity.__version__
    assert re.fullmatch(r"unreleased|\d{4}-\d{2}-\d{2}", date)
