"""`EncoderConfig`: sizes of an `EncoderClassifier`, and its initial weights.

References
----------
Bhardwaj, Majumder, Poria, Hovy 2021, "More Identifiable yet Equally Performant Transformers for
Text Classification", sections 4 and 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import (
    MAX_SIZE,
    MAX_TOKENS,
    Seed,
    generator,
    require_affordable,
    require_integer,
    shown,
)
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError

Combine = Literal["concatenate", "add"]


@briefly_shown
@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of a one-layer encoder that classifies sentences, with d_head_qk free.

    Parameters
    ----------
    d_vocab : int
        Number of tokens of the vocabulary.
    n_classes : int
        Number of classes, at least 2.
    n_positions : int
        Largest number of tokens in a sentence.
    d_model : int
        Size of embeddings.
    n_heads : int
        Number of heads; a divisor of d_model if they are concatenated.
    d_head_qk : int
        Size of queries and keys. According to the paper, small ones make attention more
        identifiable (section 4).
    d_feed_forward : int
        Number of hidden units of the feed-forward.
    combine : {'concatenate', 'add'}
        Concatenate the heads' outputs, or add them up.

    Raises
    ------
    InvalidArgumentError
        If a size isn't an integer from 1 to 2^20 (n_classes: from 2; d_vocab: to 2^31 - 1), or
        n_heads doesn't divide d_model for concatenated heads.

    Examples
    --------
    >>> EncoderConfig(100, 2, 16, 8, 4, 2, 32, "concatenate").d_head_vo
    2
    >>> EncoderConfig(100, 2, 16, 8, 4, 2, 32, "add").d_head_vo
    8
    """

    d_vocab: int
    n_classes: int
    n_positions: int
    d_model: int
    n_heads: int
    d_head_qk: int
    d_feed_forward: int
    combine: Combine

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "combine":
                if value not in get_args(Combine):
                    raise InvalidArgumentError(
                        f"`combine` must be 'concatenate' or 'add'; got {shown(value)}."
                    )
                continue
            size = require_integer(
                field.name,
                value,
                least=2 if field.name == "n_classes" else 1,
                most=MAX_TOKENS if field.name == "d_vocab" else MAX_SIZE,
            )
            object.__setattr__(self, field.name, size)
        if self.combine == "concatenate" and self.d_model % self.n_heads:
            raise InvalidArgumentError(
                f"`n_heads` must divide d_model = {self.d_model} for heads to be concatenated; got "
                f"{self.n_heads}. Take a divisor, or combine='add'."
            )

    @property
    def d_head_vo(self) -> int:
        """Size of values: d_model / n_heads if heads are concatenated, d_model if added."""
        return self.d_model if self.combine == "add" else self.d_model // self.n_heads

    @property
    def n_parameters(self) -> int:
        """Number of weights, biases and gains, embeddings excluded."""
        d, d_ff = self.d_model, self.d_feed_forward
        heads = self.n_heads * (d + 1) * (2 * self.d_head_qk + self.d_head_vo)
        norms = 4 * d
        feed_forward = (d + 1) * d_ff + (d_ff + 1) * d
        return heads + (d + 1) * d + norms + feed_forward + (d + 1) * self.n_classes

    @property
    def n_embedding_parameters(self) -> int:
        """Number of weights in the embeddings of tokens and positions."""
        return (self.d_vocab + self.n_positions) * self.d_model


def initial_weights(config: EncoderConfig, seed: Seed) -> dict[str, NDArray[np.float64]]:
    """Draw initial weights in float64, the same for every device and dtype.

    Embeddings of tokens and positions are N(0, 1) (section 6). All other weights and biases are
    U(-1/sqrt(fan_in), 1/sqrt(fan_in)), as in `torch.nn.Linear`.

    Parameters
    ----------
    config : EncoderConfig
        Sizes.
    seed : int or numpy.random.Generator
        Seed of the draw.

    Returns
    -------
    dict of str to ndarray
        Weights by their names in `EncoderClassifier`.

    Raises
    ------
    InvalidArgumentError
        If the seed is out of range.
    MemoryBudgetError
        If the weights would take more than 8 GiB in float64; nothing is drawn then.
    """
    c, d = config, config.d_model
    embeddings = {"W_E": (c.d_vocab, d), "W_pos": (c.n_positions, d)}
    weights: dict[str, tuple[int, ...]] = {
        "Q": (c.n_heads, d, c.d_head_qk),
        "K": (c.n_heads, d, c.d_head_qk),
        "V": (c.n_heads, d, c.d_head_vo),
        "O": (d, d),
        "1": (d, c.d_feed_forward),
        "2": (c.d_feed_forward, d),
        "C": (d, c.n_classes),
    }
    biases = {name: (*heads, fan_out) for name, (*heads, _, fan_out) in weights.items()}
    require_affordable([*embeddings.values(), *weights.values(), *biases.values()])
    rng = generator(seed)
    drawn = {name: rng.standard_normal(shape) for name, shape in embeddings.items()}
    for name, shape in weights.items():
        bound = 1 / math.sqrt(shape[-2])
        drawn[f"W_{name}"] = rng.uniform(-bound, bound, shape)
        drawn[f"b_{name}"] = rng.uniform(-bound, bound, biases[name])
    return drawn
