"""`Engine`, one implementation of training, and what it is asked for. No torch in here.

A `Workload` describes a training, and `StepCost` predicts its seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from capacity.checks import nearest, shown
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import AnyConfig
from capacity.layer.run.recipe import Recipe, Training

if TYPE_CHECKING:
    from capacity.database.facts import Database
    from capacity.layer.model.decoder import AnyLayer
    from capacity.layer.model.forward import Weights
    from capacity.layer.packed import PackedLayers
    from capacity.layer.run.snapshots import Snapshots


@briefly_shown
@dataclass(frozen=True)
class Workload:
    """Description of a training, by which engines decide if they can do it, and for how long.

    Attributes
    ----------
    layer : LayerConfig or DecoderConfig
        Sizes and options of the layer, or decoder.
    recipe : Recipe
        Hyperparameters.
    n_triples, n_tokens : int
        Numbers of facts and of tokens in the database.
    arity : int
        Number of tokens of a fact.
    dtype : {'float32', 'float64'}
        Type of the weights.
    device : str
        Type of the device, such as 'cpu'.
    has_frozen_weights : bool
        True if some of the layer's weights aren't to be trained, beside those that the recipe
        freezes.
    has_fact_weights : bool
        True if the caller weighs the facts in the loss; a recipe may do so itself.
    """

    layer: AnyConfig
    recipe: Recipe
    n_triples: int
    n_tokens: int
    dtype: str = "float32"
    device: str = "cpu"
    has_frozen_weights: bool = False
    arity: int = 3
    has_fact_weights: bool = False

    @property
    def weighs_facts(self) -> bool:
        """True if facts count differently in the loss, by the caller or by the recipe."""
        return self.has_fact_weights or self.recipe.zipf > 0

    @property
    def trains_all(self) -> bool:
        """True if all weights are trained: neither layer nor recipe freezes any."""
        return not (self.has_frozen_weights or self.recipe.frozen)

    @property
    def n_logits(self) -> int:
        """Number of logits at the facts: facts times tokens."""
        return self.n_triples * self.n_tokens

    @property
    def n_steps(self) -> int:
        """Number of optimizer steps in an epoch."""
        size = self.recipe.facts_a_step(self.n_triples)
        return math.ceil(self.n_triples / size) if size else 1


@briefly_shown
@dataclass(frozen=True)
class StepCost:
    """Linear model of the seconds that one run takes; an `Engine.cost`.

    Parameters
    ----------
    run, look : float
        Seconds for a run, and in a run for each logit of the final loss.
    step, token : float
        Seconds for an optimizer step, and in a step for each token, times n_heads + 1.
    head : float
        Seconds for each fact and head in an epoch.
    logit, product : float
        Seconds for each logit in an epoch, and for each logit and dimension of the model.
    weight, projection : float
        Seconds for each weight of the heads (`LayerConfig.n_parameters`), in an optimizer step, and
        in an epoch for each fact.
    double : float
        Factor on the time of an epoch in float64.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> work = Workload(LayerConfig(2, 1, 1, 1), Recipe(epochs=10), n_triples=5, n_tokens=8)
    >>> round(StepCost(run=1.0, step=0.1, logit=0.01, product=0.001)(work), 3)
    6.8
    """

    run: float
    step: float
    logit: float
    product: float
    token: float = 0.0
    head: float = 0.0
    look: float = 0.0
    weight: float = 0.0
    projection: float = 0.0
    double: float = 1.0

    def __call__(self, work: Workload) -> float:
        """Return the seconds of a run that goes through all its epochs."""
        layer, n_weights = work.layer, work.layer.n_parameters
        step = self.step + self.token * work.n_tokens * (layer.n_heads + 1)
        epoch = (
            work.n_steps * (step + self.weight * n_weights)
            + work.n_triples * (self.head * layer.n_heads + self.projection * n_weights)
            + work.n_logits * (self.logit + self.product * layer.d_model)
        )
        if work.dtype == "float64":
            epoch *= self.double
        return self.run + self.look * work.n_logits + work.recipe.epochs * epoch


def why_not_plain(work: Workload) -> str | None:
    """Reason why a workload isn't that of a plain layer, or None."""
    if work.layer.is_plain:
        return None
    return "it supports the paper's layer alone, without norm, biases, positions or MLP"


def why_not_whole(work: Workload) -> str | None:
    """Reason why a workload isn't that of a plain layer with all weights trained, or None."""
    if not work.trains_all:
        return "it trains all weights, and some are frozen"
    return why_not_plain(work)


Run: TypeAlias = "Callable[[Any, Database, Recipe, np.random.Generator, Snapshots], Training]"
RunWeights: TypeAlias = (
    "Callable[[Any, Weights, Database, Recipe, np.random.Generator, Snapshots], Training]"
)
# a layer and its facts
Pair: TypeAlias = "tuple[AnyLayer, Database]"
Generators: TypeAlias = Sequence[np.random.Generator]
RunMany: TypeAlias = (
    "Callable[[PackedLayers, Sequence[Database], Recipe, Generators], list[Training]]"
)

# of weights, the logits after the pairs of facts
LogitsOfFacts: TypeAlias = "Callable[[Any, Weights, Database], NDArray[np.float64]]"

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def no_start(_works: Iterable[Workload]) -> float:
    """Return 0 seconds: the start of an engine that compiles nothing."""
    return 0.0


def nothing_ahead(_work: Workload) -> None:
    """Return None: an engine that compiles nothing, or whose code is on disk."""
    return


@briefly_shown
@dataclass(frozen=True)
class Engine:
    """One implementation of training.

    `run`, `run_weights`, `logits_of_facts` and `run_many` are functions, or the names of functions,
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
    ahead : callable
        Returns the name of a function, ``package.module:function``, and the words that it is called
        with to compile and keep what a given `Workload` needs; None if nothing has to be compiled.
        A sweep in several processes has a further one call it while they start
        (`capacity.layer.engines.ahead`). It must return at once.
    priority : int, optional
        'auto' takes the engine of the highest priority among those that can train the workload,
        and never one without a priority.
    run_weights : callable or str, optional
        Trains weights without torch, bit by bit as `run` does: ``run_weights(config, weights, db,
        recipe, rng, snapshots) -> Training`` changes the arrays of `weights`, named and shaped as
        ``config.shapes(d_vocab)``, in place. A sweep trains plain layers on CPUs by it, and others
        too if there is `logits_of_facts`, and then never loads torch, which takes over a second.
    logits_of_facts : callable or str, optional
        Computes logits without torch, also of what isn't a plain layer: ``logits_of_facts(config,
        weights, db)`` returns those after the (subject, predicate) pair of each fact, shape
        (n_facts, d_vocab), in float64.
    run_many : callable or str, optional
        Trains all weights of many layers of one device and dtype together, in place:
        ``run_many(packed, databases, recipe, rngs) -> list of Training``, with the layers as one
        tensor (`PackedLayers`). The result of each must not depend on the others. An engine that
        has it gets all its layers of a recipe at once, and no snapshots; `run` gets those with
        frozen weights, if it can train them.
    fills : int, optional
        Number of runs that fill a device, for an engine with `run_many`. A shard of a sweep holds
        no fewer of those that follow one another in the plan, however long they take.
    any_arity : bool, optional
        True if `run` trains facts of any arity; else the engine is asked for triples alone.
    weighs_facts : bool, optional
        True if `run` takes ``weights=``, the weight of each fact in the loss, of mean 1; else the
        engine is never asked for any.
    """

    name: str
    why_not: Callable[[Workload], str | None]
    run: Run | str
    cost: Callable[[Workload], float]
    start: Callable[[Iterable[Workload]], float] = no_start
    ahead: Callable[[Workload], list[str] | None] = nothing_ahead
    priority: int | None = None
    run_weights: RunWeights | str | None = None
    logits_of_facts: LogitsOfFacts | str | None = None
    run_many: RunMany | str | None = None
    fills: int = 1
    any_arity: bool = False
    weighs_facts: bool = False

    def refusal(self, work: Workload) -> str | None:
        """Return the reason why the engine can't train a workload, or None."""
        if work.arity != 3 and not self.any_arity:
            return f"it takes facts of arity 3, and these have {work.arity}"
        if work.weighs_facts and not self.weighs_facts:
            return "it takes all facts alike in the loss, and these have weights"
        return self.why_not(work)


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
