"""Manifests: the plan of a sweep's folder and the environment that computes it.

By them no folder mixes two sweeps. A manifest is written once and never repaired: a damaged one is
refused, and the folder is left as it is. Every field that is read is checked, also against the plan
if there is one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from capacity.checks import cut
from capacity.errors import SweepError
from capacity.sweep.plan import (
    ALGORITHM_VERSION,
    SCHEMA_VERSION,
    Plan,
    shard_key,
)
from capacity.sweep.storage.layout import MANIFEST, SHARD, require_new
from capacity.sweep.storage.records import DamagedFileError, is_integer, read_json, write

PACKAGES = ("knowledge-capacity", "llvmlite", "numba", "numpy", "pyarrow", "torch")
# a million shards take half of it
MAX_BYTES = 2**26
# keys of another plan that a message names
_LISTED = 3
# vectors, widest first, and numpy's names for what has them
_WIDTHS = {"AVX512": ("AVX512", "X86_V4"), "AVX2": ("AVX2", "X86_V3"), "SVE": ("SVE",)}
_SHA256 = re.compile(r"[0-9a-f]{64}")


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


def admitted(
    folder: Path, plan: Plan, here: dict[str, Any], *, allow_other_engine: bool = False
) -> Plan:
    """Return the plan as this folder admits it, and write its manifest if there is none.

    The caller must hold the folder's lock (`capacity.sweep.storage.locks`).

    Parameters
    ----------
    folder : Path
        Folder of the sweep.
    plan : Plan
        Plan to be done in it.
    here : dict
        Environment that computes it (`environment`).
    allow_other_engine : bool
        Accept a folder that holds the same runs by another engine, dtype or version.

    Returns
    -------
    Plan
        The plan, under other keys if the folder was begun by another engine, dtype or version.

    Raises
    ------
    SweepError
        If the folder holds another sweep; or the same one computed by another engine, in another
        dtype, or with other versions, unless that is allowed.
    """
    # what 'auto' stands for depends on the engines that are registered
    engines = " and ".join(sorted({run.engine for run in plan.runs}))
    computed_by = {"engine": engines, "dtype": plan.runs[0].compute.dtype} | here
    first = folder / "manifest.json"
    if not first.exists():
        require_new(folder)
        return _begun(first, plan, computed_by)
    held = _read(first)
    if held["question"] != plan.question:
        raise SweepError(
            f"{folder} holds another sweep: {_differences(held, plan)}. Give another folder with "
            "--out, or the configuration that it was begun with."
        )
    if held["computed_by"] == computed_by:
        _require_same(first, held, plan)
        return plan
    if not allow_other_engine:
        then, now = (_in_words(by) for by in (held["computed_by"], computed_by))
        raise SweepError(
            f"{folder} was begun with {then}; this process has {now}. The rows would not be "
            "comparable bit by bit: give another folder with --out, continue with the versions it "
            "was begun with, or add --allow-other-engine to do all runs again under other keys."
        )
    text = json.dumps(computed_by, sort_keys=True)
    variant = hashlib.sha256(text.encode()).hexdigest()[:12]
    path, plan = folder / f"manifest-{variant}.json", plan.under(variant)
    if path.exists():
        _require_same(path, _read(path), plan)
        return plan
    return _begun(path, plan, computed_by)


def _differences(held: Mapping[str, Any], plan: Plan) -> str:
    """Say what differs of the plan of a folder and of another: keys, or else facts of files."""
    there, here = (_values(config) for config in (held.get("config", {}), plan.config))
    keys = [key for key in dict.fromkeys((*there, *here)) if there.get(key) != here.get(key)]
    said = [
        f"{key} is {_told(there, key)} there and {_told(here, key)} here" for key in keys[:_LISTED]
    ]
    if len(keys) > _LISTED:
        said.append(f"{len(keys) - _LISTED} other keys differ")
    if not said and held.get("sources") != dict(plan.sources):
        said = ["the files of its databases are others, or have changed"]
    return "; ".join(said) or (
        f"its plan has the key {held['plan_key'][:12]}, this one {plan.key[:12]}"
    )


def _values(config: Any, within: str = "") -> dict[str, Any]:
    """List the values of a configuration by their keys, such as layers.d_model."""
    if isinstance(config, Mapping):
        return {
            key: value
            for name, one in config.items()
            for key, value in _values(one, f"{within}.{name}" if within else str(name)).items()
        }
    # as JSON has them
    return {within: json.loads(json.dumps(config))}


def _told(values: Mapping[str, Any], key: str) -> str:
    return cut(json.dumps(values[key])) if key in values else "missing"


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
    return [_read(path) for path in (first, *sorted(others))]


def shard_names(plan: Plan) -> list[str]:
    """Names of the files of a plan's shards, in order."""
    return [f"{n:05d}-{shard_key(shard)[:16]}.parquet" for n, shard in enumerate(plan.shards)]


def _begun(path: Path, plan: Plan, computed_by: dict[str, Any]) -> Plan:
    """Write the manifest of a plan, and return the plan."""
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
    }
    write(path, json.dumps(manifest, indent=1).encode() + b"\n")
    return plan


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


def _in_words(computed_by: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in computed_by.items())


def _read(path: Path) -> dict[str, Any]:
    """Read a manifest, and check its fields."""
    advice = "Give another folder with --out."
    try:
        held = read_json(path, max_bytes=MAX_BYTES)
    except DamagedFileError as error:
        raise DamagedFileError(path, error.reason, advice) from None
    for name, (holds, must) in _FIELDS.items():
        if name not in held or not holds(held[name]):
            raise DamagedFileError(
                path, f"is damaged, or of an older version (`{name}` must be {must})", advice
            )
    return held


def _require_same(path: Path, held: dict[str, Any], plan: Plan) -> None:
    """Refuse a manifest that has the plan's question but disagrees with the plan."""
    same = {"plan_key": plan.key, "n_runs": len(plan.runs), "shards": shard_names(plan)}
    for name, value in same.items():
        if held[name] != value:
            raise DamagedFileError(
                path,
                f"is damaged, or was begun by other code of this version (`{name}` isn't its "
                "plan's)",
                "Give another folder with --out.",
            )


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _are_shards(value: Any) -> bool:
    """Return True if a value is a list of the names of shards, numbered from 0."""
    return isinstance(value, list) and all(
        isinstance(name, str) and SHARD.fullmatch(name) and int(name.split("-")[0]) == number
        for number, name in enumerate(value)
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
}
