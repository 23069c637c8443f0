"""`train` and `train_many`: fit attention layers to the facts of databases.

Sentences (k, q, v) are learnt by next-token cross entropy, at both positions or at the object's
alone (Wong 2025, section 4 and its footnote 5). The engine decides how the arithmetic is done, not
what is computed; sums in another order round otherwise, and long training magnifies that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.layer.attention import AttentionLayer
from capacity.layer.engine import engine_for
from capacity.layer.engines import blocked, fused, reference
from capacity.layer.layer_tensor import require_same_vocabulary
from capacity.layer.recipe import Recipe, Training


def train(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe | None = None,
    *,
    seed: int | np.random.Generator = 0,
) -> Training:
    """Train a layer in place, on the device and from the weights that it has.

    Parameters
    ----------
    layer : AttentionLayer
        With ``d_vocab == db.n_tokens`` and the recipe's dtype.
    db : Database
        Functional.
    recipe : Recipe, optional
        The paper's if left out.
    seed : int or numpy.random.Generator
        Of the order of the facts, where `Recipe.batch_size` asks for batches.

    Returns
    -------
    Training

    Raises
    ------
    MultiValuedError
        If the database is multi-valued: a layer can't learn two answers to one question.
    ValueError
        If the layer's vocabulary or dtype isn't the one asked for, or the engine that was asked
        for can't train it.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)
    >>> train(layer, db, Recipe(learning_rate=0.1)).status
    'memorised'
    """
    return _checked(layer, db, recipe or Recipe())(np.random.default_rng(seed))


def train_many(
    tasks: Sequence[tuple[AttentionLayer, Database]],
    recipe: Recipe | None = None,
    *,
    seeds: Sequence[int] | None = None,
    threads: int = 1,
) -> list[Training]:
    """Train many layers, each on its database, as `train` does each of them alone.

    Parameters
    ----------
    tasks : sequence of (AttentionLayer, Database)
    recipe : Recipe, optional
    seeds : sequence of int, optional
        Of each task, for `train`; 0 for all if left out.
    threads : int
        That work at a time, on the largest tasks first. The result doesn't depend on it. Only the
        fused engine gains by more than one, for the others hold Python's lock.

    Returns
    -------
    list of Training
        In the order of the tasks.

    Raises
    ------
    ValueError, MultiValuedError
        As `train` does, before anything is trained.
    """
    recipe = recipe or Recipe()
    seeds = [0] * len(tasks) if seeds is None else seeds
    if len(seeds) != len(tasks):
        raise InvalidArgumentError(
            f"`seeds` must have one for each of {len(tasks)} tasks; got {len(seeds)}."
        )
    runs = [_checked(layer, db, recipe) for layer, db in tasks]
    sizes = [db.n_triples * db.n_tokens for _, db in tasks]
    if threads < 1:
        raise InvalidArgumentError(f"`threads` must be at least 1; got {threads}.")
    order = sorted(range(len(tasks)), key=lambda i: -sizes[i])
    with ThreadPoolExecutor(threads) as pool:
        begun = {i: pool.submit(runs[i], np.random.default_rng(seeds[i])) for i in order}
        try:
            return [begun[i].result() for i in range(len(tasks))]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _checked(
    layer: AttentionLayer, db: Database, recipe: Recipe
) -> Callable[[np.random.Generator], Training]:
    """What trains the layer, if it can be trained."""
    db.require_functional("Training")
    require_same_vocabulary(layer, db)
    dtype = str(layer.W_E.dtype).removeprefix("torch.")
    if dtype != recipe.dtype:
        raise ValueError(
            f"The layer must have the recipe's dtype {recipe.dtype}; it has {dtype}. Convert it "
            "with layer.to(...), or change the recipe."
        )
    engine = engine_for(recipe.engine, layer.config, layer.W_E.device.type)
    run = {"fused": fused.run, "blocked": blocked.run, "reference": reference.run}[engine]
    return partial(run, layer, db, recipe)
