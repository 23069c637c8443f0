"""`AttentionLayer`: a single-layer attention-only decoder as a plain ``nn.Module``.

For a sentence of tokens x_1 ... x_n with embeddings r_i = (W_E)_{x_i} (Wong 2025, section 3),

    Z(x) = (r + sum_h softmax*(r W_Q^h W_K^h r^T) r W_V^h W_O^h) W_U,      (2)

where softmax* is the row-wise softmax over the positions up to the row's own. Rows act from the
left, embedding and unembedding are untied, and there is no norm, bias, position or 1/sqrt(d) unless
the configuration asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from capacity.checks import Seed
from capacity.converters import Converter
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig
from capacity.layer.model.devices import moved_to, require_device
from capacity.layer.model.edits import ACTIVATIONS, Edits, edited, require_edits
from capacity.layer.model.initial import initial_weights
from capacity.layer.model.storage import WeightedModule, read_layer
from capacity.tensor.given_tensors import register_tensor_converter
from capacity.transformer.activations.records.cache import (
    ActivationCache,
    Step,
    normed,
    written_by_heads,
)
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.tokens import (
    checked_tokens,
    require_affordable_attention,
)
from capacity.transformer.activations.records.validation import check_written


class AttentionLayer(WeightedModule[LayerConfig]):
    """A single-layer attention-only decoder.

    Parameters
    ----------
    config : LayerConfig
        Sizes and options.
    d_vocab : int
        Number of tokens, |T|.
    seed : int or numpy.random.Generator
        Seed of the initial weights: W_E ~ N(0, 1), every other matrix ~ U(-1/sqrt(fan_in),
        1/sqrt(fan_in)), drawn in float64 by `initial_weights`.
    dtype : torch.dtype
        Type of the weights.
    device : torch.device or str
        Device of the weights.

    Raises
    ------
    InvalidTypeError
        For a `config` or `d_vocab` of another type.
    InvalidArgumentError
        For a number of tokens or a seed out of its range, or a device that isn't there.
    MemoryBudgetError
        If the weights would take more than 8 GiB in float64; nothing has been allocated then.

    Attributes
    ----------
    W_E, W_U : tensors, shapes (d_vocab, d_model) and (d_model, d_vocab)
        Embedding and unembedding.
    W_Q, W_K : tensors, shapes (n_heads, d_model, d_head_qk) and (n_heads, d_head_qk, d_model)
        Queries and keys; W_K is transposed, so that scores are x W_Q W_K x^T.
    W_V, W_O : tensors, shapes (n_heads, d_model, d_head_vo) and (n_heads, d_head_vo, d_model)
        Values and outputs.

    Examples
    --------
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 3), d_vocab=10, seed=0)
    >>> layer(torch.tensor([[0, 1, 2]])).shape
    torch.Size([1, 3, 10])
    """

    W_U: Float[Tensor, "d_model d_vocab"]
    W_Q: Float[Tensor, "heads d_model d_head_qk"]
    W_K: Float[Tensor, "heads d_head_qk d_model"]
    W_V: Float[Tensor, "heads d_model d_head_vo"]
    W_O: Float[Tensor, "heads d_head_vo d_model"]
    # only if the configuration asks for them
    W_pos: Float[Tensor, "n_positions d_model"]
    b_Q: Float[Tensor, "heads 1 d_head_qk"]
    b_K: Float[Tensor, "heads 1 d_head_qk"]
    b_V: Float[Tensor, "heads 1 d_head_vo"]
    b_O: Float[Tensor, "d_model"]
    b_U: Float[Tensor, "d_vocab"]

    def __init__(
        self,
        config: LayerConfig,
        d_vocab: int,
        *,
        seed: Seed = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        require_device(device)
        drawn = initial_weights(config, d_vocab, seed)
        options = {"dtype": dtype, "device": device}
        self._hold(
            config, {name: torch.as_tensor(array, **options) for name, array in drawn.items()}
        )

    def _hold(self, config: LayerConfig, weights: Mapping[str, Tensor]) -> None:
        if config.layer_norm:
            self.norm_in = nn.LayerNorm(config.d_model)
            self.norm_out = nn.LayerNorm(config.d_model)
        super()._hold(config, weights)

    def extra_repr(self) -> str:
        """Sizes, dtype and device, for `repr`."""
        sizes = ", ".join(
            f"{name}={value}" for name, value in self.config.to_dict().items() if value
        )
        return f"{sizes}, d_vocab={self.d_vocab}, {self.W_E.dtype}, {self.W_E.device}"

    def forward(
        self, tokens: Int[Tensor, "batch n"], *, edits: Edits | None = None
    ) -> Float[Tensor, "batch n d_vocab"]:
        """Logits of the next token after each position of some sentences, Z of equation (2).

        Parameters
        ----------
        tokens : int64 tensor, shape (batch, n)
            Sentences.
        edits : mapping of str to callable, optional
            Functions that replace activations as they arise, by their names: ``embedding``, ``q``,
            ``k``, ``v``, ``pattern``, ``z`` (the heads' outputs ``pattern @ v``), ``residual``
            (after the heads) and ``logits``. `ablate` makes a layer without some heads.

        Raises
        ------
        InvalidArgumentError
            For a sentence of more than n_positions tokens, if the layer has positions; for an edit
            of another name, or that returns a tensor of another shape, dtype or device.
        InvalidTypeError
            For edits that aren't functions, or return no tensor.

        Examples
        --------
        Without attention to the first token, what it is doesn't matter:

        >>> layer = AttentionLayer(LayerConfig(4, 2), d_vocab=10, seed=0)
        >>> def to_itself(pattern):
        ...     return torch.eye(2).expand_as(pattern)
        >>> logits = layer(torch.tensor([[0, 1], [2, 1]]), edits={"pattern": to_itself})
        >>> torch.equal(logits[0, -1], logits[1, -1])
        True
        """
        if edits is not None:
            require_edits(edits)
        if edits:
            residual, *_, z = self._heads(tokens, edits)
        else:
            residual = self.embed(tokens)
            x = self.norm_in(residual) if self.config.layer_norm else residual
            z = self.attention(x) @ self.values(x)
        residual = residual + (z @ self.W_O).sum(dim=1)
        if self.config.bias:
            residual = residual + self.b_O
        residual = edited(edits, "residual", residual)
        if self.config.layer_norm:
            residual = self.norm_out(residual)
        logits = residual @ self.W_U
        return edited(edits, "logits", logits + self.b_U if self.config.bias else logits)

    def _heads(self, tokens: Tensor, edits: Edits | None) -> tuple[Tensor, ...]:
        """Embeddings, q, k, v, pattern and z, each after its edit."""
        start = edited(edits, "embedding", self.embed(tokens))
        x = self.norm_in(start) if self.config.layer_norm else start
        q, k = self.queries_and_keys(x)
        q, k, v = edited(edits, "q", q), edited(edits, "k", k), edited(edits, "v", self.values(x))
        # a subclass may have another attention
        pattern = edited(edits, "pattern", self._pattern(q, k) if edits else self.attention(x))
        return start, q, k, v, pattern, edited(edits, "z", pattern @ v)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings of tokens, plus those of positions if the layer has any."""
        residual = self.W_E[tokens]
        n = tokens.shape[-1]
        if self.config.n_positions:
            if n > self.config.n_positions:
                raise InvalidArgumentError(
                    f"A sentence must have at most n_positions = {self.config.n_positions} "
                    f"tokens; got {n}."
                )
            residual = residual + self.W_pos[:n]
        return residual

    def attention(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch heads n n"]:
        """Attention of each head (3), causal: rows sum to 1, with zeros above the diagonal.

        `x` holds embeddings, normalised if the layer normalises.
        """
        return self._pattern(*self.queries_and_keys(x))

    def _pattern(self, q: Tensor, k: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) * self.config.attention_scale
        n = q.shape[-2]
        later = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(dim=-1)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys of each head at embeddings, each of shape (batch, heads, n, d)."""
        q = x[:, None] @ self.W_Q
        k = x[:, None] @ self.W_K.transpose(1, 2)
        return (q + self.b_Q, k + self.b_K) if self.config.bias else (q, k)

    def values(self, x: Tensor) -> Tensor:
        """Values of each head at embeddings, shape (batch, heads, n, d_head_vo)."""
        values = x[:, None] @ self.W_V
        return values + self.b_V if self.config.bias else values

    def capture(
        self,
        tokens: Int[Tensor, "batch n"],
        mask: Tensor | None = None,
        *,
        edits: Edits | None = None,
    ) -> ActivationCache:
        """Run sentences and keep the activations, as `capacity.transformer.capture` does.

        Parameters
        ----------
        tokens : int64 tensor, shape (batch, n)
            Sentences.
        mask : tensor, shape (batch, n), optional
            1 for tokens and 0 for padding, which must follow the tokens of a sentence: there it
            changes nothing. All tokens if omitted.
        edits : mapping of str to callable, optional
            Functions that replace activations as they arise, as for `forward`; the residual stream
            and the logits can't be edited here, for they follow from what is captured.

        Returns
        -------
        ActivationCache
            Attention, queries, keys and values of the heads, and the residual stream.

        Raises
        ------
        InvalidArgumentError
            For tokens that the layer can't read, padding before a token, or weights that aren't
            finite.
        MemoryBudgetError
            If attention would take more than 2 GiB.
        """
        if edits is not None:
            require_edits(edits, ACTIVATIONS[: ACTIVATIONS.index("z") + 1])
        return captured_activations(self, tokens, mask, edits)

    @property
    def W_EU(self) -> Float[Tensor, "d_vocab d_vocab"]:
        """Embed-unembed circuit W_E W_U, shape (d_vocab, d_vocab), of rank at most d_model."""
        self.require_plain()
        return self.W_E @ self.W_U

    @property
    def W_QK(self) -> Float[Tensor, "heads d_vocab d_vocab"]:
        """Query-key circuits W_E W_Q^h W_K^h W_E^T, of rank at most d_head_qk."""
        self.require_plain()
        return self.W_E @ self.W_Q @ self.W_K @ self.W_E.T * self.config.attention_scale

    @property
    def W_VO(self) -> Float[Tensor, "heads d_vocab d_vocab"]:
        """Value-output circuits W_E W_V^h W_O^h W_U, of rank at most d_head_vo."""
        self.require_plain()
        return self.W_E @ self.W_V @ self.W_O @ self.W_U

    def require_plain(self) -> None:
        """Refuse a layer with norm, bias or positions: an InvalidArgumentError."""
        if not self.config.is_plain:
            raise InvalidArgumentError(
                "Circuits are defined for layers without norm, bias and positions; got "
                f"{self.config.name}."
            )

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, device: torch.device | str = "cpu"
    ) -> AttentionLayer:
        """Read what `save` wrote, from ``weights.safetensors`` alone.

        Parameters
        ----------
        folder : path
            The folder of a saved layer.
        device : torch.device or str
            Device to put the weights on.

        Returns
        -------
        AttentionLayer
            The layer as it was saved.

        Raises
        ------
        StorageError
            If there is no such file, or it isn't a regular one.
        InvalidArgumentError
            If it isn't whole, its weights don't fit its configuration, are neither all float32 nor
            all float64, or hold NaN or infinities; for a device that isn't there.
        """
        config, weights = read_layer(folder)
        if not isinstance(config, LayerConfig):
            raise InvalidArgumentError(
                f"{os.fspath(folder)} must hold an AttentionLayer; it holds the decoder "
                f"{config.name}. Read it with Decoder.load."
            )
        return cls.of_weights(config, moved_to(device, weights))


@torch.no_grad()
def captured_activations(
    layer: AttentionLayer, tokens: Tensor, mask: Tensor | None, edits: Edits | None = None
) -> ActivationCache:
    """Run sentences through a layer and keep its activations; see `AttentionLayer.capture`."""
    config = layer.config
    real = checked_tokens(
        tokens,
        mask,
        d_vocab=layer.d_vocab,
        n_positions=config.n_positions or None,
        padding_after=True,
    )
    require_affordable_attention(tokens, 1, config.n_heads)
    start, q, k, v, pattern, z = layer._heads(tokens, edits)
    b_V, b_O = (layer.b_V[:, 0].clone(), layer.b_O.clone()) if config.bias else (None, None)
    heads = LayerActivations(pattern, q, k, v, z, layer.W_O.clone(), b_V, b_O,
                          config.attention_scale).without_padding(real)  # fmt: skip
    wrote = written_by_heads(0, heads)
    steps: list[Step] = [wrote]
    if config.layer_norm:
        steps.append(normed(0, layer.norm_out, wrote.applied_to(start)))
    cache = ActivationCache((heads,), real, True, start, tuple(steps), type(layer).__name__)
    # after an edit the pattern may be no softmax of the scores, as it should be
    return cache if edits else check_written(cache)


# for estimates: the entries are no integers
register_tensor_converter(
    Converter("AttentionLayer", (AttentionLayer,), "capacity.layer.model.tensor:whole_layer_tensor")
)
