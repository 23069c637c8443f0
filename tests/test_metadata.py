"""Metadata agree: pyproject, CITATION, codemeta and the paper."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import yaml

import capacity
from tests.oracles import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA: dict[str, Any] = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
PAPER = (ROOT / "paper.md").read_text(encoding="utf-8")
HEAD: dict[str, Any] = yaml.safe_load(PAPER.split("---\n")[1])
BIBLIOGRAPHY = (ROOT / "paper.bib").read_text(encoding="utf-8")


def test_versions_and_licences_agree() -> None:
    assert capacity.__version__ == str(CITATION["version"]) == CODEMETA["version"]
    assert PROJECT["license"] == CITATION["license"] == CODEMETA["license"].rpartition("/")[2]
    assert PROJECT["requires-python"].replace(">=", ">= ") in CODEMETA["runtimePlatform"]


def test_names_agree() -> None:
    authors = [author["name"] for author in PROJECT["authors"]]
    assert authors == [author["name"] for author in CITATION["authors"]]
    assert authors == [author["name"] for author in CODEMETA["author"]]
    assert authors == [author["name"] for author in HEAD["authors"]]
    assert PROJECT["name"] == CODEMETA["identifier"]
    assert PROJECT["description"] == CODEMETA["description"]
    assert HEAD["title"] == CITATION["title"]


def test_keywords_and_requirements_agree() -> None:
    assert PROJECT["keywords"] == CITATION["keywords"] == CODEMETA["keywords"] == HEAD["tags"]
    base = [re.split(r"[<>=]", one)[0] for one in PROJECT["dependencies"]]
    assert base == CODEMETA["softwareRequirements"]


def test_the_paper_they_build_on_is_one() -> None:
    (reference,) = CITATION["references"]
    (publication,) = CODEMETA["referencePublication"]
    assert reference["title"] == publication["name"]
    assert reference["url"] == publication["url"] == PROJECT["urls"]["Paper"]
    assert reference["title"] in " ".join(BIBLIOGRAPHY.split())


def test_the_journals_sections_are_there_and_references_resolve() -> None:
    headings = re.findall(r"^# (.*)$", PAPER, re.MULTILINE)
    assert headings == [
        "Summary", "Statement of need", "State of the field", "Software design",
        "Research impact statement", "AI usage disclosure", "References",
    ]  # fmt: skip
    cited = set(re.findall(r"@([\w-]+)", PAPER.split("---\n", 2)[2]))
    entries = re.findall(r"^@\w+\{([\w-]+),(.*?)^\}", BIBLIOGRAPHY, re.MULTILINE | re.DOTALL)
    assert cited == {key for key, _ in entries}
    for key, entry in entries:
        assert re.search(r"doi\s*=\s*\{10\.\d{4,}/\S+\}", entry), key
    words = len(re.sub(r"\W+", " ", PAPER.split("---\n", 2)[2]).split())
    assert 250 <= words <= 1750
    disclosure = PAPER.split("# AI usage disclosure")[1].split("\n# ")[0]
    assert "left to the owner" in disclosure
