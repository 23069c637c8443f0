"""The weights that an `AttentionLayer` begins with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from capacity.checks import (
    MAX_TOKENS,
    Seed,
    generator,
    require_affordable,
    require_integer,
    shown,
)
from capacity.errors import InvalidTypeError
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.decoder.structure import initial_weights_of_parts
from capacity.layer.model.config import AnyConfig


def initial_weights(config: AnyConfig, d_vocab: int, seed: Seed) -> dict[str, NDArray[np.float64]]:
    """Draw initial weights in float64, the same for every engine, device and dtype.

    W_E is N(0, 1); W_U and the heads' matrices are U(-1/sqrt(fan_in), 1/sqrt(fan_in)); positions
    and biases are 0, gains 1.

    Parameters
    ----------
    config : LayerConfig or DecoderConfig
        Sizes and options.
    d_vocab : int
        Number of tokens, at most 2^31 - 1.
    seed : int or numpy.random.Generator
        A generator, or its seed from 0 to 2^63 - 1.

    Returns
    -------
    dict of str to ndarray
        Weights by name, with the shapes of ``config.shapes(d_vocab)``, in that order.

    Raises
    ------
    InvalidTypeError
        For a `config` or `d_vocab` of another type.
    InvalidArgumentError
        For a number of tokens or a seed out of its range.
    MemoryBudgetError
        Before anything is drawn, if the weights would take more than 8 GiB in float64.
    """
    if not isinstance(config, AnyConfig):
        raise InvalidTypeError(
            f"`config` must be a LayerConfig or a DecoderConfig; got {shown(config)}."
        )
    if hasattr(d_vocab, "n_tokens"):
        raise InvalidTypeError(
            "`d_vocab` must be the number of tokens; got a database. Pass db.n_tokens."
        )
    d_vocab = require_integer("d_vocab", d_vocab, most=MAX_TOKENS)
    shapes = config.shapes(d_vocab)
    require_affordable(shapes.values())
    rng = generator(seed)
    if isinstance(config, DecoderConfig):
        return initial_weights_of_parts(config, d_vocab, rng)
    weights = {"W_E": rng.standard_normal(shapes["W_E"])}
    for name in ("W_U", "W_Q", "W_K", "W_V", "W_O"):
        # the fan-in of W_K is d_model too: keys are x W_K^T, rows acting from the left
        fan_in = config.d_head_vo if name == "W_O" else config.d_model
        weights[name] = rng.uniform(-1, 1, shapes[name]) / math.sqrt(fan_in)
    for name in shapes.keys() - weights.keys():
        weights[name] = np.full(shapes[name], float(name.endswith(".weight")))
    return {name: weights[name] for name in shapes}
