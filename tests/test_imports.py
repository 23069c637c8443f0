"""What loads when: asking for a rank must stay quick, and some rooms know no torch."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracles import EXAMPLES, ROOT

HEAVY = {"pandas", "rdflib", "networkx", "tensorly", "numba", "torch", "seaborn", "matplotlib",
         "pyarrow", "hypothesis", "scipy.sparse.csgraph"}  # fmt: skip


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    names = result.stdout.splitlines()[-1].split()
    return {name.split(".")[0] for name in names} | {"scipy.sparse.csgraph"} & set(names)


@pytest.mark.slow
def test_the_rank_command_loads_nothing_heavy() -> None:
    arguments = ["rank", str(EXAMPLES / "figure-1.ttl")]
    loaded = modules_after(f"from capacity.cli import _run; assert _run({arguments!r}) == 0")
    assert not loaded & HEAVY
    assert {"numpy", "scipy", "pyoxigraph", "flint", "typer"} <= loaded


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["capacity", "capacity.layer.model.config", "capacity.layer.run.recipe", "capacity.sweep.plan",
     "capacity.sweep.storage.store", "capacity.evaluator.laws.grid", "capacity.plots",
     "capacity.report", "capacity.report.database_page", "capacity.report.sweep_page",
     "capacity.database", "capacity.rank", "capacity.recall", "capacity.recall.asking",
     "capacity.stores", "capacity.tensor"],
)  # fmt: skip
def test_rooms_without_torch(module: str) -> None:
    assert not modules_after(f"import {module}") & {"torch", "seaborn"}


@pytest.mark.slow
def test_an_engine_is_registered_and_chosen_without_its_code() -> None:
    code = """
import sys
from capacity.layer import Compute, Engine, LayerConfig, Recipe, Workload, register_engine
from capacity.layer.engines.registry import engine_for
named = dict.fromkeys(("run", "run_many", "run_weights"), "nowhere:run")
toy = Engine("toy", why_not=lambda _: None, cost=lambda _: 0.0, priority=9, **named)
register_engine(toy)
assert engine_for(Compute().engine, Workload(LayerConfig(2, 1, 1, 1), Recipe(), 5, 5)) is toy
assert not [name for name in sys.modules if name.endswith(".engine") and name.count(".") > 3]
"""
    assert "torch" not in modules_after(code)


_A_SWEEP = """
import sys
# an import of torch fails, in the workers too
sys.modules["torch"] = None
from capacity.sweep import make_plan, run_sweep
databases = {"synthetic": {"count": 2, "max_triples": 6}}
layers = {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [2]}
plan = make_plan({"databases": databases, "layers": layers, "recipe": {"epochs": 5}})
assert {run.engine for run in plan.runs} == {"fused"}
if __name__ == "__main__":
    run_sweep(plan, sys.argv[1], workers=int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_sweep_by_the_fused_engine_needs_no_torch(workers: int, tmp_path: Path) -> None:
    script, folder = tmp_path / "sweep.py", tmp_path / "out"
    script.write_text(_A_SWEEP)
    subprocess.run([sys.executable, script, folder, str(workers)], check=True, cwd=ROOT)
    assert (folder / "runs.parquet").exists()


@pytest.mark.slow
def test_every_public_name_loads() -> None:
    code = """
import capacity
rooms = ("tensor", "database", "rank", "stores", "layer", "evaluator", "embedding", "report",
         "sweep", "transformer", "recall")
for room in (capacity, *(getattr(capacity, room) for room in rooms)):
    for name in room.__all__:
        assert getattr(room, name) is not None, name
        assert name in dir(room)
"""
    modules_after(code)


def public_names() -> Iterator[tuple[str, list[Path]]]:
    """Each public name, and the packages from its face down to the module that defines it."""
    for face in sorted((ROOT / "capacity").rglob("__init__.pyi")):
        for line in ast.parse(face.read_text(encoding="utf-8")).body:
            # `from . import room` gives a module, and is meant to
            if isinstance(line, ast.ImportFrom) and line.module is not None:
                *rooms, _ = line.module.split(".")
                packages = [face.parent.joinpath(*rooms[:n]) for n in range(len(rooms) + 1)]
                yield from ((alias.name, packages) for alias in line.names)


def test_no_module_has_the_name_of_something_public_in_its_package() -> None:
    names = list(public_names())
    assert len(names) > 100
    modules = {
        str(package.relative_to(ROOT) / name)
        for name, packages in names
        for package in packages
        if (package / f"{name}.py").exists() or (package / name).is_dir()
    }
    assert not modules


@pytest.mark.slow
def test_what_a_face_gives_is_a_module_only_where_it_says_so() -> None:
    """Importing a module sets its name in its package, where a function may have had it."""
    code = """
import importlib, pkgutil, types
import capacity
everything = [m.name for m in pkgutil.walk_packages(capacity.__path__, "capacity.")]
# it needs triton
everything.remove("capacity.layer.engines.triton.kernel")
for name in everything:
    if not name.endswith("__main__"):
        importlib.import_module(name)
for face in ["capacity", *everything]:
    package = importlib.import_module(face) if not face.endswith("__main__") else None
    for name in getattr(package, "__all__", ()):
        value = getattr(package, name)
        assert isinstance(value, types.ModuleType) == (f"{face}.{name}" in everything), name
        assert not isinstance(value, types.ModuleType) or face == "capacity", (face, name)
"""
    modules_after(code)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "extra", "arguments"),
    [("torch", "layers", ["train", str(EXAMPLES / "figure-1.ttl")]),
     ("torch", "transformers", ["attention", "folder", "--text", "hi"]),
     ("transformers", "transformers", ["attention", "folder", "--text", "hi"]),
     ("jinja2", "report", ["report", str(EXAMPLES / "figure-1.ttl"), "--out", "page.html"]),
     ("torch", "transformers", ["report", "--attention", "x", "--text", "y", "--out", "a.html"])],
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
