"""From a sweep's TOML file to its plan; all is checked before anything trains. No torch in here.

How much a plan asks for is known from its numbers alone, and what asks for too much is refused
before anything is drawn: a plan of a million runs takes a gigabyte and most of a minute to make.
"""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from capacity.errors import InvalidArgumentError, StorageError, SweepError
from capacity.evaluator.accuracy import check_tau
from capacity.layer.compute import Compute
from capacity.layer.config import LayerConfig
from capacity.layer.recipe import Recipe
from capacity.limits import MAX_SIZE, shown
from capacity.safe_files import read_file
from capacity.sweep.grammar.sections import Runs
from capacity.sweep.grammar.sources import drawn, sources_of
from capacity.sweep.grammar.values import (
    is_required,
    keys_of,
    made_from,
    read_section,
    require_at_most,
    require_known,
)
from capacity.sweep.plan import Plan, Run

# combinations of sizes
MOST_LAYERS = 1_000_000
MOST_RUNS = 1_000_000
MOST_RECIPES = 1_000
# each has two columns, and its scale is searched for each run
MOST_TAUS = 100
# of a TOML file
MAX_BYTES = 2**20
# in a line: the parser takes a time that grows with the square of a key's parts
MOST_DOTS = 500
SECTIONS = ("databases", "layers", "runs", "recipe", "compute")
# where a sweep trains is said on the command line
NO_KEYS = ("device",)
# tokens of the sentence that asks for a fact's object
SENTENCE = 2


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
    """Check a configuration and draw its runs; raises as `read_plan` does.

    The runs of a pair of database and layer come one after the other, each recipe with each seed.
    """
    require_known(config, "the file", SECTIONS)
    recipes = _recipes(config.get("recipe", {}))
    compute = made_from(Compute, config.get("compute", {}), "[compute]", without=NO_KEYS)
    asked = read_section(Runs, config.get("runs", {}), "[runs]")
    seeds, taus = _seeds(asked), _taus(asked)
    for name in ("databases", "layers"):
        if name not in config:
            raise SweepError(f"the file must have the key `{name}`.")
    values = _values_of_layers(config["layers"])
    digests: dict[str, str] = {}
    sources = sources_of(config["databases"], folder, digests)
    if asked.pairs is not None:
        require_at_most(MOST_RUNS, asked.pairs, "[runs]", "pairs")
    layers = _layers(values)
    pairs = asked.pairs or len(layers) * sum(source.count for source in sources)
    require_at_most(MOST_RUNS, pairs * len(seeds) * len(recipes), "the file", "runs")
    databases = drawn(sources)
    runs: list[Run] = []
    for pair in _chosen(len(databases), len(layers), asked.pairs, asked.seed):
        i, j = divmod(pair, len(layers))
        name, db = databases[i]
        runs += [
            Run(name, db, layers[j], seed, recipe, compute, taus=taus)
            for recipe, seed in itertools.product(recipes, seeds)
        ]
    return Plan(tuple(runs), dict(config), digests)


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
    chosen = np.random.default_rng(seed).choice(there_are, pairs, replace=False)
    return sorted(chosen.tolist())


def _seeds(asked: Runs) -> list[int]:
    seeds = [asked.seed] if asked.seeds is None else asked.seeds
    if len(set(seeds)) < len(seeds):
        raise SweepError("`seeds` in [runs] must name each seed once; some run would come twice.")
    return seeds


def _taus(asked: Runs) -> tuple[float, ...]:
    require_at_most(MOST_TAUS, len(asked.taus), "[runs]", "taus")
    try:
        for tau in asked.taus:
            check_tau(tau)
    except InvalidArgumentError as error:
        raise SweepError(f"in [runs], of `taus`: {error}") from None
    return tuple(asked.taus)


def _recipes(options: Any) -> list[Recipe]:
    """The recipes of ``[recipe]``, or of each ``[[recipe]]``."""
    if not isinstance(options, list):
        return [made_from(Recipe, options, "[recipe]")]
    require_at_most(MOST_RECIPES, len(options), "[[recipe]]", "recipes")
    recipes = [made_from(Recipe, one, f"[[recipe]] {n}") for n, one in enumerate(options, 1)]
    if not recipes or len(set(recipes)) < len(recipes):
        raise SweepError("[[recipe]] must hold each recipe once, and one at least.")
    return recipes


def _values_of_layers(options: Any) -> dict[str, list[Any]]:
    """The values of each field that layers combine, whose number isn't too large."""
    require_known(options, "[layers]", keys_of(LayerConfig))
    values: dict[str, list[Any]] = {}
    for each in fields(LayerConfig):
        if each.name not in options and is_required(each):
            raise SweepError(f"[layers] must have the key `{each.name}`.")
        listed = options.get(each.name, [each.default])
        if not isinstance(listed, list) or not listed:
            what = "values" if isinstance(each.default, bool) else "sizes"
            raise SweepError(
                f"`{each.name}` in [layers] must be a list of {what}; got {shown(listed)}."
            )
        values[each.name] = listed
    combinations = math.prod(map(len, values.values()))
    require_at_most(MOST_LAYERS, combinations, "[layers]", "combinations")
    # beside which every value that is allowed at all is allowed
    largest = LayerConfig(MAX_SIZE, 1, 1, 1)
    try:
        for name, listed in values.items():
            for value in listed:
                replace(largest, **{name: value})
    except InvalidArgumentError as error:
        raise SweepError(f"in [layers]: {error}") from None
    short = [n for n in values["n_positions"] if 0 < n < SENTENCE]
    if short:
        raise SweepError(
            f"`n_positions` in [layers] must be 0, for none, or at least {SENTENCE}, for a subject "
            f"and a predicate ask for a fact; got {short[0]}."
        )
    return values


def _layers(values: Mapping[str, list[Any]]) -> list[LayerConfig]:
    combined = (
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    )
    layers = [
        LayerConfig(**sizes)
        for sizes in combined
        if max(sizes["d_head_qk"], sizes["d_head_vo"]) <= sizes["d_model"]
    ]
    if not layers:
        raise SweepError("[layers] must hold a layer with d_head_qk, d_head_vo <= d_model.")
    if len(set(layers)) < len(layers):
        raise SweepError("[layers] must name each size once; some layer would be trained twice.")
    return layers
