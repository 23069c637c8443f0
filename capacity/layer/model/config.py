"""Sizes of an attention layer, and the bounds that they put on the rank of its tensor L.

`query_key_config` has those of a layer that facts are written into by hand. Two numbers are called
a rank bound, and only the first is one:

* Proposition 3.5 proves rank(L) <= d_model + n_heads d_head_vo |Q|, and `layer_rank_upper` is
  sharper.
* Equation (9), d_model + n_heads d_head_vo <= rank(L), is the paper's *assumption* about trained
  layers ("we feel it is reasonable to assume"). The paper's figures and this project's tables call
  it the *layer rank bound*. It can exceed the proven upper bound: with d_model = 2, 4 heads,
  d_head_vo = 2 and 2 predicates it is 10, where rank(L) <= 4.

References
----------
Wong 2025, section 3, Proposition 3.5, equation (9), and the parameter count of section 4.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from capacity.checks import require_bool, require_integer, shown, with_known_options
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.decoder.config import HEAD_SIZES, DecoderConfig, head_size

if TYPE_CHECKING:
    from capacity.database.facts import Database


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class LayerConfig:
    """Sizes of a single-layer attention-only decoder, with d_head_vo decoupled from d_head_qk.

    Parameters
    ----------
    d_model : int
        Dimension of the embeddings.
    n_heads : int
        Number of attention heads.
    d_head_qk : int, optional
        Inner dimension of the query-key matrices, at most d_model; d_model / n_heads if omitted.
    d_head_vo : int, optional
        Inner dimension of the value-output matrices, at most d_model; d_model / n_heads if omitted.
    scale : bool
        Divide the attention logits by sqrt(d_head_qk). Off in the paper, as are all options below.
    layer_norm : bool
        Normalise the embeddings before attention, and the result before unembedding.
    bias : bool
        Biases on queries, keys, values and outputs, and on the logits.
    n_positions : int
        Learned position embeddings for sentences of at most this length; 0: none.

    Raises
    ------
    InvalidArgumentError
        For a size that isn't an integer between 1 and 2^20, a head larger than d_model, one whose
        size is omitted though n_heads doesn't divide d_model, or an option that isn't a bool.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> LayerConfig(4, 2, 2, 3).name
    'd4-h2-qk2-vo3'
    >>> LayerConfig(8, 2).name
    'd8-h2-qk4-vo4'
    """

    d_model: int
    n_heads: int
    # an int in every instance
    d_head_qk: int = cast(int, None)
    d_head_vo: int = cast(int, None)
    scale: bool = False
    layer_norm: bool = False
    bias: bool = False
    n_positions: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, bool):
                require_bool(field.name, value)
            elif field.name in HEAD_SIZES:
                object.__setattr__(
                    self, field.name, head_size(field.name, value, self.d_model, self.n_heads)
                )
            else:
                least = 0 if field.name == "n_positions" else 1
                value = require_integer(field.name, value, least=least)
                object.__setattr__(self, field.name, value)

    @property
    def name(self) -> str:
        """Short name, the ``layer_id`` of tables."""
        options = "".join(
            f"-{key}{'' if value is True else value}"
            for key, value in asdict(self).items()
            if key in ("scale", "layer_norm", "bias", "n_positions") and value
        )
        return f"d{self.d_model}-h{self.n_heads}-qk{self.d_head_qk}-vo{self.d_head_vo}{options}"

    @property
    def is_plain(self) -> bool:
        """True without norm, biases and positions: logits are then sums over the circuits."""
        return not (self.layer_norm or self.bias or self.n_positions)

    @property
    def attention_scale(self) -> float:
        """Factor of the attention logits: 1, or 1 / sqrt(d_head_qk)."""
        return 1 / math.sqrt(self.d_head_qk) if self.scale else 1.0

    @property
    def n_parameters(self) -> int:
        """Non-embedding parameters as the paper counts: 2 n_heads d_model (d_head_vo + d_head_qk).

        Weights of the heads alone, without the biases and gains of the options.
        """
        return 2 * self.n_heads * self.d_model * (self.d_head_vo + self.d_head_qk)

    def n_embedding_parameters(self, d_vocab: int) -> int:
        """Number of weights in W_E and W_U together, 2 d_model d_vocab."""
        return 2 * self.d_model * d_vocab

    def shapes(self, d_vocab: int) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights of a layer with `d_vocab` tokens, by name.

        Examples
        --------
        >>> LayerConfig(4, 2, 2, 3).shapes(10)["W_O"]
        (2, 3, 4)
        """
        d, heads, qk, vo = self.d_model, self.n_heads, self.d_head_qk, self.d_head_vo
        shapes: dict[str, tuple[int, ...]] = {
            "W_E": (d_vocab, d),
            "W_U": (d, d_vocab),
            "W_Q": (heads, d, qk),
            "W_K": (heads, qk, d),
            "W_V": (heads, d, vo),
            "W_O": (heads, vo, d),
        }
        if self.n_positions:
            shapes["W_pos"] = (self.n_positions, d)
        if self.bias:
            shapes |= {"b_Q": (heads, 1, qk), "b_K": (heads, 1, qk), "b_V": (heads, 1, vo)}
            shapes |= {"b_O": (d,), "b_U": (d_vocab,)}
        if self.layer_norm:
            norms = ("norm_in", "norm_out")
            shapes |= {f"{norm}.{part}": (d,) for norm in norms for part in ("weight", "bias")}
        return shapes

    def as_decoder(self) -> DecoderConfig:
        """Convert into the configuration of the decoder that computes the same.

        Examples
        --------
        >>> LayerConfig(4, 2, layer_norm=True).as_decoder().name
        'd4-h2-qk2-vo2-layer'
        """
        return DecoderConfig(
            self.d_model,
            self.n_heads,
            self.d_head_qk,
            self.d_head_vo,
            norm="layer" if self.layer_norm else "none",
            bias=self.bias,
            positions="learned" if self.n_positions else "none",
            n_positions=self.n_positions,
            scale=self.scale,
        )

    def names_in_decoder(self) -> dict[str, str]:
        """Names of the weights in the decoder that computes the same, by their names here.

        Examples
        --------
        >>> LayerConfig(2, 1).names_in_decoder()["W_Q"]
        'layers.0.attention.W_Q'
        """
        heads = "layers.0.attention."
        moved = {"norm_in.": f"{heads}norm.", "norm_out.": "norm."}
        names: dict[str, str] = {}
        for name in self.shapes(1):
            module = name[: name.rfind(".") + 1]
            is_outside = name in ("W_E", "W_U", "W_pos", "b_U")
            prefix = moved.get(module, "" if is_outside else heads)
            names[name] = prefix + name[len(module) :]
        return names

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes and options as JSON-ready data."""
        return asdict(self)


# sizes and options of what is trained
AnyConfig: TypeAlias = LayerConfig | DecoderConfig


def layer_rank_assumed(config: LayerConfig) -> int:
    """Return the rank that the paper assumes for a trained layer, d_model + n_heads d_head_vo.

    Equation (9) of Wong 2025: an assumption about trained layers, not a theorem. Compare
    `layer_rank_upper`, a proven upper bound that can be smaller.

    Parameters
    ----------
    config : LayerConfig
        Sizes of the layer.

    Returns
    -------
    int
        The *layer rank bound* of the paper's figures.

    Examples
    --------
    >>> layer_rank_assumed(LayerConfig(2, 4, 1, 2))
    10
    """
    return config.d_model + config.n_heads * config.d_head_vo


def layer_rank_upper_paper(config: LayerConfig, n_predicates: int) -> int:
    """Bound rank(L) by d_model + n_heads d_head_vo |Q| (Wong 2025, Proposition 3.5).

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer.
    n_predicates : int
        Number of predicates, |Q|.

    Returns
    -------
    int
        The paper's bound; `layer_rank_upper` is never larger.

    Examples
    --------
    >>> layer_rank_upper_paper(LayerConfig(2, 4, 1, 2), 2)
    18
    """
    return config.d_model + config.n_heads * config.d_head_vo * n_predicates


def layer_rank_upper(config: LayerConfig, shape: tuple[int, ...]) -> int:
    """Compute an upper bound of rank(L), which is never above Proposition 3.5.

    With d = d_model, and K, Q, V for the numbers of subjects, predicates and objects, the least of

    * min(d, Q, V) + Q min(n_heads d_head_vo, d, K, V): the first term for E, a (Q x V) matrix that
      is the same for all k; the second for the heads, which together add one matrix for each
      predicate, (K x d) (d x V), of rank at most n_heads d_head_vo as a sum over heads;
    * Q min(K, V, d): the sum of the ranks of the predicate slices of L; every fiber L[k, q, :] lies
      in the row space of W_U, so a slice has rank at most d;
    * K min(Q, V, d): the same for the subject slices;
    * min(d, V) min(K, Q): written in a basis of that row space, L is a K x Q x min(d, V) tensor,
      and each of its min(d, V) slices has rank at most min(K, Q).

    The heads' matrix for predicate q is sum_h A^h_q V^h: A^h_q has the columns of the subjects and
    one of q, so its row for k is a^h_kq (W^h_VO)_k + (1 - a^h_kq) (W^h_VO)_q, in the row space of
    W^h_VO, of dimension at most d_head_vo.

    For facts of any arity fix all columns of the key but one: the fibers that are left are the rows
    of a matrix, for which the same holds, since each row of the heads' matrix is a sum over tokens
    t of A^h[..., t] (W^h_VO)_t. So L has the sum of these matrices' ranks as a bound, for each
    column that isn't fixed. E depends on the last column of the key alone, and is counted once if
    that column is fixed. The last bound is min(d, V) times the largest rank of a tensor of the
    key's shape, at most the product of all its sides but the largest. For a key of two columns
    these are the four bounds above.

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer (no norm, bias or positions).
    shape : tuple of int
        Numbers of subjects, predicates and objects, or of the tokens in each column of facts of
        another arity: `Database.shape`.

    Returns
    -------
    int
        The bound, for any weights.

    Raises
    ------
    InvalidArgumentError
        For a layer that isn't plain, or a shape of fewer than two numbers.

    Examples
    --------
    Equation (9) is 10 for these sizes:

    >>> layer_rank_upper(LayerConfig(2, 4, 1, 2), (9, 2, 9))
    4
    """
    if not config.is_plain:
        raise InvalidArgumentError(
            "L and its rank are defined for layers without norm, bias and positions; got "
            f"{config.name}."
        )
    if len(shape) < 2:
        raise InvalidArgumentError(
            "layer_rank_upper(config, shape) needs facts of two or more columns, a key and an "
            f"object; those of the shape {shown(shape)} have {len(shape)}."
        )
    d, (*key, v) = config.d_model, shape
    heads, n_keys = min(config.n_heads * config.d_head_vo, d), math.prod(key)
    *others, last = key
    return min(
        *(min(d, last, v) + n_keys // x * min(heads, x, v) for x in others),
        *(n_keys // x * min(x, v, d) for x in key),
        min(d, v) * (n_keys // max(key)),
    )


def query_key_config(db: Database) -> LayerConfig:
    """Sizes of the layer that `capacity.layer.store_in_query_key` makes.

    Parameters
    ----------
    db : Database
        A functional database of arity 3.

    Returns
    -------
    LayerConfig
        One head with ``d_model = |Q| + 1``, or, if some token is subject and predicate, two with
        ``d_model = 2 |Q| + 2``.

    Examples
    --------
    >>> from capacity import Database
    >>> query_key_config(Database.from_triples([("a", "p", "x"), ("b", "q", "y")])).name
    'd3-h1-qk2-vo1'
    """
    n = len(db.predicate_ids)
    if not np.intersect1d(db.subject_ids, db.predicate_ids).size:
        return LayerConfig(d_model=n + 1, n_heads=1, d_head_qk=n, d_head_vo=1)
    return LayerConfig(d_model=2 * n + 2, n_heads=2, d_head_qk=n, d_head_vo=1)
