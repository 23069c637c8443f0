"""The page for contributors: its code runs, and what it says of commands and versions is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.oracles import ROOT
from tools.oldest_versions import oldest

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# the name of a module -> its code
MODULES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
GITHUB = ROOT / ".github"
NO_TORCH = ["test_w_state.py", "test_find_w_state.py", "test_barred.py"]


def pytest_of(folder: Path, *options: str) -> str:
    """Write the page's modules to a folder and run pytest there; return its output."""
    for name, code in MODULES.items():
        (folder / name).write_text(code, encoding="utf-8")
    # in a process of its own, where nothing stays registered
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    config = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-o", "pythonpath="]
    paths = os.pathsep.join([str(folder), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [*run, *config, *options], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_kind_the_bound_and_the_format_of_the_page_pass_their_tests_without_torch(
    tmp_path: Path,
) -> None:
    refuse = "import sys\nsys.modules['torch'] = None\n"
    (tmp_path / "no_torch.py").write_text(refuse, encoding="utf-8")
    assert "5 passed" in pytest_of(tmp_path, "-p", "no_torch", *NO_TORCH)


# imports torch, pandas and matplotlib in a process of its own
@pytest.mark.slow
def test_the_engine_and_the_experiment_of_the_page_pass_their_tests(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    others = sorted(name for name in MODULES if name.startswith("test_") and name not in NO_TORCH)
    assert "3 passed" in pytest_of(tmp_path, *others)


def test_each_module_of_the_page_is_short_and_has_a_test() -> None:
    modules = [name for name in MODULES if not name.startswith("test_")]
    assert {f"test_{name}" for name in modules} == MODULES.keys() - {*modules}
    assert len(modules) == 6
    assert max(map(len, "".join(MODULES.values()).splitlines())) <= 100


def test_what_the_page_names_is_there() -> None:
    for name in re.findall(r"`((?:capacity|tests|tools|docs|experiments|\.github)/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"\]\(([\w/.]+)\)", PAGE):
        assert (ROOT / name).exists(), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"^make ([\w-]+)", PAGE, re.MULTILINE)}
    assert targets >= {"quick", "test", "test-full", "check"}
    assert all(f"\n{target}:" in makefile for target in targets)


# ---- the workflow and the forms ------------------------------------------------------------------


def parsed(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_workflow_tests_the_versions_of_python_that_the_metadata_names() -> None:
    jobs = parsed(GITHUB / "workflows" / "test.yml")["jobs"]
    named = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if ":: Python :: 3." in c]
    assert jobs["quick"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    full = [each["python"] for each in jobs["full"]["strategy"]["matrix"]["include"]]
    assert full == [named[0], named[-1]]


def test_the_workflow_runs_the_tests_of_the_makefile_with_pinned_actions() -> None:
    jobs = parsed(GITHUB / "workflows" / "test.yml")["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)
    commands = [step["run"].strip() for step in steps if "run" in step]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("quick", "test-quick"):
        recipe = re.findall(rf"^{target}:.*\n\t\$\(PYTEST\) (.*)", makefile, re.MULTILINE)
        assert f"python -m pytest -q -n auto {recipe[0]}" in commands
    assert "make check" in commands


def test_the_forms_of_issues_ask_for_something() -> None:
    forms = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 4
    for path in forms:
        form = parsed(path)
        if path.name == "config.yml":
            continue
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert form["name"]
        assert form["description"]
        assert len({field["id"] for field in fields}) == len(fields)
        assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_lowest_versions_are_those_of_the_metadata() -> None:
    pins = oldest([])
    assert [pin.replace("==", ">=") for pin in pins] == PROJECT["dependencies"]
    assert {*pins} < {*oldest(["testing", "plots"])}
    # an extra that names others has their packages, too
    assert {*oldest(["layers", "plots"])} < {*oldest(["transformers"])} < {*oldest(["all"])}
    with pytest.raises(SystemExit, match="must be one of layers"):
        oldest(["nothing"])
