"""`train`: fit an attention layer to the facts of a database.

Sentences (k, q, v) are learnt by next-token cross entropy, at both positions or at the object's
alone (Wong 2025, section 4 and its footnote 5). The engine decides how the arithmetic is done, not
what is computed.
"""

from __future__ import annotations

import numpy as np

from capacity.database.facts import Database
from capacity.layer.attention import AttentionLayer
from capacity.layer.engines import reference
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
        If the layer's vocabulary or dtype isn't the one asked for.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)
    >>> train(layer, db, Recipe(learning_rate=0.1)).status
    'memorised'
    """
    recipe = recipe or Recipe()
    db.require_functional("Training")
    require_same_vocabulary(layer, db)
    dtype = str(layer.W_E.dtype).removeprefix("torch.")
    if dtype != recipe.dtype:
        raise ValueError(
            f"The layer must have the recipe's dtype {recipe.dtype}; it has {dtype}. Convert it "
            "with layer.to(...), or change the recipe."
        )
    return reference.run(layer, db, recipe, np.random.default_rng(seed))
