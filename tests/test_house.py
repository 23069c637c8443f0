"""The house is in order: modules, folders, the page on architecture, and records of tests.

The record is of a commit: once a tenth of today's quick tests aren't in it, it has to be made anew.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import grimp
import networkx as nx
import pytest

from tests.oracles import ROOT
from tools import draw_architecture as drawing
from tools import house
from tools.durations import MOST


@pytest.mark.slow
def test_no_module_has_more_code_than_one_may() -> None:
    assert house.too_long(house.modules()) == {}


def test_no_folder_has_more_than_a_dozen_files() -> None:
    assert house.crowded(house.modules()) == {}


# the graph of all imports takes seconds
@pytest.mark.slow
def test_modules_name_each_other_in_no_circle_but_through_database() -> None:
    # import-linter's contract leaves out annotations; `Database` alone has methods that call
    # functions, and are annotated with classes, of modules that take one
    graph = grimp.build_graph("capacity", exclude_type_checking_imports=False, cache_dir=None)
    arrows = nx.DiGraph(
        (one, other)
        for one in graph.modules
        for other in graph.find_modules_directly_imported_by(one)
    )
    assert arrows.has_edge("capacity.database.collection", "capacity.database.facts")
    arrows.remove_node("capacity.database.facts")
    circles = [room for room in nx.strongly_connected_components(arrows) if len(room) > 1]
    assert circles == []


def test_code_is_counted_and_not_prose(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    # four lines of code: the import, the definition, and two of its body
    path.write_text('"""One.\n\nTwo.\n"""\n\nimport os\n\n\n# three\ndef f():\n    """Four."""\n'
                    "    return os.path.join(\n        'a')\n")  # fmt: skip
    module = house.Module(path)
    assert (module.code, len(module.docstrings)) == (4, 5)


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


LIST = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]


def test_each_fault_has_one_place() -> None:
    places = [(ROOT / one["file"]).read_text(encoding="utf-8").count(one["old"]) for one in LIST]
    assert places == [1] * len(LIST)


def test_the_record_is_of_these_faults() -> None:
    record = json.loads((ROOT / "tests" / "mutants.json").read_text(encoding="utf-8"))
    faults = [{key: row[key] for key in ("file", "old", "new")} for row in record["rows"]]
    assert faults == [{key: one[key] for key in ("file", "old", "new")} for one in LIST]


CASE = '<testcase classname="tests.a" name="test_b" time="1.5"/>'
REPORT = '<testsuites><testsuite errors="0" failures="{n}" skipped="1" tests="3" time="9">{case}'


def test_the_record_is_of_a_run_without_failures() -> None:
    record = json.loads((ROOT / "tests" / "full.json").read_text(encoding="utf-8"))
    # a run of all laws and of the tests of minutes has some hundred
    assert record["passed"] > 300
    assert len(record["commit"]) == 40
    known = subprocess.run(["git", "cat-file", "-t", record["commit"]], cwd=ROOT,
                           capture_output=True, text=True, check=False)  # fmt: skip
    # a shallow clone may not have it
    assert known.stdout.strip() in ("commit", "")


@pytest.mark.parametrize("n", [1, 2])
def test_a_run_with_failures_leaves_no_record(n: int, tmp_path: Path) -> None:
    before = (ROOT / "tests" / "full.json").read_bytes()
    report = tmp_path / "full.xml"
    report.write_text(REPORT.format(n=n, case=CASE) + "</testsuite></testsuites>")
    done = subprocess.run([sys.executable, ROOT / "tools" / "full_tests.py", report],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert f"{n} of 3 tests failed" in done.stderr
    assert (ROOT / "tests" / "full.json").read_bytes() == before


# a session of fewer tests is of some files alone
ALL = 1_000


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return json.loads((ROOT / "tests" / "durations.json").read_text(encoding="utf-8"))


def share_known(tests: list[str], record: dict[str, Any]) -> float:
    """The share of tests, by the names of their modules, that a record has at most."""
    today = Counter(tests)
    return sum(min(n, record["tests_of"].get(name, 0)) for name, n in today.items()) / len(tests)


def test_quick_tests_take_at_most_two_seconds(record: dict[str, Any]) -> None:
    assert record["tests"] > ALL
    assert {name: s for name, s in record["seconds"].items() if s > MOST} == {}


def test_the_record_knows_nearly_all_of_todays_quick_tests(
    request: pytest.FixtureRequest, record: dict[str, Any]
) -> None:
    quick = [
        item.nodeid.partition("::")[0].removesuffix(".py").replace("/", ".")
        for item in request.session.items
        if item.get_closest_marker("slow") is None and item.nodeid.startswith(("tests", "capacity"))
    ]
    if len(quick) < ALL:
        pytest.skip("some files alone were collected")
    assert share_known(quick, record) >= 0.9, "Run `make durations` on an idle machine."


def test_a_test_that_came_later_is_not_known() -> None:
    record = {"tests_of": {"tests.test_one": 2}}
    assert share_known(["tests.test_one"] * 2, record) == 1
    # one more in a file that is known, and a file that isn't
    assert share_known(["tests.test_one"] * 3 + ["tests.test_two"], record) == 0.5
