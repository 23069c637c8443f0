"""Admission of plans to a folder: that of its manifest, or one with all runs of it and more.

Everything that determines the result of a run is part of its key. So a plan may grow in its folder
if it has every run, by its key, of the plan that the folder holds: whatever else of the two plans
differs, such as the order of the values in their files, changes no row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capacity.checks import cut
from capacity.errors import SweepError
from capacity.sweep.plan import Plan
from capacity.sweep.storage.growth import grow, kept_keys
from capacity.sweep.storage.layout import require_new
from capacity.sweep.storage.manifest import begin, read_manifest, runs_of, shard_names
from capacity.sweep.storage.records import DamagedFileError

# keys of another plan that a message names
_LISTED = 3


@dataclass(frozen=True)
class _Admission:
    """A plan under the keys that it has in a folder, its manifest, and what that holds so far."""

    plan: Plan
    computed_by: dict[str, Any]
    path: Path
    held: dict[str, Any] | None

    @property
    def grows(self) -> bool:
        return self.held is not None and self.held["question"] != self.plan.question


def admitted(
    folder: Path, plan: Plan, here: dict[str, Any], *, allow_other_engine: bool = False
) -> Plan:
    """Return the plan as this folder admits it, and write its manifest if there is none.

    The caller must hold the folder's lock (`capacity.sweep.storage.layout`).

    Parameters
    ----------
    folder : Path
        Folder of the sweep.
    plan : Plan
        Plan to be done in it.
    here : dict
        Environment that computes it (`capacity.sweep.storage.manifest.environment`).
    allow_other_engine : bool
        Accept a folder that holds the same runs by another engine, dtype or version.

    Returns
    -------
    Plan
        The plan, under other keys if the folder was begun by another engine, dtype or version.

    Raises
    ------
    SweepError
        If the folder holds another sweep, whose runs aren't all in this plan; or the same one
        computed by another engine, in another dtype, or with other versions, unless that is
        allowed; or a smaller one of which another process is doing a part.
    """
    admission = _admission(folder, plan, here, allow_other_engine=allow_other_engine)
    plan, held = admission.plan, admission.held
    if held is None:
        begin(admission.path, plan, admission.computed_by)
    elif admission.grows:
        grow(admission.path, held, plan, admission.computed_by)
    else:
        _require_same(admission.path, held, plan)
    return plan


def keys_there(
    folder: Path, plan: Plan, here: dict[str, Any], *, allow_other_engine: bool = False
) -> set[str]:
    """Keys, without a variant, of the runs of a plan that a folder holds; nothing is written.

    Raises
    ------
    SweepError
        If the folder doesn't admit the plan.
    """
    admission = _admission(folder, plan, here, allow_other_engine=allow_other_engine)
    if admission.held is None:
        return set()
    kept = kept_keys(folder, admission.held)
    both = zip(plan.runs, admission.plan.runs, strict=True)
    return {run.key for run, as_admitted in both if as_admitted.key in kept}


def _admission(
    folder: Path, plan: Plan, here: dict[str, Any], *, allow_other_engine: bool
) -> _Admission:
    """Find a plan's place in a folder, or refuse it."""
    # what 'auto' stands for depends on the engines that are registered
    engines = " and ".join(sorted({run.engine for run in plan.runs}))
    computed_by = {"engine": engines, "dtype": plan.runs[0].compute.dtype} | here
    first = folder / "manifest.json"
    if not first.exists():
        require_new(folder)
        return _Admission(plan, computed_by, first, None)
    held = read_manifest(first)
    admission = _Admission(plan, computed_by, first, held)
    if admission.grows:
        _require_all_runs(admission)
        return admission
    if held["computed_by"] == computed_by:
        return admission
    if not allow_other_engine:
        then, now = (_in_words(by) for by in (held["computed_by"], computed_by))
        raise SweepError(
            f"{folder} was begun with {then}; this process has {now}. The rows would not be "
            "comparable bit by bit: choose another folder with --out, continue with the versions "
            "it was begun with, or add --allow-other-engine to do all runs again under other keys."
        )
    text = json.dumps(computed_by, sort_keys=True)
    variant = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = folder / f"manifest-{variant}.json"
    there = read_manifest(path) if path.exists() else None
    admission = _Admission(plan.under(variant), computed_by, path, there)
    if admission.grows:
        _require_all_runs(admission)
    return admission


def _require_all_runs(admission: _Admission) -> None:
    """Refuse a plan that lacks runs of the one that its folder holds, or has them by other code."""
    held, plan, folder = admission.held or {}, admission.plan, admission.path.parent
    runs = held.get("runs")
    n_lacking = None if runs is None else len(set(runs).difference(runs_of(plan)))
    # which engines there are depends on the runs, and is part of their keys
    then, now = ({**by, "engine": ""} for by in (held["computed_by"], admission.computed_by))
    if n_lacking == 0 and then == now:
        return
    said = f"{folder} holds another sweep: {_differences(held, plan)}. "
    if n_lacking == 0:
        then, now = (_in_words(by) for by in (held["computed_by"], admission.computed_by))
        raise SweepError(
            f"{said}It could grow, but was begun with {then}; this process has {now}. Let it grow "
            "with the versions that it was begun with, or choose another folder with --out."
        )
    advice = "Choose another folder with --out, or the configuration that it was begun with."
    if n_lacking is None:
        raise SweepError(f"{said}{advice} An earlier version began it, and didn't list its runs.")
    drawn = any(config.get("runs", {}).get("pairs") for config in _configs(held, plan))
    raise SweepError(
        f"{said}{advice} A plan grows if it has all runs of the one before; this one lacks "
        f"{n_lacking:,} of {held['n_runs']:,}."
        + (" Other layers or databases change which pairs are drawn." if drawn else "")
    )


def _configs(held: Mapping[str, Any], plan: Plan) -> list[Mapping[str, Any]]:
    """Configurations of the plan of a manifest and of another, whose sections are tables."""
    return [
        {name: part for name, part in config.items() if isinstance(part, Mapping)}
        for config in (held.get("config"), plan.config)
        if isinstance(config, Mapping)
    ]


def _differences(held: Mapping[str, Any], plan: Plan) -> str:
    """List what differs of the plan of a folder and of another: keys, or else facts of files."""
    there, here = (_values(config) for config in (held.get("config", {}), plan.config))
    keys = [key for key in dict.fromkeys((*there, *here)) if there.get(key) != here.get(key)]
    # those first in which values are missing, and not only added
    keys.sort(key=lambda key: _has_all(here.get(key), there.get(key)))
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


def _has_all(values: Any, others: Any) -> bool:
    both = isinstance(values, list) and isinstance(others, list)
    return both and all(other in values for other in others)


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


def _in_words(computed_by: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in computed_by.items())


def _require_same(path: Path, held: dict[str, Any], plan: Plan) -> None:
    """Refuse a manifest that has the plan's question but disagrees with the plan."""
    same = {
        "plan_key": plan.key,
        "n_runs": len(plan.runs),
        "shards": shard_names(plan),
        **({"runs": runs_of(plan)} if "runs" in held else {}),
    }
    for name, value in same.items():
        if held[name] != value:
            raise DamagedFileError(
                path,
                f"is damaged, or was begun by other code of this version (`{name}` isn't its "
                "plan's)",
                "Choose another folder with --out.",
            )
