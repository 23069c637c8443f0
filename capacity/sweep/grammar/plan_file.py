"""Read a sweep's TOML file into a plan, and check it before anything trains. No torch in here.

The size of a plan follows from the numbers in its file, and a plan that is too large is refused
before any database is drawn: a million runs take a gigabyte and most of a minute to make.
"""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from capacity.checks import shown
from capacity.errors import (
    CapacityError,
    InvalidArgumentError,
    InvalidTypeError,
    StorageError,
    SweepError,
)
from capacity.layer.engines.registry import Compute
from capacity.layer.recall import check_tau
from capacity.layer.run.recipe import Recipe, Starts
from capacity.safe_files import read_file
from capacity.sweep.grammar.layers import layers_of, values_of_layers
from capacity.sweep.grammar.sections import Runs, drawn, sources_of
from capacity.sweep.grammar.values import (
    made_from,
    read_section,
    require_at_most,
    require_known,
)
from capacity.sweep.plan import Plan, Run

MOST_RUNS = 1_000_000
MOST_RECIPES = 1_000
# each adds two columns, and the search for a scale to every run
MOST_TAUS = 100
# size of a TOML file
MAX_BYTES = 2**20
# per line: the parser's time grows with the square of the number of parts of a key
MOST_DOTS = 500
SECTIONS = ("databases", "layers", "runs", "recipe", "compute")
# the device is chosen on the command line
NO_KEYS = ("device",)


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read and check a sweep's TOML file, and draw its runs.

    Parameters
    ----------
    path : path
        The TOML file. Database files are looked up in the current folder, then beside it.

    Returns
    -------
    Plan
        Runs of the sweep, in order.

    Raises
    ------
    SweepError
        For a file that can't be read, an unknown key (the message names the nearest known one), a
        value out of range, a plan that is too large, a database that isn't functional under its
        policy, or more pairs than there are.
    DatabaseFormatError
        If one of its database files can't be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> text = '''
    ... [databases]
    ... synthetic = { count = 3, max_triples = 8 }
    ... [layers]
    ... d_model = [2, 4]
    ... n_heads = [1]
    ... d_head_qk = [1]
    ... d_head_vo = [2, 3]
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "plan.toml"
    ...     _ = path.write_text(text)
    ...     plan = read_plan(path)

    3 databases with 3 layers each: 4 combinations, of which one has d_head_vo > d_model.

    >>> len(plan.runs)
    9
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
    # an editor of Windows puts a mark before it
    text = data.decode("utf-8-sig")
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise SweepError(f"a line has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise SweepError("it is nested too deep") from None
    except ValueError:
        # the parser leaves the limit on digits to Python
        raise SweepError("an integer in it has too many digits") from None


def make_plan(config: Mapping[str, Any], *, folder: Path = Path()) -> Plan:
    """Check a configuration and draw its runs.

    The runs of a (database, layer) pair are consecutive: each recipe with each seed.

    Parameters
    ----------
    config : mapping
        Content of a sweep's TOML file, as `tomllib` returns it.
    folder : Path
        Where database files are looked up that are not in the current folder.

    Returns
    -------
    Plan
        Runs of the sweep, in order.

    Raises
    ------
    SweepError
        For an unknown key (the message names the nearest known one), a value out of range, a plan
        that is too large, a database that isn't functional under its policy, or more pairs than
        there are.
    InvalidTypeError
        For the path of a file.
    DatabaseFormatError
        If one of the database files can't be read.

    Examples
    --------
    Two databases, two layers and two seeds:

    >>> layers = {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [2]}
    >>> plan = make_plan(
    ...     {
    ...         "databases": {"synthetic": {"count": 2, "max_triples": 8}},
    ...         "layers": layers,
    ...         "runs": {"seeds": [0, 1]},
    ...     }
    ... )
    >>> len(plan.runs)
    8
    """
    if isinstance(config, str | Path):
        raise InvalidTypeError(
            f"`config` must be the content of a sweep's file; got {shown(config)}. "
            "capacity.sweep.read_plan(path) reads one."
        )
    require_known(config, "the file", SECTIONS)
    recipes = _recipes(config.get("recipe", {}))
    compute = made_from(Compute, config.get("compute", {}), "[compute]", without=NO_KEYS)
    asked = read_section(Runs, config.get("runs", {}), "[runs]")
    seeds, taus, starts = _seeds(asked), _taus(asked), _starts(asked)
    for name in ("databases", "layers"):
        if name not in config:
            raise SweepError(f"the file must have the key `{name}`.")
    values = values_of_layers(config["layers"])
    digests: dict[str, str] = {}
    sources = sources_of(config["databases"], folder, digests)
    if asked.pairs is not None:
        require_at_most(MOST_RUNS, asked.pairs, "[runs]", "pairs")
    layers = layers_of(values)
    pairs = asked.pairs or len(layers) * sum(source.count for source in sources)
    n_runs = pairs * len(seeds) * len(recipes)
    require_at_most(MOST_RUNS, n_runs, "the file", "runs")
    require_at_most(MOST_RUNS, n_runs * starts.most, "the file", "starts of runs")
    databases = drawn(sources)
    runs: list[Run] = []
    for pair in _chosen(len(databases), len(layers), asked.pairs, asked.seed):
        i, j = divmod(pair, len(layers))
        name, db = databases[i]
        runs += [
            Run(name, db, layers[j], seed, recipe, compute, taus=taus, starts=starts)
            for recipe, seed in itertools.product(recipes, seeds)
        ]
    return Plan(tuple(runs), dict(config), digests)


def _chosen(n_databases: int, n_layers: int, pairs: int | None, seed: int) -> Iterable[int]:
    """Indices of a plan's pairs, in order: i * n_layers + j for database i and layer j."""
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
        raise SweepError(
            "`seeds` in [runs] must name each seed once, or runs would be repeated. Remove the "
            "duplicates."
        )
    return seeds


def _taus(asked: Runs) -> tuple[float, ...]:
    require_at_most(MOST_TAUS, len(asked.taus), "[runs]", "taus")
    try:
        for tau in asked.taus:
            check_tau(tau)
    except InvalidArgumentError as error:
        raise SweepError(f"in [runs], `taus`: {error}") from None
    return tuple(asked.taus)


def _starts(asked: Runs) -> Starts:
    try:
        return Starts(asked.starts, asked.until, asked.held_at)
    except CapacityError as error:
        raise SweepError(f"in [runs]: {error}") from None


def _recipes(options: Any) -> list[Recipe]:
    """The recipes of ``[recipe]``, or of each ``[[recipe]]``."""
    if not isinstance(options, list):
        return [made_from(Recipe, options, "[recipe]")]
    require_at_most(MOST_RECIPES, len(options), "[[recipe]]", "recipes")
    recipes = [made_from(Recipe, one, f"[[recipe]] {n}") for n, one in enumerate(options, 1)]
    if not recipes or len(set(recipes)) < len(recipes):
        raise SweepError("[[recipe]] must hold each recipe once, and at least one.")
    return recipes
