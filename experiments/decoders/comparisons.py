"""Decoders beside plain layers of as many parameters, database by database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from capacity.evaluator import half_size
from experiments.common.conclusions import with_mean
from experiments.common.harness import Tables
from experiments.decoders.cells import (
    ARCHITECTURES,
    MLP_ALONE,
    PLAIN_LAYER,
    SHAPES,
    SIZES,
    AnyConfig,
    Budget,
    decoder_of,
    plain_equal,
)
from experiments.decoders.trainings import BUDGETS, FROZEN, WITHOUT_EMBEDDINGS, asked_sizes

MLPS = ("MLP of d_model", "MLP of 2 d_model", "MLP of 4 d_model")


class Kind:
    """Sizes and shares of starts by one recipe, found by layer, freezing and database."""

    def __init__(self, kind: str, tables: Tables) -> None:
        self.kind = kind
        sizes, starts = (tables[name][tables[name]["kind"] == kind] for name in ("sizes", "starts"))
        self.sizes = {
            key: half_of(of) for key, of in sizes.groupby(["layer_id", "frozen", "database_id"])
        }
        self.shares = starts.set_index(["layer_id", "frozen", "database_id", "size"])[
            "share_of_starts"
        ].to_dict()
        layers = {key[0] for key in self.sizes}
        self.numbers = sorted({str(key[2]) for key in self.sizes})
        self.cells = [
            (name, shape)
            for name, shape in product(ARCHITECTURES, SHAPES)
            if decoder_of(name, shape).name in layers
        ]
        self.names = list(dict.fromkeys(name for name, _ in self.cells))

    def rows(
        self, names: Sequence[str], value: Callable[[str, str, str], float | None]
    ) -> pd.DataFrame:
        """A row for each shape and database on which a value is there, as clusters have it."""
        found = [
            {"layer_id": shape, "database_id": number, "value": value(name, shape, number)}
            for name, shape in self.cells
            if name in names
            for number in self.numbers
        ]
        return pd.DataFrame(found, columns=["layer_id", "database_id", "value"]).dropna()

    def log_size(self, config: AnyConfig | None, number: str, *, frozen: bool = False) -> float:
        """Logarithm of the size that a decoder reaches; NaN if it wasn't asked."""
        key = (config.name if config else "", frozen, number)
        return float(np.log(self.sizes[key][0])) if key in self.sizes else np.nan

    def share(
        self, config: AnyConfig, number: str, sizes: Sequence[int], *, frozen: bool = False
    ) -> float:
        """Mean share of starts that hold databases of some sizes; NaN if it wasn't asked."""
        keys = [(config.name, frozen, number, size) for size in sizes]
        return float(np.mean([self.shares.get(key, np.nan) for key in keys]))


def half_of(runs: pd.DataFrame) -> tuple[float, int]:
    """The size that a bisection found, within the grid, and whether it lies below or above it."""
    held = runs.groupby("size")["held_by_any"].mean()
    half = half_size(lambda size: float(held[size]), SIZES)
    if half.above is None:
        return float(SIZES[0]), -1
    return (float(SIZES[-1]), 1) if half.below is None else (half.size, 0)


def compared(of: Kind) -> dict[str, Any]:
    """Conclusions by one recipe."""
    freezing = {
        name: {"gain": _mean(of, [name], _gain_of_freezing(of, name)),
               "reach": _ratio(of, [name], _reach_of_freezing(of))}
        for name in FROZEN
        if name in of.names
    }  # fmt: skip
    return {
        "databases": len(of.numbers),
        "shapes": len({shape for _, shape in of.cells}),
        "architectures": {name: _beside_plain(of, [name]) for name in of.names},
        "MLPs": _beside_plain(of, MLPS),
        "freezing": {
            **freezing,
            "plain less layer norm": _mean(
                of,
                [PLAIN_LAYER],
                lambda _, shape, number: (
                    _gain_of_freezing(of, PLAIN_LAYER)("", shape, number)
                    - _gain_of_freezing(of, "layer norm")("", shape, number)
                ),
            ),
        },
    }


def _beside_plain(of: Kind, names: Sequence[str]) -> dict[str, Any]:
    """Size and reliability of some architectures together, beside plain layers."""

    def ratio(budget: Budget, name: str, shape: str, number: str) -> float:
        plain = of.log_size(plain_equal(name, shape, budget), number)
        return of.log_size(decoder_of(name, shape), number) - plain

    def reliability(name: str, shape: str, number: str) -> float:
        return of.share(decoder_of(name, shape), number, asked_sizes(name, shape))

    def plain_reliability(name: str, shape: str, number: str) -> float:
        plain = plain_equal(name, shape, "total")
        return of.share(plain, number, asked_sizes(name, shape)) if plain else np.nan

    beyond = [
        of.sizes[decoder_of(name, shape).name, False, number][1]
        for name, shape in of.cells
        if name in names
        for number in of.numbers
    ]
    found: dict[str, Any] = {
        "size": _ratio(of, names, lambda name, shape, n: of.log_size(decoder_of(name, shape), n)),
        "below_the_grid": sum(each < 0 for each in beyond),
        "above_the_grid": sum(each > 0 for each in beyond),
        "bisections": len(beyond),
    }
    if list(names) == [MLP_ALONE]:
        return found
    return {
        **found,
        **{
            budget: _ratio(of, names, partial(ratio, budget))
            for budget in BUDGETS
            if budget == "total" or (of.kind == "best" and {*names} <= {*WITHOUT_EMBEDDINGS})
        },
        "reliability": _mean(of, names, reliability),
        "reliability_of_plain": _mean(of, names, plain_reliability),
        "gain": _mean(of, names, lambda *cell: reliability(*cell) - plain_reliability(*cell)),
    }


def _gain_of_freezing(of: Kind, name: str) -> Callable[[str, str, str], float]:
    def gain(_: str, shape: str, number: str) -> float:
        config, sizes = decoder_of(name, shape), asked_sizes(name, shape)
        frozen = of.share(config, number, sizes, frozen=True)
        return frozen - of.share(config, number, sizes)

    return gain


def _reach_of_freezing(of: Kind) -> Callable[[str, str, str], float]:
    def ratio(name: str, shape: str, number: str) -> float:
        config = decoder_of(name, shape)
        return of.log_size(config, number, frozen=True) - of.log_size(config, number)

    return ratio


def _mean(
    of: Kind, names: Sequence[str], value: Callable[[str, str, str], float]
) -> dict[str, Any]:
    table = of.rows(names, value)
    return with_mean(table["value"], table)


def _ratio(
    of: Kind, names: Sequence[str], logarithm: Callable[[str, str, str], float]
) -> dict[str, Any]:
    table = of.rows(names, logarithm)
    return geometric(table["value"], table)


def geometric(logarithms: pd.Series[float], runs: pd.DataFrame) -> dict[str, Any]:
    """A geometric mean over runs, with its interval."""
    found = with_mean(logarithms, runs)
    if found["mean"] is None:
        return found
    return {**found, "mean": np.exp(found["mean"]), "interval": np.exp(found["interval"]).tolist()}
