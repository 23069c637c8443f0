"""`PackedLayers`: the weights of many layers in one tensor, which moves in one copy.

On a GPU every copy takes the host about ten microseconds, however little it moves. A sweep of
thousands of small layers, each with six weights, would spend more time on copies than the GPU on
training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capacity.checks import Seed
from capacity.database.facts import Database
from capacity.layer.model.config import AnyConfig, LayerConfig
from capacity.layer.model.decoder import AnyLayer
from capacity.layer.model.initial import initial_weights
from capacity.layer.run.recipe import Recipe, Training


class PackedLayers:
    """Weights of many layers, one layer after the other in one tensor.

    Parameters
    ----------
    configs : sequence of LayerConfig
        Sizes and options of each layer.
    d_vocabs : sequence of int
        Number of tokens of each layer.
    values : tensor, shape (n_weights,)
        Weights of the first layer, in the order of ``config.shapes(d_vocab)`` and each in row-major
        order, then those of the second, and so on.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_layers + 1,)
        Where the weights of each layer begin, and where the last one's end.

    Examples
    --------
    >>> packed = PackedLayers.drawn([LayerConfig(2, 1, 1, 2), LayerConfig(3, 1, 1, 1)], [5, 4])
    >>> packed.starts.tolist(), packed.values.shape
    ([0, 32, 68], torch.Size([68]))
    >>> packed.weights(1)["W_O"].shape
    torch.Size([1, 1, 3])
    """

    def __init__(
        self, configs: Sequence[AnyConfig], d_vocabs: Sequence[int], values: Tensor
    ) -> None:
        self.configs, self.d_vocabs, self.values = tuple(configs), tuple(d_vocabs), values
        sizes = map(_n_weights, self.configs, self.d_vocabs)
        self.starts: NDArray[np.int64] = np.cumsum([0, *sizes])

    def __len__(self) -> int:
        return len(self.configs)

    @classmethod
    def of(cls, layers: Sequence[AnyLayer]) -> PackedLayers:
        """Copy the weights of layers of one device and dtype, by one tensor operation."""
        weights = [w.detach().reshape(-1) for layer in layers for w in weights_of(layer)]
        return cls([x.config for x in layers], [x.d_vocab for x in layers], torch.cat(weights))

    @classmethod
    def drawn(
        cls,
        configs: Sequence[AnyConfig],
        d_vocabs: Sequence[int],
        seeds: Sequence[Seed] | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> PackedLayers:
        """Draw initial weights, those of `AttentionLayer` bit by bit, and copy them once.

        Parameters
        ----------
        configs, d_vocabs
            As for the class.
        seeds : sequence of int or numpy.random.Generator, optional
            Seed of each layer; 0 for all if omitted.
        dtype, device
            Of the tensor.

        Raises
        ------
        InvalidTypeError, InvalidArgumentError, MemoryBudgetError
            As `AttentionLayer` does.
        """
        seeds = [0] * len(configs) if seeds is None else seeds
        drawn = [
            array.ravel()
            for config, d_vocab, seed in zip(configs, d_vocabs, seeds, strict=True)
            for array in initial_weights(config, d_vocab, seed).values()
        ]
        # rounded on the host, as `AttentionLayer` rounds them
        values = torch.from_numpy(np.concatenate(drawn)).to(dtype)
        return cls(configs, d_vocabs, values.to(device))

    def weights(self, i: int) -> dict[str, Tensor]:
        """Return the weights of a layer by name: views, shaped as ``config.shapes(d_vocab)``."""
        shapes = self.configs[i].shapes(self.d_vocabs[i])
        parts = self.values[self.starts[i] : self.starts[i + 1]].split(
            [math.prod(shape) for shape in shapes.values()]
        )
        return {
            name: part.view(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def arrays(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the weights of each layer as arrays, after one copy to the host."""
        values = self.values.cpu().numpy()
        for config, d_vocab, start in zip(
            self.configs, self.d_vocabs, self.starts[:-1].tolist(), strict=True
        ):
            weights: dict[str, NDArray[Any]] = {}
            for name, shape in config.shapes(d_vocab).items():
                end = start + math.prod(shape)
                weights[name] = values[start:end].reshape(shape)
                start = end
            yield weights

    def write_back(self, layers: Sequence[AnyLayer]) -> None:
        """Copy the weights into layers of the same sizes, on the same device."""
        into = [weight.detach() for layer in layers for weight in weights_of(layer)]
        parts = self.values.split([weight.numel() for weight in into])
        # one call for all of them, which a GPU does in a few launches
        shaped = [part.view(weight.shape) for part, weight in zip(parts, into, strict=True)]
        torch._foreach_copy_(into, shaped)  # pyright: ignore[reportPrivateImportUsage]


def train_together(
    run_many: Callable[
        [PackedLayers, Sequence[Database], Recipe, Sequence[np.random.Generator]], list[Training]
    ],
    tasks: Sequence[tuple[AnyLayer, Database]],
    recipe: Recipe,
    rngs: Sequence[np.random.Generator],
) -> list[Training]:
    """Train layers of one device and dtype in place by an engine that takes packed ones."""
    layers, databases = zip(*tasks, strict=True)
    packed = PackedLayers.of(layers)
    trainings = run_many(packed, databases, recipe, rngs)
    packed.write_back(layers)
    return trainings


def _n_weights(config: AnyConfig, d_vocab: int) -> int:
    if config.is_plain:
        return config.n_parameters + config.n_embedding_parameters(d_vocab)
    return sum(map(math.prod, config.shapes(d_vocab).values()))


def weights_of(layer: AnyLayer) -> tuple[nn.Parameter, ...]:
    """Weights of a layer, in the order of ``config.shapes(d_vocab)`` whatever its own is."""
    config = layer.config
    if not isinstance(config, LayerConfig):
        return tuple(map(layer.get_parameter, config.shapes(layer.d_vocab)))
    return _getter(config.layer_norm, config.bias, config.n_positions > 0)(layer)


@cache
def _getter(
    layer_norm: bool, bias: bool, positions: bool
) -> Callable[[Any], tuple[nn.Parameter, ...]]:
    options = LayerConfig(1, 1, 1, 1, layer_norm=layer_norm, bias=bias, n_positions=int(positions))
    return attrgetter(*options.shapes(1))
