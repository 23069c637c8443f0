"""`Decoder`: a small decoder of any number of layers, as a plain ``nn.Module``."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from capacity.checks import Seed, shown
from capacity.errors import InvalidTypeError
from capacity.layer.decoder.config import DecoderConfig, Place
from capacity.layer.decoder.parts.attention import heads_of
from capacity.layer.decoder.parts.norm import EPSILON
from capacity.layer.decoder.structure import followed, logits_of, weights_at
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.config import LayerConfig
from capacity.layer.model.devices import moved_to, require_device
from capacity.layer.model.initial import initial_weights
from capacity.layer.model.storage import WeightedModule, read_layer
from capacity.transformer.activations.records.cache import (
    ActivationCache,
    Normed,
    Step,
    Written,
    written_by_heads,
)
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.tokens import (
    checked_tokens,
    require_affordable_attention,
)
from capacity.transformer.activations.records.validation import check_written


class Decoder(WeightedModule[DecoderConfig]):
    """A decoder with the MLPs, norms, biases, positions and layers of its options.

    `train`, `train_many`, `evaluate`, `fact_table` and sweeps take it as they take an
    `AttentionLayer`. Circuits and the tensor L of the paper aren't defined for it; its tensor of
    logits is (`logit_tensor`).

    Parameters
    ----------
    config : DecoderConfig
        Sizes and options.
    d_vocab : int
        Number of tokens.
    seed : int or numpy.random.Generator
        Seed of the initial weights: embeddings are N(0, 1), matrices U(-1/sqrt(fan_in),
        1/sqrt(fan_in)), gains 1, and biases and positions 0; drawn in float64.
    dtype : torch.dtype
        Type of the weights.
    device : torch.device or str
        Device of the weights.

    Raises
    ------
    InvalidTypeError
        For a `config` or `d_vocab` of another type.
    InvalidArgumentError
        For a number of tokens or a seed out of its range, or a device that isn't available.
    MemoryBudgetError
        If the weights would take more than 8 GiB in float64; nothing has been allocated then.

    Examples
    --------
    >>> decoder = Decoder(DecoderConfig(8, 2, n_layers=2, mlp=32, norm="rms"), d_vocab=10, seed=0)
    >>> decoder(torch.tensor([[0, 1, 2]])).shape
    torch.Size([1, 3, 10])
    """

    def __init__(
        self,
        config: DecoderConfig,
        d_vocab: int,
        *,
        seed: Seed = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        self._require_config(config)
        require_device(device)
        drawn = initial_weights(config, d_vocab, seed)
        options = {"dtype": dtype, "device": device}
        self._hold(
            config, {name: torch.as_tensor(array, **options) for name, array in drawn.items()}
        )

    @classmethod
    def _require_config(cls, config: object) -> None:
        if not isinstance(config, DecoderConfig):
            raise InvalidTypeError(
                f"`config` must be a DecoderConfig; got {shown(config)}. A LayerConfig converts "
                "into one by its method as_decoder."
            )

    def extra_repr(self) -> str:
        """Name, dtype and device, for `repr`."""
        return f"{self.config.name}, d_vocab={self.d_vocab}, {self.W_E.dtype}, {self.W_E.device}"

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d_vocab"]:
        """Logits of the next token after each position of some sentences.

        Parameters
        ----------
        tokens : int64 tensor, shape (batch, n)
            Sentences.

        Raises
        ------
        InvalidArgumentError
            For a sentence of more than n_positions tokens, if positions are learned.
        """
        return logits_of(self.config, dict(self.named_parameters()), tokens)

    def capture(
        self, tokens: Int[Tensor, "batch n"], mask: Tensor | None = None
    ) -> ActivationCache:
        """Run sentences and keep the activations, as `capacity.transformer.capture` does.

        Parameters
        ----------
        tokens : int64 tensor, shape (batch, n)
            Sentences.
        mask : tensor, shape (batch, n), optional
            1 for tokens and 0 for padding, which must follow the tokens of a sentence. All tokens
            if omitted.

        Returns
        -------
        ActivationCache
            Attention, queries, keys and values of the heads, and the residual stream.

        Raises
        ------
        InvalidArgumentError
            For tokens that the decoder can't read, padding before a token, or weights that aren't
            finite.
        MemoryBudgetError
            If attention would take more than 2 GiB.
        """
        return _captured(self, tokens, mask)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: torch.device | str = "cpu") -> Decoder:
        """Read what `save` wrote.

        Parameters
        ----------
        folder : path
            The folder of a saved decoder, or of a saved `AttentionLayer`, which is converted.
        device : torch.device or str
            Device to put the weights on.

        Returns
        -------
        Decoder
            The decoder as it was saved.

        Raises
        ------
        StorageError
            If there is no such file, or it isn't a regular one.
        InvalidArgumentError
            If it isn't whole, or its weights don't fit its configuration; for a device that isn't
            available.
        """
        config, weights = read_layer(folder)
        moved = moved_to(device, weights)
        if isinstance(config, LayerConfig):
            names = config.names_in_decoder()
            moved = {names[name]: tensor for name, tensor in moved.items()}
            config = config.as_decoder()
        return cls.of_weights(config, moved)


# what is trained and evaluated
AnyLayer: TypeAlias = AttentionLayer | Decoder


@torch.no_grad()
def _captured(decoder: Decoder, tokens: Tensor, mask: Tensor | None) -> ActivationCache:
    """Run sentences through a decoder and keep its activations; see `Decoder.capture`."""
    config = decoder.config
    real = checked_tokens(
        tokens,
        mask,
        d_vocab=decoder.d_vocab,
        n_positions=config.n_positions or None,
        padding_after=True,
    )
    require_affordable_attention(tokens, config.n_layers, config.n_heads)
    weights = {name: p.detach().clone() for name, p in decoder.named_parameters()}
    layers: list[LayerActivations] = []
    steps: list[Step] = []
    streams: list[Tensor] = []

    def act(place: Place, x: Any) -> Any:
        w, name = weights_at(place, weights), place.part.name
        if name == "unembedding":
            return x
        y = place.part.forward(config, w, x)
        if name == "embedding":
            streams.append(y)
        elif name == "norm":
            if place.role == "replace":
                steps.append(_normed(_layer_of(place, config.n_layers), w, x))
        elif name == "attention":
            q, k, v, pattern, z = heads_of(config, w, x)
            b_V, b_O = (w["b_V"][:, 0], w["b_O"]) if config.bias else (None, None)
            heads = LayerActivations(pattern, q, k, v, z, w["W_O"], b_V, b_O,
                                     config.attention_scale).without_padding(real)  # fmt: skip
            layers.append(heads)
            steps.append(written_by_heads(_layer_of(place, config.n_layers), heads))
        else:
            kind = "feed_forward" if name == "mlp" else "mixers"
            steps.append(Written(_layer_of(place, config.n_layers), kind, y, w.get("b_out"), x))
        return y

    followed(config, tokens, act, torch.add)
    cache = ActivationCache(tuple(layers), real, True, streams[0], tuple(steps), "Decoder")
    return check_written(cache)


def _layer_of(place: Place, n_layers: int) -> int:
    """Index of a part's layer; that of the last for what follows all of them."""
    steps = place.prefix.split(".")
    return int(steps[1]) if steps[0] == "layers" else n_layers - 1


def _normed(layer: int, weights: dict[str, Tensor], x: Tensor) -> Normed:
    """Step of a norm on the residual stream."""
    bias = weights.get("bias")
    mean = None if bias is None else x.mean(dim=-1, keepdim=True)
    centred = x if mean is None else x - mean
    scale = (centred.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()
    return Normed(layer, mean, scale, weights["weight"], bias)
