"""What loads when: asking for a rank must stay quick, and some rooms know no torch."""

import subprocess
import sys

import pytest

from tests.oracles import EXAMPLES

HEAVY = {"pandas", "rdflib", "networkx", "tensorly", "numba", "torch", "seaborn", "matplotlib",
         "pyarrow", "hypothesis"}  # fmt: skip


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return {name.split(".")[0] for name in result.stdout.splitlines()[-1].split()}


def test_the_rank_command_loads_nothing_heavy() -> None:
    arguments = ["rank", str(EXAMPLES / "figure-1.ttl")]
    loaded = modules_after(f"from capacity.cli import _run; assert _run({arguments!r}) == 0")
    assert not loaded & HEAVY
    assert {"numpy", "scipy", "pyoxigraph", "flint", "typer"} <= loaded


@pytest.mark.parametrize(
    "module",
    ["capacity", "capacity.layer.config", "capacity.layer.recipe", "capacity.sweep.plan",
     "capacity.sweep.store", "capacity.evaluator.grid", "capacity.plots", "capacity.database",
     "capacity.rank"],
)  # fmt: skip
def test_rooms_without_torch(module: str) -> None:
    assert not modules_after(f"import {module}") & {"torch", "seaborn"}


def test_every_public_name_loads() -> None:
    code = """
import capacity
rooms = ("database", "rank", "layer", "evaluator", "sweep", "transformer")
for room in (capacity, *(getattr(capacity, room) for room in rooms)):
    for name in room.__all__:
        assert getattr(room, name) is not None, name
        assert name in dir(room)
"""
    modules_after(code)


@pytest.mark.parametrize(
    ("missing", "extra", "arguments"),
    [("torch", "layers", ["train", str(EXAMPLES / "figure-1.ttl")]),
     ("torch", "transformers", ["attention", "folder", "--text", "hi"]),
     ("transformers", "transformers", ["attention", "folder", "--text", "hi"])],
)  # fmt: skip
def test_without_an_extra_its_commands_say_what_to_install(
    missing: str, extra: str, arguments: list[str]
) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
import importlib.util as u
real = u.find_spec
u.find_spec = lambda name, *a: None if name == {missing!r} else real(name, *a)
from capacity.cli import _run
assert _run({arguments!r}) == 2
assert _run(["rank", {str(EXAMPLES / "figure-1.ttl")!r}]) == 0
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"needs {missing}; install" in result.stderr
    assert f"pip install 'knowledge-capacity[{extra}]'" in result.stderr
