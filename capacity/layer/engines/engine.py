"""`Engine`, one implementation of training. No torch in here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from capacity.checks import nearest, shown
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.engines.workload import Workload
from capacity.layer.run.recipe import Recipe, Training

if TYPE_CHECKING:
    from capacity.database.facts import Database
    from capacity.layer.model.attention_layer import AttentionLayer
    from capacity.layer.model.config import LayerConfig
    from capacity.layer.model.forward import Weights
    from capacity.layer.packed import PackedLayers
    from capacity.layer.run.snapshots import Snapshots

Run: TypeAlias = (
    "Callable[[AttentionLayer, Database, Recipe, np.random.Generator, Snapshots], Training]"
)
RunWeights: TypeAlias = (
    "Callable[[LayerConfig, Weights, Database, Recipe, np.random.Generator, Snapshots], Training]"
)
# a layer and its facts
Pair: TypeAlias = "tuple[AttentionLayer, Database]"
Generators: TypeAlias = Sequence[np.random.Generator]
RunMany: TypeAlias = (
    "Callable[[PackedLayers, Sequence[Database], Recipe, Generators], list[Training]]"
)

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def no_start(_works: Iterable[Workload]) -> float:
    """Return 0 seconds: the start of an engine that compiles nothing."""
    return 0.0


@briefly_shown
@dataclass(frozen=True)
class Engine:
    """One implementation of training.

    `run`, `run_weights` and `run_many` are functions, or the names of functions,
    ``package.module:function``. What is named is imported when the engine first trains, so that an
    engine can be registered without torch.

    Attributes
    ----------
    name : str
        Name in ``Compute(engine=...)`` and in the tables of sweeps. The key of a run holds nothing
        else of its engine, so that an engine that computes something else needs another name.
    why_not : callable
        Returns the reason why the engine can't train a given `Workload`, as a clause to follow
        "for", or None if it can.
    run : callable or str
        Trains one layer in place: ``run(layer, db, recipe, rng, snapshots) -> Training``. `rng`
        orders the facts of batches. The arguments have been checked.
    cost : callable
        Estimates the seconds that a run of a given `Workload` takes on one idle core if it goes
        through all its epochs: the training alone, without start-up, and without scoring the layer.
        It must be the same on every machine, since the shards of a sweep are cut by it.
    start : callable
        Estimates the seconds that pass once in a process, before the first of its workloads:
        compiling or loading kernels, and importing libraries that no other engine needs. Importing
        torch isn't part of it (`start_seconds`). Kernels kept by an earlier process cost little.
    priority : int, optional
        'auto' takes the engine of the highest priority among those that can train the workload,
        and never one without a priority.
    run_weights : callable or str, optional
        Trains the weights of a plain layer without torch, bit by bit as `run` does:
        ``run_weights(config, weights, db, recipe, rng, snapshots) -> Training`` changes the arrays
        of `weights`, named and shaped as ``config.shapes(d_vocab)``, in place. A sweep trains plain
        layers on CPUs by it, and then never loads torch, which takes over a second.
    run_many : callable or str, optional
        Trains all weights of many layers of one device and dtype together, in place:
        ``run_many(packed, databases, recipe, rngs) -> list of Training``, with the layers as one
        tensor (`PackedLayers`). The result of each must not depend on the others. An engine that
        has it gets all its layers of a recipe at once, and no snapshots; `run` gets those with
        frozen weights, if it can train them.
    fills : int, optional
        Number of runs that fill a device, for an engine with `run_many`. A shard of a sweep holds
        no fewer of those that follow one another in the plan, however long they take.
    """

    name: str
    why_not: Callable[[Workload], str | None]
    run: Run | str
    cost: Callable[[Workload], float]
    start: Callable[[Iterable[Workload]], float] = no_start
    priority: int | None = None
    run_weights: RunWeights | str | None = None
    run_many: RunMany | str | None = None
    fills: int = 1


def loaded(function: _Function | str) -> _Function:
    """Return a function of an engine: itself, or the one that is named.

    Parameters
    ----------
    function : callable or str
        A function, or its name, ``package.module:function``.

    Raises
    ------
    InvalidArgumentError
        If the name isn't of that form, or no function has it.
    ModuleNotFoundError
        If its module is there, and needs a package that isn't.

    Examples
    --------
    >>> loaded("math:sqrt")(9.0)
    3.0
    """
    if not isinstance(function, str):
        return function
    where, _, name = function.partition(":")
    if not all(part.isidentifier() for part in (*where.split("."), name)):
        raise InvalidArgumentError(
            "A function of an engine must be given itself, or by its name as "
            f"package.module:function; got {shown(function)}."
        )
    try:
        module = import_module(where)
    except ModuleNotFoundError as error:
        # the module or a package around it, and not what it imports
        if f"{where}.".startswith(f"{error.name}."):
            raise _no_function(function, f"there is no module {error.name}.") from error
        raise
    named = getattr(module, name, None)
    if not callable(named):
        why = f"{where} has no function {name}.{nearest(name, vars(module))}"
        raise _no_function(function, why)
    return cast("_Function", named)


def _no_function(name: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"An engine must name a function that is there; of {name}, {why}")
