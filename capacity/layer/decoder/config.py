"""Sizes and options of a decoder: several layers, MLPs, norms, biases and positions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from capacity.checks import (
    require_bool,
    require_choice,
    require_integer,
    shown,
    with_known_options,
)
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.decoder.parts.part import Part, part_named

Activation: TypeAlias = Literal["relu", "gelu", "silu"]
Norm: TypeAlias = Literal["none", "layer", "rms"]
NormPlace: TypeAlias = Literal["before", "after"]
PositionKind: TypeAlias = Literal["none", "learned", "rotary"]

# what becomes of a part's result: it replaces the stream, or is added to that of `begin`
Role: TypeAlias = Literal["replace", "begin", "add"]

# sizes that the others determine if they are omitted
HEAD_SIZES = ("d_head_qk", "d_head_vo")
# of fields that are words
_WORDS = {"activation": Activation, "norm": Norm, "norm_place": NormPlace,
          "positions": PositionKind}  # fmt: skip
# a sentence of a fact has two tokens before the last
LEAST_POSITIONS = 2


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and options of a decoder; `LayerConfig` has those of the paper's.

    Each layer adds to the residual stream what its heads write, and then what its MLP writes.

    Parameters
    ----------
    d_model : int
        Dimension of the residual stream.
    n_heads : int
        Number of attention heads in each layer that has attention.
    d_head_qk, d_head_vo : int, optional
        Inner dimensions of the heads, at most d_model; d_model / n_heads if omitted.
    n_layers : int
        Number of layers.
    mlp : int
        Number of hidden units of each layer's MLP; 0: no MLP.
    activation : {'gelu', 'relu', 'silu'}
        Activation function of the MLP; 'gelu' is the approximation by tanh that GPT-2 has
        (Hendrycks and Gimpel 2016).
    gated : bool
        Multiply the MLP's hidden units by a linear function of its input (Shazeer 2020).
    norm : {'none', 'layer', 'rms'}
        Norm with a gain: LayerNorm (Ba et al. 2016), which also has a bias, or RMSNorm (Zhang and
        Sennrich 2019).
    norm_place : {'before', 'after'}
        'before': of the input of attention and MLP, and of the stream before the unembedding.
        'after': of the stream after attention and after the MLP.
    bias : bool
        Biases on queries, keys, values, outputs, hidden units and logits.
    positions : {'none', 'learned', 'rotary'}
        Learned embeddings that are added to the tokens', or rotations of queries and keys by
        angles that grow with the position (Su et al. 2021).
    n_positions : int
        Largest number of tokens in a sentence if positions are learned; 2 if omitted.
    scale : bool
        Divide the attention logits by sqrt(d_head_qk).
    tie_embeddings : bool
        Unembed by the transpose of the embedding.
    attention : bool or tuple of bool
        Whether all layers have attention, or each of them.
    extra : tuple of str
        Names of registered parts that each layer has after its MLP (`register_part`).

    Raises
    ------
    InvalidArgumentError
        For a size out of its range, a head larger than d_model, an odd d_head_qk with rotary
        positions, layers without any part, or an option that has no effect here, such as `gated`
        without an MLP.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> DecoderConfig(8, 2, n_layers=2, mlp=32, norm="rms").name
    'd8-h2-qk4-vo4-l2-mlp32-gelu-rms'
    """

    d_model: int
    n_heads: int = 1
    # ints in every instance
    d_head_qk: int = cast(int, None)
    d_head_vo: int = cast(int, None)
    n_layers: int = 1
    mlp: int = 0
    activation: Activation = "gelu"
    gated: bool = False
    norm: Norm = "none"
    norm_place: NormPlace = "before"
    bias: bool = False
    positions: PositionKind = "none"
    n_positions: int = 0
    scale: bool = False
    tie_embeddings: bool = False
    attention: bool | tuple[bool, ...] = True
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("gated", "bias", "scale", "tie_embeddings"):
            require_bool(name, getattr(self, name))
        for name, words in _WORDS.items():
            require_choice(f"`{name}`", getattr(self, name), get_args(words))
        for name in ("d_model", "n_heads", "n_layers"):
            self._set(name, require_integer(name, getattr(self, name), least=1))
        self._set("mlp", require_integer("mlp", self.mlp, least=0))
        self._set("extra", tuple(self.extra))
        for name in self.extra:
            part_named(name)
        for name in HEAD_SIZES:
            self._set(name, head_size(name, getattr(self, name), self.d_model, self.n_heads))
        self._require_attention()
        self._require_positions()
        if not self.mlp and (self.gated or self.activation != "gelu"):
            raise InvalidArgumentError(
                "`gated` and `activation` must be omitted without an MLP; got mlp=0. Pass the "
                "number of hidden units as `mlp`, such as mlp=4 * d_model."
            )
        if self.norm == "none" and self.norm_place != "before":
            raise InvalidArgumentError(
                "`norm_place` must be omitted without a norm; pass norm='layer' or norm='rms'."
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _require_attention(self) -> None:
        given, of_layers = self.attention, self.attention_of_layers
        is_right = isinstance(of_layers, tuple | list) and len(of_layers) == self.n_layers
        if not (is_right and all(isinstance(has, bool) for has in of_layers)):
            raise InvalidArgumentError(
                "`attention` must be a bool, or one for each of the n_layers = "
                f"{self.n_layers} layers; got {shown(given)}."
            )
        # one way to write each
        self._set("attention", of_layers[0] if len(set(of_layers)) == 1 else tuple(of_layers))
        if not (all(of_layers) or self.mlp or self.extra):
            raise InvalidArgumentError(
                "A layer must have attention or an MLP; got attention=False and mlp=0. Pass the "
                "number of hidden units as `mlp`."
            )

    def _require_positions(self) -> None:
        n = require_integer("n_positions", self.n_positions, least=0)
        if self.positions == "learned":
            self._set("n_positions", n or LEAST_POSITIONS)
        elif n:
            raise InvalidArgumentError(
                f"`n_positions` must be omitted unless positions='learned'; got {n} with "
                f"positions={self.positions!r}."
            )
        if self.positions == "rotary":
            if self.d_head_qk % 2:
                raise InvalidArgumentError(
                    "`d_head_qk` must be even with rotary positions, which turn pairs of "
                    f"dimensions; got {self.d_head_qk}."
                )
            if not self.has_attention:
                raise InvalidArgumentError(
                    "`positions` must not be 'rotary' without attention, whose queries and keys "
                    "it turns."
                )

    @property
    def attention_of_layers(self) -> tuple[bool, ...]:
        """One bool for each layer: True if it has attention."""
        given = self.attention
        return (given,) * self.n_layers if isinstance(given, bool) else given

    @property
    def has_attention(self) -> bool:
        """True if some layer has attention."""
        return any(self.attention_of_layers)

    @property
    def attention_scale(self) -> float:
        """Factor of the attention logits: 1, or 1 / sqrt(d_head_qk)."""
        return 1 / math.sqrt(self.d_head_qk) if self.scale else 1.0

    @property
    def is_plain(self) -> bool:
        """False: circuits and the tensor L are defined for `LayerConfig` alone."""
        return False

    @property
    def name(self) -> str:
        """Short name, the ``layer_id`` of tables."""
        words = [f"d{self.d_model}"]
        if self.has_attention:
            words.append(f"h{self.n_heads}-qk{self.d_head_qk}-vo{self.d_head_vo}")
        if not isinstance(self.attention, bool):
            words.append("attention" + "".join("01"[has] for has in self.attention))
        words += [f"l{self.n_layers}"] * (self.n_layers > 1)
        if self.mlp:
            words += [f"mlp{self.mlp}", self.activation, *["gated"] * self.gated]
        if self.norm != "none":
            words += [self.norm, *["after"] * (self.norm_place == "after")]
        if self.positions != "none":
            words.append(f"{self.positions}{self.n_positions or ''}")
        flags = {"bias": self.bias, "scale": self.scale, "tied": self.tie_embeddings}
        words += [name for name, is_on in flags.items() if is_on]
        return "-".join([*words, *self.extra])

    def shapes(self, d_vocab: int) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights of a decoder with `d_vocab` tokens, by name.

        Examples
        --------
        >>> list(DecoderConfig(4, mlp=8, attention=False).shapes(10))
        ['W_E', 'layers.0.mlp.W_in', 'layers.0.mlp.W_out', 'W_U']
        """
        return {
            f"{place.prefix}{name}": shape
            for place in places_of(self)
            for name, shape in place.part.shapes(self, d_vocab).items()
        }

    def parameters_by_part(self, d_vocab: int) -> dict[str, int]:
        """Number of weights of the embeddings, of the heads, of the MLPs and of the norms.

        Examples
        --------
        >>> DecoderConfig(4, mlp=8, norm="rms").parameters_by_part(10)
        {'embeddings': 80, 'heads': 64, 'mlp': 64, 'norms': 12}
        """
        counts: Counter[str] = Counter({"embeddings": 0, "heads": 0, "mlp": 0, "norms": 0})
        for place in places_of(self):
            shapes = place.part.shapes(self, d_vocab).values()
            counts[place.part.counted_as] += sum(map(math.prod, shapes))
        return dict(counts)

    @property
    def n_parameters(self) -> int:
        """Number of weights beside embeddings and unembedding, with all biases and gains."""
        counts = self.parameters_by_part(1)
        return sum(counts.values()) - counts["embeddings"]

    def n_embedding_parameters(self, d_vocab: int) -> int:
        """Number of weights of embeddings, positions and unembedding."""
        return self.parameters_by_part(d_vocab)["embeddings"]

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes and options as JSON-ready data."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


class Place(NamedTuple):
    """A part in its place: the names of its weights begin with `prefix`."""

    prefix: str
    part: Part
    role: Role


@lru_cache(maxsize=1024)
def places_of(config: DecoderConfig) -> tuple[Place, ...]:
    """Return the parts of a decoder in the order in which they act.

    Examples
    --------
    >>> [place.prefix + place.part.name for place in places_of(DecoderConfig(2, norm="rms"))][1:3]
    ['layers.0.attention.norm.norm', 'layers.0.attention.attention']
    """
    return tuple(_listed(config))


def _listed(config: DecoderConfig) -> Iterator[Place]:
    norm = part_named("norm")
    before = config.norm != "none" and config.norm_place == "before"
    after = config.norm != "none" and config.norm_place == "after"
    yield Place("", part_named("embedding"), "replace")
    for layer, has_attention in enumerate(config.attention_of_layers):
        names = ["attention"] * has_attention + ["mlp"] * bool(config.mlp) + [*config.extra]
        for name in names:
            prefix = f"layers.{layer}.{name}."
            if before:
                yield Place(f"{prefix}norm.", norm, "begin")
            yield Place(prefix, part_named(name), "add")
            if after:
                yield Place(f"{prefix}norm.", norm, "replace")
    if before:
        yield Place("norm.", norm, "replace")
    yield Place("", part_named("unembedding"), "replace")


def head_size(name: str, size: int | None, d_model: int, n_heads: int) -> int:
    """Check the size of a head, which is d_model / n_heads if it is omitted.

    Raises
    ------
    InvalidArgumentError
        If it isn't an integer from 1 to d_model, or is omitted though n_heads doesn't divide it.
    """
    if size is None:
        if d_model % n_heads:
            raise InvalidArgumentError(
                f"`{name}` may be omitted only if n_heads divides d_model, as it is then their "
                f"quotient; got d_model = {d_model} and n_heads = {n_heads}. Pass a `{name}` from "
                f"1 to {d_model}."
            )
        return d_model // n_heads
    size = require_integer(name, size)
    if size > d_model:
        raise InvalidArgumentError(
            f"`{name}` must be at most d_model = {d_model}, for a head can't use more (Wong 2025, "
            f"section 3); got {size}."
        )
    return size
