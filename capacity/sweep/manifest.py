"""What a sweep's folder holds, and by what it was computed: a sweep is never mixed with another.

::

    DIR/manifest.json              the sweep that the folder was begun with; written once
    DIR/manifest-<variant>.json    the same runs, computed by something else, under other keys
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from capacity.errors import SweepError
from capacity.sweep.files import write_whole
from capacity.sweep.plan import (
    ALGORITHM_VERSION,
    COMPUTED_BY,
    SCHEMA_VERSION,
    Plan,
    shard_key,
)

PACKAGES = ("knowledge-capacity", "llvmlite", "numba", "numpy", "pyarrow", "torch")


def environment(device: str = "cpu") -> dict[str, Any]:
    """What the last bits of a result depend on, beside the plan: versions and processors."""
    import torch

    gpu = {"gpu": torch.cuda.get_device_name()} if device == "cuda" else {}
    return {
        "device": device,
        **gpu,
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "schema": SCHEMA_VERSION,
        "algorithm": ALGORITHM_VERSION,
    }


def admitted(
    folder: Path, plan: Plan, here: dict[str, Any], *, allow_other_engine: bool = False
) -> Plan:
    """The plan as it may be done in this folder, whose manifest is written if there is none.

    Only one process at a time may ask (`capacity.sweep.store`).

    Parameters
    ----------
    folder : Path
    plan : Plan
    here : dict
        What computes it (`environment`).
    allow_other_engine : bool

    Raises
    ------
    SweepError
        If the folder holds another sweep; or the same one computed by another engine, in another
        dtype, or with other versions, unless that is allowed. Then the keys of its runs differ.
    """
    computed_by = {name: getattr(plan.runs[0].recipe, name) for name in COMPUTED_BY} | here
    first = folder / "manifest.json"
    if not first.exists():
        if any((folder / "shards").glob("*.parquet")):
            raise SweepError(
                f"{folder} has shards and no manifest.json, so that nobody knows what they are. "
                "Give another folder with --out, or take the shards out."
            )
        return _begun(first, plan, computed_by)
    held = _read(first)
    if held.get("question") != plan.question:
        raise SweepError(
            f"{folder} holds another sweep: its plan has the key {str(held.get('plan_key'))[:12]}, "
            f"this one {plan.key[:12]}. Give another folder with --out, or the configuration that "
            "it was begun with."
        )
    if held.get("computed_by") == computed_by:
        return plan
    if not allow_other_engine:
        then, now = (_in_words(by) for by in (held.get("computed_by"), computed_by))
        raise SweepError(
            f"{folder} was begun with {then}; here is {now}. The rows would not be comparable bit "
            "by bit: give another folder with --out, or go on with what it was begun with, or say "
            "--allow-other-engine to do all runs again beside those, under other keys."
        )
    text = json.dumps(computed_by, sort_keys=True)
    variant = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = folder / f"manifest-{variant}.json"
    if path.exists():
        _read(path)
        return plan.under(variant)
    return _begun(path, plan.under(variant), computed_by)


def manifests(folder: Path) -> list[dict[str, Any]]:
    """All that a folder's sweeps say of themselves.

    Raises
    ------
    SweepError
        If there is none, or one is damaged.
    """
    if not (folder / "manifest.json").is_file():
        raise SweepError(
            f"{folder} must be the folder of a sweep; it has no manifest.json. Make one with "
            "`capacity sweep CONFIG.toml --out DIR`."
        )
    return [_read(path) for path in sorted(folder.glob("manifest*.json"))]


def shard_names(plan: Plan) -> list[str]:
    """Names of the files of a plan's shards."""
    return [f"{n:05d}-{shard_key(shard)[:16]}.parquet" for n, shard in enumerate(plan.shards)]


def _begun(path: Path, plan: Plan, computed_by: dict[str, Any]) -> Plan:
    """Write what a plan is."""
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
    write_whole(path, json.dumps(manifest, indent=1).encode() + b"\n")
    return plan


def _commit() -> str | None:
    """The commit of the source, if it is a checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _in_words(computed_by: Any) -> str:
    if not isinstance(computed_by, dict):
        return "another version of this library"
    return ", ".join(f"{name} {value}" for name, value in computed_by.items())


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SweepError(f"{path} is damaged ({error}); give another folder with --out.") from None
    names = ("question", "n_runs", "shards", "computed_by")
    if not isinstance(data, dict) or not all(name in data for name in names):
        raise SweepError(f"{path} is damaged, or of an older version; give another folder.")
    return data
