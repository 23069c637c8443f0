"""From a sweep's TOML file to its plan; all is checked before anything trains. No torch in here."""

from __future__ import annotations

import difflib
import itertools
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np

from capacity.database.facts import Database
from capacity.database.policy import MultiPolicy
from capacity.database.synthetic import random_database
from capacity.errors import SweepError
from capacity.layer.config import LayerConfig
from capacity.layer.recipe import Recipe
from capacity.sweep.plan import Plan, Run


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read and check a sweep's TOML file, and draw its runs.

    Parameters
    ----------
    path : path
        Its own paths are looked up in the current folder, then beside it.

    Raises
    ------
    SweepError
        For a file that can't be read, an unknown key (with the nearest known one), a value out of
        range, a database that isn't functional under its policy, or more pairs than there are.
    DatabaseFormatError
        If one of its database files can't be read.
    """
    try:
        config = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SweepError(f"{os.fspath(path)}: must be a readable TOML file; {error}.") from None
    try:
        return make_plan(config, folder=Path(path).parent)
    except SweepError as error:
        raise SweepError(f"{os.fspath(path)}: {error}") from None


def make_plan(config: Mapping[str, Any], *, folder: Path = Path()) -> Plan:
    """Check a configuration and draw its runs; raises as `read_plan` does."""
    _known(config, "the file", ("databases", "layers", "runs", "recipe"))
    recipe = _recipe(config.get("recipe", {}))
    layers = list(_layers(_required(config, "layers", "the file")))
    if len(set(layers)) < len(layers):
        raise SweepError("[layers] must name each size once; some layer would be trained twice.")
    sources: dict[str, str] = {}
    databases = _databases(_required(config, "databases", "the file"), folder, sources)
    options = config.get("runs", {})
    _known(options, "[runs]", ("pairs", "seed"))
    seed = _integer(options, "seed", "[runs]", default=0, least=0)
    every = list(itertools.product(databases, layers))
    pairs = options.get("pairs")
    if pairs is not None:
        pairs = _integer(options, "pairs", "[runs]", least=1)
        if pairs > len(every):
            raise SweepError(
                f"`pairs` in [runs] must be at most the {len(every)} pairs there are "
                f"({len(databases)} databases x {len(layers)} layers); got {pairs}."
            )
        chosen = np.random.default_rng(seed).choice(len(every), pairs, replace=False)
        every = [every[i] for i in sorted(chosen.tolist())]
    runs = (Run(name, db, layer, seed, recipe) for (name, db), layer in every)
    return Plan(tuple(runs), dict(config), sources)


def _recipe(options: Mapping[str, Any]) -> Recipe:
    _known(options, "[recipe]", tuple(f.name for f in fields(Recipe)))
    try:
        return Recipe(**options)
    except (ValueError, TypeError) as error:
        raise SweepError(f"in [recipe]: {error}") from None


def _layers(options: Mapping[str, Any]) -> Iterator[LayerConfig]:
    names = ("d_model", "n_heads", "d_head_qk", "d_head_vo")
    _known(options, "[layers]", names)
    values: list[list[Any]] = []
    for name in names:
        listed = _required(options, name, "[layers]")
        if not isinstance(listed, list) or not listed:
            raise SweepError(f"`{name}` in [layers] must be a list of sizes; got {listed!r}.")
        values.append(listed)
    found = False
    for d_model, n_heads, qk, vo in itertools.product(*values):
        try:
            # the sizes themselves are checked before the combination is left out
            LayerConfig(max(d_model, qk, vo), n_heads, qk, vo)
            if max(qk, vo) > d_model:
                continue
            found = True
            yield LayerConfig(d_model, n_heads, qk, vo)
        except (ValueError, TypeError) as error:
            raise SweepError(f"in [layers]: {error}") from None
    if not found:
        raise SweepError("[layers] must hold a layer with d_head_qk, d_head_vo <= d_model.")


def _databases(
    options: Mapping[str, Any], folder: Path, sources: dict[str, str]
) -> list[tuple[str, Database]]:
    """Names and databases; what was read is added to `sources`."""
    _known(options, "[databases]", ("synthetic", "files"))
    named: list[tuple[str, Database]] = []
    if "synthetic" in options:
        named += _synthetic(options["synthetic"])
    files = options.get("files", [])
    if not isinstance(files, list):
        raise SweepError(f"`files` in [databases] must be a list of tables; got {files!r}.")
    for entry in files:
        named += _from_file(entry, folder, sources)
    if not named:
        raise SweepError("[databases] must hold `synthetic` or at least one of `files`.")
    # the same facts drawn twice are one database, or one run would be counted twice
    unique = {db.facts_sha256: (name, db) for name, db in reversed(named)}
    return [(f"{name}-{db.facts_sha256[:8]}", db) for name, db in reversed(list(unique.values()))]


def _synthetic(options: Mapping[str, Any]) -> Iterator[tuple[str, Database]]:
    where = "`synthetic` of [databases]"
    _known(options, where, ("count", "seed", "max_triples"))
    count = _integer(options, "count", where, least=1)
    seed = _integer(options, "seed", where, default=0, least=0)
    largest = _integer(options, "max_triples", where, default=200, least=4)
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        yield f"synthetic-{seed}-{i}", random_database(rng, triples=(4, largest))


def _from_file(
    entry: Mapping[str, Any], folder: Path, sources: dict[str, str]
) -> Iterator[tuple[str, Database]]:
    where = "[[databases.files]]"
    _known(entry, where, ("path", "multi", "subset"))
    name = _required(entry, "path", where)
    if not isinstance(name, str):
        raise SweepError(f"`path` in {where} must be a text; got {name!r}.")
    path = Path(name)
    if not path.exists() and (folder / path).exists():
        path = folder / path
    multi = entry.get("multi", "error")
    if multi not in get_args(MultiPolicy):
        raise SweepError(
            f"`multi` in {where} must be one of {', '.join(get_args(MultiPolicy))}; got {multi!r}."
        )
    db = Database.load(path, multi=multi)
    assert db.source is not None
    sources[name] = db.source.sha256
    if not db.is_functional:
        raise SweepError(
            f"{path} must be functional to train on; under `{multi}` {db.n_multi_valued_pairs} of "
            f"{db.n_pairs} pairs have several objects. Choose another `multi` in {where}."
        )
    if "subset" not in entry:
        yield path.stem, db
        return
    subset = entry["subset"]
    _known(subset, f"`subset` of {where}", ("subjects", "seed", "count"))
    n_subjects = _integer(subset, "subjects", f"`subset` of {where}", least=1)
    seed = _integer(subset, "seed", f"`subset` of {where}", default=0, least=0)
    for i in range(_integer(subset, "count", f"`subset` of {where}", default=1, least=1)):
        try:
            part = db.sample_subjects(n_subjects, np.random.default_rng([seed, i]))
        except ValueError as error:
            raise SweepError(f"in `subset` of {where}, {path}: {error}") from None
        yield f"{path.stem}-{n_subjects}-{seed}-{i}", part


def _known(options: Any, where: str, names: tuple[str, ...]) -> None:
    if not isinstance(options, Mapping):
        raise SweepError(f"{where} must be a table of keys; got {options!r}.")
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise SweepError(
                f"{where} has the unknown key `{name}`; known are {', '.join(names)}.{hint}"
            )


def _required(options: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in options:
        raise SweepError(f"{where} must have the key `{name}`.")
    return options[name]


def _integer(
    options: Mapping[str, Any], name: str, where: str, *, least: int, default: int | None = None
) -> int:
    value = _required(options, name, where) if default is None else options.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SweepError(
            f"`{name}` in {where} must be an integer of at least {least}; got {value!r}."
        )
    return value
