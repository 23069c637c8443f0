"""The trusted base is one folder, which imports nothing of the search, and little else."""

from __future__ import annotations

import ast
import sys

import capacity
from tests.oracles import ROOT

FOLDER = ROOT / "capacity" / "rank" / "verifier"
# the triples and what makes facts and tensors of what comes, errors, numbers and files; numpy,
# and what computes exactly
ALLOWED = (
    "capacity.rank.verifier",
    "capacity.exact.types",
    "capacity.database.facts",
    "capacity.tensor.coordinates",
    # what the names in published theorems denote
    "capacity.tensor.names",
    "capacity.tensor.sparse",
    "capacity.tensor.structure",
    "capacity.rank.given",
    "capacity.rank.options",
    "capacity.errors",
    "capacity.checks",
    "capacity.safe_files",
    "capacity.visible",
    "numpy",
    "scipy.sparse",
    "flint",
)


def imported() -> dict[str, set[str]]:
    """For each module of the folder what it imports, within functions too."""
    found: dict[str, set[str]] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                names.add(str(node.module))
        found[str(path.relative_to(FOLDER))] = names
    return found


def test_the_verifier_imports_the_triples_and_exact_libraries_alone() -> None:
    found = imported()
    assert len(found) > 20
    for module, names in found.items():
        for name in names:
            mine = name.split(".")[0] in sys.stdlib_module_names or any(
                name == one or name.startswith(f"{one}.") for one in ALLOWED
            )
            assert mine, (module, name)


def test_every_module_of_the_kinds_is_a_registered_kind() -> None:
    modules = {path.stem for path in (FOLDER / "kinds").glob("*.py")} - {"__init__"}
    registered = {kind.argument.__module__.split(".")[-1] for kind in capacity.rank.KINDS.values()}
    assert modules == registered
