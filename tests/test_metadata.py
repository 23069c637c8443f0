"""Metadata agree: pyproject, CITATION, codemeta and the paper."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from typing import Any

import pytest
import yaml

import capacity
from capacity.optional import EXTRAS
from tests.oracles import EXAMPLES, ROOT

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


def test_licences_of_what_others_made_are_in_the_package() -> None:
    listed = {path for glob in PROJECT["license-files"] for path in ROOT.glob(glob)}
    made_by_others = {path for path in (ROOT / "capacity").rglob("LICENSE*") if path.is_file()}
    assert made_by_others
    assert made_by_others <= listed


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


EXTRAS_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def without(package: str, code: str) -> str:
    """The error that code ends with in a process that hasn't a package."""
    # an import of None is refused, as of what isn't installed
    script = f"import sys\nsys.modules[{package!r}] = None\nimport capacity\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1, done
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [("torch", "capacity.AttentionLayer", "layers"),
     ("torch", "capacity.train", "layers"),
     ("torch", "from capacity.layer import train", "layers"),
     ("pandas", "capacity.evaluator.accuracy_grid", "plots"),
     ("pandas", "capacity.database.to_pandas(capacity.load(FILE))", "plots"),
     ("seaborn", "import pandas as pd\n"
      "capacity.plots.plot_accuracy_grid(pd.DataFrame({'mean': [0.5]}))", "plots"),
     ("seaborn", "import pandas as pd\n"
      "capacity.plots.plot_matrices({'one': pd.DataFrame([[0.5]])})", "plots"),
     ("matplotlib", "from capacity.layer import Training\n"
      "capacity.plots.plot_training(Training('completed', 1, 0.5, 'toy'))", "plots"),
     ("matplotlib", "capacity.plots.plot_database(capacity.load(FILE))", "plots"),
     ("pandas", "from capacity.layer import History\nHistory().to_pandas()", "plots"),
     ("jinja2", "capacity.report.database_report(capacity.load(FILE))", "report"),
     ("networkx", "capacity.database.to_networkx(capacity.load(FILE))", "networkx"),
     ("rdflib", "capacity.database.to_rdflib(capacity.load(FILE))", "rdflib"),
     ("openpyxl", "import pathlib, tempfile\nbook = pathlib.Path(tempfile.mkdtemp(), 'a.xlsx')\n"
      "book.touch()\ncapacity.load(book)", "excel"),
     ("urllib3", "capacity.Database.from_sparql('http://127.0.0.1:9/', "
      "'SELECT ?s ?o { ?s ?p ?o }')", "sparql"),
     ("tensorly", "capacity.cp_estimate(capacity.load(FILE))", "cp"),
     ("tensorly", "capacity.rank.cp_decompose(capacity.load(FILE), 5)", "cp"),
     ("pyttb", "capacity.rank.cp_decompose(capacity.load(FILE), 5, method='lbfgs')", "pyttb"),
     ("pykeen", "capacity.database.to_pykeen(capacity.load(FILE))", "pykeen"),
     ("hypothesis", "from capacity.testing import databases", "testing"),
     ("transformers", "capacity.transformer.load_pretrained('.')", "transformers")],
)  # fmt: skip
def test_without_an_extra_the_function_names_it(package: str, code: str, extra: str) -> None:
    said = without(package, code.replace("FILE", repr(str(EXAMPLES / "figure-1.ttl"))))
    assert said.startswith("capacity.errors.MissingExtraError: "), said
    assert f" needs {package}; install the extra `{extra}`" in said


@pytest.mark.slow
def test_a_star_import_needs_no_torch() -> None:
    said = without("torch", "from capacity import *\nprint(rank_interval, layer, sweep)\n1 / 0")
    assert said.startswith("ZeroDivisionError")


@pytest.mark.slow
def test_every_optional_package_is_in_its_extra_and_in_all() -> None:
    extras = EXTRAS_PROJECT["optional-dependencies"]
    names = {package: packages_distributions().get(package, [package])[0].lower()
             for package in EXTRAS}  # fmt: skip
    for package, extra in EXTRAS.items():
        # matplotlib comes with seaborn
        wanted = "seaborn" if package == "matplotlib" else names[package]
        assert any(one.startswith(wanted) for one in extras[extra]), (package, extra)
    everything = extras["all"][0]
    # pyttb is for one comparison, gguf for one format; PyKEEN brings twenty packages, and triton a
    # gigabyte
    rare = {"pyttb", "pykeen", "gpu", "gguf"}
    assert all(extra in everything for extra in {*EXTRAS.values()} - rare)


def test_the_base_install_has_no_optional_package() -> None:
    base = {one.split(">")[0].replace("-", "_") for one in EXTRAS_PROJECT["dependencies"]}
    assert not base & EXTRAS.keys()
