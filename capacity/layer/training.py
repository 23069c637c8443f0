"""`train`: fit an attention layer to the facts of a database.

Sentences (k, q, v) are learnt by next-token cross entropy, at both positions or at the object's
alone (Wong 2025, section 4 and its footnote 5). Engines differ in the order of the arithmetic, not
in what is computed; sums in another order round differently, and long training magnifies that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import Seed, generator, require_integer, shown
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.engines.engine import Engine, Workload, loaded
from capacity.layer.engines.proof import require_proven
from capacity.layer.engines.registry import Compute, engine_for
from capacity.layer.model.decoder import AnyLayer
from capacity.layer.model.tensor import require_same_vocabulary
from capacity.layer.packed import weights_of
from capacity.layer.run.fact_weights import require_fact_weights, zipf_weights
from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots, followed
from capacity.progress import Progress


def train(
    layer: AnyLayer,
    db: DatabaseLike,
    recipe: Recipe | None = None,
    compute: Compute | None = None,
    *,
    seed: Seed = 0,
    weights: ArrayLike | None = None,
    snapshots: Snapshots = NO_SNAPSHOTS,
    progress: Progress | None = None,
    watch: Callable[[int, float], object] | None = None,
    watch_at: Collection[int] = (),
) -> Training:
    """Train a layer in place, from its weights and on its device.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``. Weights that require no gradient, such as W_E after
        ``layer.W_E.requires_grad_(False)``, stay as they are, as do those that the recipe freezes.
    db : Database, or what `as_database` takes
        A functional database, of any arity: the sentence of a fact is all of its tokens. With
        `weights` a pair, or key, may have several objects.
    recipe : Recipe, optional
        Hyperparameters; the defaults of `Recipe` if omitted.
    compute : Compute, optional
        Engine, dtype and device; the last two must agree with the layer. If omitted, the fastest
        engine, with the layer's dtype and device.
    seed : int or numpy.random.Generator
        Seed of the order of the facts, which matters if `Recipe.batch_size` asks for batches.
    weights : array_like of float, shape (n_facts,), optional
        Positive weight of each fact in the loss, in the order of ``db.tuples`` and up to a factor,
        such as how often it occurs. The weights of a pair's objects are their probabilities, up to
        a factor: the loss is least where the layer predicts these. They take the place of
        `Recipe.zipf`.
    snapshots : Snapshots, optional
        Snapshots of this training: it resumes from the last, with a bit-identical result, and
        writes one every few seconds, between two epochs. Engines that train many layers together,
        such as 'triton', neither resume nor write any.
    progress : callable, optional
        Called with the number of epochs done of how many (`capacity.Progress`): before the first,
        after the last, and between them by the same engines that write snapshots.
    watch : callable, optional
        Called with the number of epochs done and the last loss recorded, NaN before the first: at
        the end, and whenever `progress` is called between.
    watch_at : collection of int
        Numbers of epochs done at which `watch` is called in any case, unless training has ended
        before. The layer then has the weights of that epoch; it must not be changed. Engines that
        train many layers together can't do so.

    Returns
    -------
    Training
        Status, epochs, loss and engine, and the history of the loss.

    Raises
    ------
    InvalidTypeError
        If an argument is of another type, such as a layer and a database in the wrong order.
    MultiValuedError
        If the database is multi-valued, and there are no weights: which of two objects of one pair
        is right isn't defined.
    InvalidArgumentError
        If the layer has another number of tokens than the database, another dtype or device than
        `compute`, or no weight to train; if `weights` aren't one positive number for each fact; if
        the engine asked for can't train it; or for `watch_at` without `watch`, with what is no
        number of epochs, or by an engine that can't.
    DeviceError
        If the layer is on a GPU on which the engine doesn't compute what 'reference' does on a CPU.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)
    >>> training = train(layer, db, Recipe(learning_rate=0.1))
    >>> training.status
    'memorised'
    >>> training.history.loss[0] > training.history.loss[-1] == training.loss
    True
    """
    recipe = recipe or Recipe()
    db = require_same_vocabulary(layer, db, any_arity=True)
    engine, work = engine_of(layer, db, recipe, compute, has_fact_weights=weights is not None)
    if watch_at:
        _require_watched(watch_at, watch, engine)
    forget_gradients(layer)
    weighed = with_fact_weights(work, db, weights)
    run = partial(loaded(engine.run), layer, db, recipe, generator(seed), **weighed)
    with held_still([layer], recipe):
        return followed(run, recipe, snapshots, progress, watch, watch_at)


def _require_watched(
    watch_at: Collection[int], watch: Callable[[int, float], object] | None, engine: Engine
) -> None:
    """Refuse epochs that nobody would see: an InvalidArgumentError."""
    for epoch in watch_at:
        require_integer("watch_at", epoch, least=0)
    if watch is None:
        raise InvalidArgumentError("`watch_at` must come with `watch`, which is called then.")
    if engine.run_many is not None:
        raise InvalidArgumentError(
            f"`watch_at` must be empty for the engine {engine.name}, which trains many layers "
            "together and shows none between. Take Compute('fused') or Compute('reference')."
        )


def with_fact_weights(
    work: Workload, db: Database, weights: ArrayLike | None
) -> dict[str, NDArray[np.float64]]:
    """Return the weights of facts as an argument of `Engine.run`, if there are any.

    Raises
    ------
    InvalidArgumentError
        If `weights` aren't one positive number for each fact.
    """
    if weights is not None:
        return {"weights": require_fact_weights(weights, db.n_facts)}
    if work.weighs_facts:
        return {"weights": zipf_weights(db.n_facts, work.recipe.zipf)}
    return {}


def engine_of(
    layer: AnyLayer,
    db: Database,
    recipe: Recipe,
    compute: Compute | None,
    *,
    has_fact_weights: bool = False,
) -> tuple[Engine, Workload]:
    """Find the engine that trains the layer, and refuse a layer that can't be trained."""
    require_same_vocabulary(layer, db, any_arity=True)
    if not has_fact_weights:
        db.require_functional("Training")
    for name, value, kind in (("recipe", recipe, Recipe), ("compute", compute, Compute)):
        if value is not None and not isinstance(value, kind):
            raise InvalidTypeError(
                f"`{name}` must be a {kind.__name__}; got {shown(value)}. Pass "
                f"{kind.__name__}(...) with the options in it."
            )
    if compute is not None:
        _require_agreement(layer, compute)
    trained = [weight.requires_grad for weight in weights_of(layer)]
    names = layer.config.shapes(layer.d_vocab)
    if not any(
        free and not (recipe is not None and recipe.freezes(name))
        for name, free in zip(names, trained, strict=True)
    ):
        raise InvalidArgumentError(
            "`layer` must have a weight to train; all are frozen. Call layer.requires_grad_()."
        )
    work = Workload(
        layer.config,
        recipe,
        db.n_facts,
        db.n_tokens,
        dtype=_dtype(layer),
        device=layer.W_E.device.type,
        has_frozen_weights=not all(trained),
        arity=db.arity,
        has_fact_weights=has_fact_weights,
    )
    engine = engine_for("auto" if compute is None else compute.engine, work)
    require_proven(engine.name, layer.W_E.device, work.dtype)
    return engine, work


def forget_gradients(layer: AnyLayer) -> None:
    """Remove gradients, which engines neither use nor leave."""
    for weight in weights_of(layer):
        weight.grad = None


@contextmanager
def held_still(layers: Iterable[AnyLayer], recipe: Recipe) -> Iterator[None]:
    """Freeze the weights that a recipe freezes, while their layers are trained."""
    still = [
        weight
        for layer in (layers if recipe.frozen else ())
        for name, weight in layer.named_parameters()
        if recipe.freezes(name) and weight.requires_grad
    ]
    for weight in still:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in still:
            weight.requires_grad_()


def _dtype(layer: AnyLayer) -> str:
    return str(layer.W_E.dtype).removeprefix("torch.")


def _require_agreement(layer: AnyLayer, compute: Compute) -> None:
    """Refuse a layer with another dtype or device than `compute` asks for."""
    has = {"dtype": _dtype(layer), "device": layer.W_E.device.type}
    for name, value in has.items():
        asked = getattr(compute, name)
        if asked not in ("auto", value):
            raise InvalidArgumentError(
                f"`layer` must have the {name} that `compute` asks for, {asked}; it has {value}. "
                f"Convert it with layer.to(...), or use Compute({name}={value!r})."
            )
