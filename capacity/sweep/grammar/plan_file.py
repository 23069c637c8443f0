"""From a sweep's TOML file to its plan; all is checked before anything trains. No torch in here.

How much a plan asks for is known from its numbers alone, and what asks for too much is refused
before anything is drawn: a plan of a million runs takes a gigabyte and most of a minute to make.
"""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from capacity.database.facts import Database
from capacity.database.io.load import load
from capacity.database.policy import MultiPolicy
from capacity.database.synthetic import random_database
from capacity.errors import CapacityError, InvalidArgumentError, StorageError, SweepError
from capacity.layer.compute import Compute
from capacity.layer.config import LayerConfig
from capacity.layer.recipe import Recipe
from capacity.limits import require_integer, shown
from capacity.safe_files import read_file
from capacity.sweep.grammar.values import integer, require_known, required
from capacity.sweep.plan import Plan, Run

MOST_DATABASES = 100_000
# combinations of sizes
MOST_LAYERS = 1_000_000
MOST_RUNS = 1_000_000
# of a TOML file
MAX_BYTES = 2**20
# in a line: the parser takes a time that grows with the square of a key's parts
MOST_DOTS = 500


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
        range, more of something than a sweep may have, a database that isn't functional under its
        policy, or more pairs than there are.
    DatabaseFormatError
        If one of its database files can't be read.
    """
    try:
        config = _parsed(read_file(path, max_bytes=MAX_BYTES))
    except (StorageError, ValueError) as error:
        reason = error.reason if isinstance(error, StorageError) else str(error)
        raise SweepError(f"{os.fspath(path)}: must be a readable TOML file; {reason}.") from None
    try:
        return make_plan(config, folder=Path(path).parent)
    except SweepError as error:
        raise SweepError(f"{os.fspath(path)}: {error}") from None


def _parsed(data: bytes) -> dict[str, Any]:
    text = data.decode("utf-8")
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise SweepError(f"a line has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise SweepError("it is nested too deep") from None
    except ValueError:
        # the one thing that the parser leaves to Python
        raise SweepError("an integer in it has too many digits") from None


def make_plan(config: Mapping[str, Any], *, folder: Path = Path()) -> Plan:
    """Check a configuration and draw its runs; raises as `read_plan` does."""
    require_known(config, "the file", ("databases", "layers", "runs", "recipe", "compute"))
    recipe = _made(Recipe, "[recipe]", config.get("recipe", {}))
    compute = _made(Compute, "[compute]", config.get("compute", {}), without=("device",))
    options = config.get("runs", {})
    require_known(options, "[runs]", ("pairs", "seed"))
    seed = integer(options, "seed", "[runs]", default=0, least=0)
    sizes = _sizes(required(config, "layers", "the file"))
    sources: dict[str, str] = {}
    asked = _databases(required(config, "databases", "the file"), folder, sources)
    pairs = None if "pairs" not in options else integer(options, "pairs", "[runs]", least=1)
    n_databases = sum(part.count for part in asked)
    _require_at_most(MOST_DATABASES, n_databases, "[databases]", "databases")
    if pairs is not None:
        _require_at_most(MOST_RUNS, pairs, "[runs]", "pairs")
    layers = _layers(sizes)
    if pairs is None:
        _require_at_most(MOST_RUNS, n_databases * len(layers), "the file", "runs")
    databases = _unique(asked)
    runs: list[Run] = []
    for pair in _chosen(len(databases), len(layers), pairs, seed):
        i, j = divmod(pair, len(layers))
        name, db = databases[i]
        runs.append(Run(name, db, layers[j], seed, recipe, compute))
    return Plan(tuple(runs), dict(config), sources)


def _chosen(n_databases: int, n_layers: int, pairs: int | None, seed: int) -> Iterable[int]:
    """The pairs of a plan, in order; pair i * n_layers + j is database i and layer j."""
    there_are = n_databases * n_layers
    if pairs is None:
        return range(there_are)
    if pairs > there_are:
        raise SweepError(
            f"`pairs` in [runs] must be at most the {there_are} pairs there are "
            f"({n_databases} databases x {n_layers} layers); got {pairs}."
        )
    drawn = np.random.default_rng(seed).choice(there_are, pairs, replace=False)
    return sorted(drawn.tolist())


def _require_at_most(most: int, asked: int, where: str, what: str) -> None:
    if asked > most:
        raise SweepError(
            f"{where} must ask for at most {most:,} {what}; got {asked:,}. Ask for fewer, or make "
            "several sweeps of it."
        )


_Made = TypeVar("_Made", Recipe, Compute)


def _made(
    kind: type[_Made], where: str, options: Mapping[str, Any], *, without: tuple[str, ...] = ()
) -> _Made:
    """Make a dataclass of a table whose keys are its fields."""
    names = tuple(field.name for field in fields(kind) if field.name not in without)
    require_known(options, where, names)
    try:
        return kind(**options)
    except (CapacityError, ValueError, TypeError, OverflowError) as error:
        raise SweepError(f"in {where}: {error}") from None


def _sizes(options: Mapping[str, Any]) -> list[list[Any]]:
    """The sizes that layers combine, whose number isn't too large."""
    names = ("d_model", "n_heads", "d_head_qk", "d_head_vo")
    require_known(options, "[layers]", names)
    sizes: list[list[Any]] = []
    for name in names:
        listed = required(options, name, "[layers]")
        if not isinstance(listed, list) or not listed:
            raise SweepError(f"`{name}` in [layers] must be a list of sizes; got {shown(listed)}.")
        sizes.append(listed)
    _require_at_most(MOST_LAYERS, math.prod(map(len, sizes)), "[layers]", "combinations")
    try:
        for name, listed in zip(names, sizes, strict=True):
            for size in listed:
                require_integer(name, size)
    except InvalidArgumentError as error:
        raise SweepError(f"in [layers]: {error}") from None
    return sizes


def _layers(sizes: list[list[int]]) -> list[LayerConfig]:
    layers = [
        LayerConfig(d_model, n_heads, qk, vo)
        for d_model, n_heads, qk, vo in itertools.product(*sizes)
        if max(qk, vo) <= d_model
    ]
    if not layers:
        raise SweepError("[layers] must hold a layer with d_head_qk, d_head_vo <= d_model.")
    if len(set(layers)) < len(layers):
        raise SweepError("[layers] must name each size once; some layer would be trained twice.")
    return layers


@dataclass(frozen=True)
class _Asked:
    """So many databases, and how to get them with their names."""

    count: int
    draw: Callable[[], Iterator[tuple[str, Database]]]


def _databases(options: Mapping[str, Any], folder: Path, sources: dict[str, str]) -> list[_Asked]:
    """What is asked for; what is read when it is drawn is added to `sources`."""
    require_known(options, "[databases]", ("synthetic", "files"))
    asked: list[_Asked] = []
    if "synthetic" in options:
        asked.append(_synthetic(options["synthetic"]))
    files = options.get("files", [])
    if not isinstance(files, list):
        raise SweepError(f"`files` in [databases] must be a list of tables; got {shown(files)}.")
    asked += [_from_file(entry, folder, sources) for entry in files]
    if not asked:
        raise SweepError("[databases] must hold `synthetic` or at least one of `files`.")
    return asked


def _unique(asked: Iterable[_Asked]) -> list[tuple[str, Database]]:
    """Names and databases: the same facts drawn twice are one, or one run would count twice."""
    named = [pair for part in asked for pair in part.draw()]
    unique = {db.facts_sha256: (name, db) for name, db in reversed(named)}
    return [(f"{name}-{db.facts_sha256[:8]}", db) for name, db in reversed(list(unique.values()))]


def _synthetic(options: Mapping[str, Any]) -> _Asked:
    where = "`synthetic` of [databases]"
    require_known(options, where, ("count", "seed", "max_triples"))
    count = integer(options, "count", where, least=1)
    seed = integer(options, "seed", where, default=0, least=0)
    largest = integer(options, "max_triples", where, default=200, least=4)

    def draw() -> Iterator[tuple[str, Database]]:
        for i in range(count):
            rng = np.random.default_rng([seed, i])
            yield f"synthetic-{seed}-{i}", random_database(rng, triples=(4, largest))

    return _Asked(count, draw)


def _from_file(entry: Mapping[str, Any], folder: Path, sources: dict[str, str]) -> _Asked:
    where = "[[databases.files]]"
    require_known(entry, where, ("path", "multi", "subset"))
    name = required(entry, "path", where)
    if not isinstance(name, str):
        raise SweepError(f"`path` in {where} must be a text; got {shown(name)}.")
    multi = entry.get("multi", "error")
    if multi not in get_args(MultiPolicy):
        raise SweepError(
            f"`multi` in {where} must be one of {', '.join(get_args(MultiPolicy))}; got "
            f"{shown(multi)}."
        )
    count, draw = _subsets(entry.get("subset"), f"`subset` of {where}")

    def read() -> Iterator[tuple[str, Database]]:
        path = _found(Path(name), folder)
        db = load(path, multi=multi)
        if db.source is not None:
            sources[name] = db.source.sha256
        if not db.is_functional:
            raise SweepError(
                f"{path} must be functional to train on; under `{multi}` "
                f"{db.n_multi_valued_pairs} of {db.n_pairs} pairs have several objects. Choose "
                f"another `multi` in {where}."
            )
        yield from draw(path, db)

    return _Asked(count, read)


def _found(path: Path, folder: Path) -> Path:
    """The file, or the one beside the plan if that alone is there."""
    try:
        return folder / path if not path.exists() and (folder / path).exists() else path
    except (OSError, ValueError):
        # no name of a file; whoever reads it says so
        return path


_Draw = Callable[[Path, Database], Iterator[tuple[str, Database]]]


def _subsets(options: Any, where: str) -> tuple[int, _Draw]:
    """How many databases are drawn of a file's, and how; without options the whole is the one."""
    if options is None:
        return 1, lambda path, db: iter([(path.stem, db)])
    require_known(options, where, ("subjects", "seed", "count"))
    n_subjects = integer(options, "subjects", where, least=1)
    seed = integer(options, "seed", where, default=0, least=0)
    count = integer(options, "count", where, default=1, least=1)

    def draw(path: Path, db: Database) -> Iterator[tuple[str, Database]]:
        for i in range(count):
            try:
                part = db.sample_subjects(n_subjects, np.random.default_rng([seed, i]))
            except ValueError as error:
                raise SweepError(f"in {where}, {path}: {error}") from None
            yield f"{path.stem}-{n_subjects}-{seed}-{i}", part

    return count, draw
