"""Manifests: the plan of a sweep's folder and the environment that computes it.

By them no folder mixes two sweeps (`capacity.sweep.storage.admission`). A manifest is written once,
and again when its plan grows (`capacity.sweep.storage.growth`), and never repaired: a damaged one
is refused, and the folder is left as it is. Every field that is read is checked, also against the
plan if there is one.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from capacity.errors import SweepError
from capacity.sweep.plan import (
    ALGORITHM_VERSION,
    SCHEMA_VERSION,
    Plan,
    shard_key,
)
from capacity.sweep.storage.layout import MANIFEST, SHARD
from capacity.sweep.storage.records import DamagedFileError, is_integer, read_json, write

PACKAGES = ("knowledge-capacity", "llvmlite", "numba", "numpy", "pyarrow", "torch")
# a million shards take half of it
MAX_BYTES = 2**26
# of a run's key, as many as the name of a shard has of its own
RUN_DIGITS = 16
# vectors, widest first, and numpy's names for what has them
_WIDTHS = {"AVX512": ("AVX512", "X86_V4"), "AVX2": ("AVX2", "X86_V3"), "SVE": ("SVE",)}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(rf"[0-9a-f]{{{RUN_DIGITS}}}")


def environment(device: str = "cpu") -> dict[str, Any]:
    """Versions and processors, on which the last bits of a result depend beside the plan."""
    return dict(_environment(device))


# called for every task, and constant in a process
@cache
def _environment(device: str) -> dict[str, Any]:
    return {
        "device": device,
        **({"gpu": _gpu()} if device == "cuda" else {}),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpu": _vectors(),
        "schema": SCHEMA_VERSION,
        "algorithm": ALGORITHM_VERSION,
    }


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name()


def _vectors() -> str:
    """The processor's widest vectors, for which kernels are compiled and libraries choose code."""
    told = np.show_config(mode="dicts").get("SIMD Extensions", {})
    found = [*told.get("baseline", ()), *told.get("found", ())]
    for width, names in _WIDTHS.items():
        if any(name.startswith(names) for name in found):
            return width
    return "other"


def manifests(folder: Path) -> list[dict[str, Any]]:
    """Read the manifests of a folder, the first one first.

    Raises
    ------
    SweepError
        If there is none, or one is damaged.
    """
    first = folder / "manifest.json"
    if not first.exists():
        raise SweepError(
            f"{folder} must be the folder of a sweep; it has no manifest.json. Make one with "
            "`capacity sweep CONFIG.toml --out DIR`."
        )
    others = (path for path in folder.glob("manifest-*.json") if MANIFEST.fullmatch(path.name))
    return [read_manifest(path) for path in (first, *sorted(others))]


def shard_names(plan: Plan) -> list[str]:
    """Names of the files of a plan's shards, in order."""
    return [f"{n:05d}-{shard_key(shard)[:16]}.parquet" for n, shard in enumerate(plan.shards)]


def begin(
    path: Path, plan: Plan, computed_by: dict[str, Any], *, replaced: Sequence[str] = ()
) -> None:
    """Write the manifest of a plan.

    Parameters
    ----------
    path : Path
        The manifest.
    plan : Plan
        Plan to be done in its folder.
    computed_by : dict
        Engine, dtype and environment.
    replaced : sequence of str
        Shards of a smaller plan that this one replaces, while they are still there.
    """
    manifest = {
        "plan_key": plan.key,
        "question": plan.question,
        "n_runs": len(plan.runs),
        "computed_by": computed_by,
        "config": plan.config,
        "sources": dict(plan.sources),
        "databases": {run.database_id: run.database.facts_sha256 for run in plan.runs},
        "begun_on": {"host": platform.node(), "platform": platform.platform(), "commit": _commit()},
        "shards": shard_names(plan),
        "runs": runs_of(plan),
        **({"replaced": list(replaced)} if replaced else {}),
    }
    _write(path, manifest)


def without_replaced(path: Path) -> None:
    """Write a manifest again as it is once the shards that its plan replaced are gone."""
    _write(path, {name: value for name, value in read_manifest(path).items() if name != "replaced"})


def _write(path: Path, manifest: Mapping[str, Any]) -> None:
    write(path, json.dumps(manifest, indent=1).encode() + b"\n")


def runs_of(plan: Plan) -> list[str]:
    """Beginnings of the keys of a plan's runs, in order, as its manifest lists them."""
    return [run.key[:RUN_DIGITS] for run in plan.runs]


def _commit() -> str | None:
    """Commit of the source, if it is a checkout; "-dirty" follows if files differ from it."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    # without locks: a kill during `git describe --dirty` leaves one, which blocks later commits
    command = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "-uno"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    changed = any(not line.startswith("#") for line in lines)
    return f"{commit}-dirty" if commit and changed else commit


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest, and check its fields.

    Raises
    ------
    DamagedFileError
        If it can't be read, or a field of it has a value that no manifest has.
    """
    advice = "Choose another folder with --out."
    try:
        held = read_json(path, max_bytes=MAX_BYTES)
    except DamagedFileError as error:
        raise DamagedFileError(path, error.reason, advice) from None
    for name, (holds, must) in _FIELDS.items():
        if name not in held and name in _MAY_LACK:
            continue
        if name not in held or not holds(held[name]):
            raise DamagedFileError(
                path, f"is damaged, or of an older version (`{name}` must be {must})", advice
            )
    return held


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _are_shards(value: Any) -> bool:
    """Return True if a value is a list of the names of shards, numbered from 0."""
    return isinstance(value, list) and all(
        isinstance(name, str) and SHARD.fullmatch(name) and int(name.split("-")[0]) == number
        for number, name in enumerate(value)
    )


def _are_runs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(key, str) and _RUN.fullmatch(key) for key in value
    )


def _are_names(value: Any) -> bool:
    """Return True if a value is a list of names of shards, whatever their numbers."""
    return isinstance(value, list) and all(
        isinstance(name, str) and SHARD.fullmatch(name) for name in value
    )


def _is_environment(value: Any) -> bool:
    """Return True if a value is a small table of short texts and numbers."""
    return (
        isinstance(value, dict)
        and len(value) <= 100
        and all(
            len(name) <= 60 and (is_integer(said) or (isinstance(said, str) and len(said) <= 200))
            for name, said in value.items()
        )
    )


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "plan_key": (_is_key, "a SHA-256"),
    "question": (_is_key, "a SHA-256"),
    "n_runs": (is_integer, "a non-negative integer"),
    "shards": (_are_shards, "a list of the shards' names, in order"),
    "computed_by": (_is_environment, "a table of names and versions"),
    "runs": (_are_runs, "a list of the beginnings of the runs' keys"),
    "replaced": (_are_names, "a list of shards' names"),
}
# not listed by earlier versions; and there only while a plan grows
_MAY_LACK = ("runs", "replaced")
