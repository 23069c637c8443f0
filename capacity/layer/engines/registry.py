"""Registry of engines: the workloads that each can train, their cost, and the choice of one.

An engine is one `Engine`, defined beside its code, and one line that registers it; those of the
library are registered by `capacity.layer.engines`. `Compute` names the engine, precision and device
of a training, of which "auto" is a choice. No torch in here, so that a sweep can be planned without
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from capacity.checks import require_choice, with_known_options
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.engines.engine import Engine, Workload
from capacity.layer.model.devices import require_device

# CPU seconds to import what a sweep's process needs, and torch beside it, on a core of 2025
START_SECONDS, TORCH_SECONDS = 0.8, 1.2


_ENGINES: dict[str, Engine] = {}


def register_engine(engine: Engine) -> None:
    """Register an engine under its name, in this process.

    A sweep passes it on to the processes that train for it, on other machines too; these must be
    able to import the modules of its functions, those that it names as well.

    Parameters
    ----------
    engine : Engine
        The engine, under a new name.

    Raises
    ------
    InvalidArgumentError
        If the name is taken, as 'auto' is.

    Examples
    --------
    An engine that learns nothing, and that 'auto' never takes:

    >>> def run(layer, db, recipe, rng, snapshots):
    ...     return Training("completed", recipe.epochs, float("nan"), "idle")
    >>> idle = Engine("idle", why_not=lambda work: None, run=run, cost=lambda work: 0.0)
    >>> register_engine(idle)
    >>> from capacity.layer import Compute
    >>> Compute("idle").engine
    'idle'
    >>> unregister_engine("idle") is idle
    True
    """
    if engine.name == "auto" or engine.name in _ENGINES:
        raise InvalidArgumentError(
            f"`name` of an engine must be new; {engine.name} is taken. Choose another name, or "
            "remove the other engine with unregister_engine."
        )
    _ENGINES[engine.name] = engine


def make_known(engines: Iterable[Engine]) -> None:
    """Register engines of another process, but for those whose names are taken in this one.

    Parameters
    ----------
    engines : iterable of Engine
        The engines, as `engines_named` returned them there.
    """
    for engine in engines:
        _ENGINES.setdefault(engine.name, engine)


def unregister_engine(name: str) -> Engine:
    """Remove an engine from the registry, and return it.

    Parameters
    ----------
    name : str
        Name of the engine.

    Returns
    -------
    Engine
        The engine, which `register_engine` can add again.

    Raises
    ------
    InvalidArgumentError
        If there is none of that name.

    Examples
    --------
    >>> triton = unregister_engine("triton")
    >>> "triton" in engine_names()
    False
    >>> register_engine(triton)
    """
    engine = engine_named(name)
    del _ENGINES[name]
    return engine


def engine_names() -> tuple[str, ...]:
    """Names of all engines, in the order of their registration."""
    return tuple(_ENGINES)


def engine_named(name: str) -> Engine:
    """Look up an engine.

    Raises
    ------
    InvalidArgumentError
        If there is none of that name.
    """
    require_choice("`engine`", name, _ENGINES)
    return _ENGINES[name]


def engines_named(names: Iterable[str]) -> tuple[Engine, ...]:
    """Look up several engines, each once; raises as `engine_named` does.

    Parameters
    ----------
    names : iterable of str
        Names of the engines.

    Returns
    -------
    tuple of Engine
        The engines in the order of their names.
    """
    return tuple(map(engine_named, sorted(set(names))))


def engine_for(name: str, work: Workload) -> Engine:
    """Find the engine that trains a workload, with 'auto' resolved.

    Parameters
    ----------
    name : str
        Name of an engine, or 'auto'.
    work : Workload
        The training.

    Returns
    -------
    Engine
        The engine of that name; for 'auto', the one of the highest priority that can train it. Of
        equal ones on a GPU, the one that trains many runs together goes first.

    Raises
    ------
    InvalidArgumentError
        If the engine asked for can't train it, or 'auto' finds none.

    Examples
    --------
    >>> from capacity.layer import LayerConfig, Recipe
    >>> def chosen(layer):
    ...     return engine_for("auto", Workload(layer, Recipe(), n_triples=9, n_tokens=9)).name
    >>> chosen(LayerConfig(4, 2, 2, 2))
    'fused'
    >>> chosen(LayerConfig(16, 2, 2, 2))
    'tape'
    >>> chosen(LayerConfig(128, 2, 2, 2))
    'blocked'
    >>> chosen(LayerConfig(4, 2, 2, 2, bias=True))
    'tape'
    """
    if name != "auto":
        engine = engine_named(name)
        refusal = engine.refusal(work)
        if refusal is None:
            return engine
        able = [other.name for other in _ENGINES.values() if other.refusal(work) is None]
        raise InvalidArgumentError(
            f"`engine` must suit the layer; {name} can't train {work.layer.name} on {work.device}, "
            f"for {refusal}. Use {' or '.join(['auto', *able])}."
        )
    known = [engine for engine in _ENGINES.values() if engine.priority is not None]

    def rank(engine: Engine) -> tuple[int, bool]:
        return engine.priority or 0, work.device != "cpu" and engine.run_many is not None

    for engine in sorted(known, key=rank, reverse=True):
        if engine.refusal(work) is None:
            return engine
    raise InvalidArgumentError(
        f"`engine` must be one that can train {work.layer.name} on {work.device}; auto finds none "
        f"among {', '.join(_ENGINES)}."
    )


def trains_weights(name: str, work: Workload) -> bool:
    """Return True if an engine trains a workload as weights, without torch (`run_weights`).

    Parameters
    ----------
    name : str
        Name of the engine, as `engine_for` resolves it.
    work : Workload
        The training.
    """
    engine = engine_named(name)
    alone = engine.run_weights is not None and engine.run_many is None
    scored = work.layer.is_plain or engine.logits_of_facts is not None
    whole = scored and not (work.has_frozen_weights or work.weighs_facts)
    return alone and whole and work.device == "cpu"


def start_seconds(works: Iterable[tuple[str, Workload]]) -> float:
    """Estimate the seconds that pass once in a process, before its first training.

    Parameters
    ----------
    works : iterable of (str, Workload)
        The trainings, each with the name of its engine as `engine_for` resolves it.

    Returns
    -------
    float
        Seconds for imports, among them torch if an engine needs it, and for the start of each
        engine (`Engine.start`); 0 without trainings.
    """
    by_engine: dict[str, list[Workload]] = {}
    for name, work in works:
        by_engine.setdefault(name, []).append(work)
    if not by_engine:
        return 0.0
    needs_torch = not all(
        trains_weights(name, work) for name, part in by_engine.items() for work in part
    )
    starts = sum(engine_named(name).start(part) for name, part in by_engine.items())
    return START_SECONDS + needs_torch * TORCH_SECONDS + starts


DType: TypeAlias = Literal["float32", "float64"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class Compute:
    """Engine, precision and device of a training.

    Engines and devices round differently, and float64 is more precise than float32. The
    computation itself is defined by the `Recipe`.

    Parameters
    ----------
    engine : str
        'reference', 'fused', 'tape', 'blocked', 'triton', or an engine added by `register_engine`;
        'auto' takes the fastest that can train the layer on a CPU. On GPUs 'reference', 'blocked'
        and, with the extra `gpu`, 'triton' can train; 'auto' takes 'triton' where it can, else
        'blocked', else 'reference'. Each trains 16 small runs first, and is refused if 'reference'
        on the CPU trains them to other weights.
    dtype : {'float32', 'float64'}
        Type of weights, gradients and moments.
    device : {'auto', 'cpu', 'cuda'}
        'auto' is the device of the layer if there is one already, and the CPU otherwise.

    Raises
    ------
    InvalidArgumentError
        For a value that isn't listed.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> Compute("fused", dtype="float64").device
    'auto'
    """

    engine: str = "auto"
    dtype: DType = "float32"
    device: Device = "auto"

    def __post_init__(self) -> None:
        require_choice("`engine`", self.engine, ("auto", *engine_names()))
        require_choice("`dtype`", self.dtype, get_args(DType))
        require_choice("`device`", self.device, get_args(Device))


def resolve_device(device: Device) -> Literal["cpu", "cuda"]:
    """Resolve 'auto', which is the CPU, and check that a GPU asked for is available.

    Raises
    ------
    InvalidArgumentError
        For another name, or a GPU that isn't available.
    """
    require_choice("`device`", device, get_args(Device))
    if device != "cuda":
        return "cpu"
    require_device(device)
    return "cuda"
