"""Decoders, plain layers of as many parameters, and databases: the cells of the experiments.

All databases have the same numbers of subjects, predicates and objects, so that a decoder has as
many embeddings whatever the number of facts: with databases of the paper's kind tokens grow with
facts, and no two sizes could be compared at equal parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from capacity import Database, LayerConfig
from capacity.layer import DecoderConfig

Budget: TypeAlias = Literal["total", "non-embedding"]
AnyConfig: TypeAlias = LayerConfig | DecoderConfig

SUBJECTS, PREDICATES, OBJECTS = 40, 16, 16
TOKENS = SUBJECTS + PREDICATES + OBJECTS
# numbers of facts, a quarter of an octave apart: from one for each subject to one for each pair
SIZES = tuple(round(SUBJECTS * 2 ** (i / 4)) for i in range(17))

# what each architecture is built on; d_head_qk is even, for rotary positions
SHAPES = {
    each.name: each
    for each in (
        LayerConfig(4, 2, 2, 2), LayerConfig(5, 1, 2, 4), LayerConfig(6, 3, 2, 2),
    )
}  # fmt: skip
PLAIN_LAYER, MLP_ALONE = "plain", "MLP alone"
# its options, by d_model
ARCHITECTURES: dict[str, Callable[[int], dict[str, Any]]] = {
    PLAIN_LAYER: lambda _: {},
    "layer norm": lambda _: {"norm": "layer"},
    "RMS norm": lambda _: {"norm": "rms"},
    "biases": lambda _: {"bias": True},
    "scale": lambda _: {"scale": True},
    "learned positions": lambda _: {"positions": "learned"},
    "rotary positions": lambda _: {"positions": "rotary"},
    "MLP of d_model": lambda d: {"mlp": d},
    "MLP of 2 d_model": lambda d: {"mlp": 2 * d},
    "MLP of 4 d_model": lambda d: {"mlp": 4 * d},
    "all": lambda d: {
        "norm": "layer", "bias": True, "scale": True, "positions": "learned", "mlp": 4 * d,
    },
    "two layers": lambda _: {"n_layers": 2},
    "three layers": lambda _: {"n_layers": 3},
    "two layers, MLPs": lambda d: {"n_layers": 2, "mlp": 4 * d},
    "three layers, MLPs": lambda d: {"n_layers": 3, "mlp": 4 * d},
    "two MLPs, attention in the first": lambda d: {
        "n_layers": 2, "mlp": 4 * d, "attention": (True, False),
    },
    MLP_ALONE: lambda d: {"mlp": 4 * d, "attention": False},
}  # fmt: skip

# parameters of a plain layer may differ by this share from those that they are to equal
WITHIN = 0.03
# of plain layers that are asked for
MOST_D_MODEL, MOST_HEADS = 11, 8


def decoder_of(architecture: str, shape: str) -> AnyConfig:
    """An architecture on a shape; the plain one is the paper's layer."""
    base = SHAPES[shape]
    options = ARCHITECTURES[architecture](base.d_model)
    return DecoderConfig(**_sizes_of(base), **options) if options else base


def _sizes_of(layer: LayerConfig) -> dict[str, int]:
    return {name: asdict(layer)[name] for name in ("d_model", "n_heads", "d_head_qk", "d_head_vo")}


def parameters_of(config: AnyConfig, budget: Budget) -> int:
    """Number of weights, with or without embeddings."""
    return config.n_parameters + (config.n_embedding_parameters(TOKENS) if budget == "total" else 0)


@cache
def plain_equal(architecture: str, shape: str, budget: Budget) -> LayerConfig | None:
    """The plain layer with as many parameters, within `WITHIN`, that is most like its shape.

    Of all plain layers it has the least sum of the logarithms of three ratios to those of the
    shape: of n_heads, of n_heads d_head_qk / d_model and of n_heads d_head_vo / d_model; the shape
    itself, if it has as many. None if all have fewer parameters.
    """
    base = SHAPES[shape]
    wanted = parameters_of(decoder_of(architecture, shape), budget)
    axes = [np.arange(1, n + 1) for n in (MOST_D_MODEL, MOST_HEADS, MOST_D_MODEL, MOST_D_MODEL)]
    d, heads, qk, vo = (each.ravel() for each in np.meshgrid(*axes, indexing="ij"))
    count = 2 * d * heads * (qk + vo) + (2 * TOKENS * d if budget == "total" else 0)
    error = np.abs(count / wanted - 1)
    fits = (error <= WITHIN) & (qk <= d) & (vo <= d)
    if not fits.any():
        return None
    unlike = np.abs(np.log(heads / base.n_heads))
    for size, of_base in ((qk, base.d_head_qk), (vo, base.d_head_vo)):
        ratio = (heads * size / d) / (base.n_heads * of_base / base.d_model)
        unlike += np.abs(np.log(ratio))
    # of two that are as like, the one that is nearer in parameters
    best = np.lexsort((error[fits], unlike[fits].round(9)))[0]
    sizes = np.stack([d, heads, qk, vo], axis=1)[fits][best]
    return LayerConfig(int(sizes[0]), int(sizes[1]), int(sizes[2]), int(sizes[3]))


def size_for(parameters: int, facts_per_parameter: float) -> int:
    """The size of the grid that is nearest to a number of facts per parameter."""
    wanted = facts_per_parameter * parameters
    return min(SIZES, key=lambda size: abs(np.log(size / wanted)))


@cache
def database_of(n_facts: int, number: int) -> Database:
    """The first facts of a database without structure: its objects are drawn independently.

    Databases of one number are nested. All have all tokens, for the first facts have each subject
    once, and predicates and objects in turn.
    """
    rng = np.random.default_rng([62, number])
    subjects, objects = rng.permutation(SUBJECTS), rng.permutation(OBJECTS)
    table = rng.integers(OBJECTS, size=(SUBJECTS, PREDICATES))
    first = [(int(k), i % PREDICATES) for i, k in enumerate(subjects)]
    for i, pair in enumerate(first[:OBJECTS]):
        table[pair] = objects[i]
    taken = set(first)
    rest = [pair for pair in np.ndindex(SUBJECTS, PREDICATES) if pair not in taken]
    pairs = first + [rest[i] for i in rng.permutation(len(rest))]
    return Database.from_triples(
        [(f"s{k}", f"p{q}", f"o{table[k, q]}") for k, q in pairs[:n_facts]]
    )
