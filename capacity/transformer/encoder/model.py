"""`EncoderClassifier`: a one-layer encoder in two variants, one with identifiable attention.

With x the sum of the embeddings of tokens and positions (section 2.2), rows acting from the left,

    A^h = softmax((x W_Q^h + b_Q^h) (x W_K^h + b_K^h)^T / sqrt(d_head_qk)),      (1)
    x'  = norm_1(x + heads),
    y   = norm_2(x' + relu(x' W_1 + b_1) W_2 + b_2),
    logits = y_1 W_C + b_C, with y_1 the row of the first token.

Heads output z^h = A^h (x W_V^h + b_V^h), and together, in the two variants of section 4,

* *concatenate* ("Con"): [z^1 ... z^H] W_O + b_O, with d_head_vo = d_model / n_heads;
* *add* ("Add"): (z^1 + ... + z^H) W_O + b_O, with d_head_vo = d_model, so that A^h T^h, with
  T^h = (x W_V^h + b_V^h) W_O, determines A^h for sentences of up to d_model tokens.

d_head_qk is free in both. The code published with the paper sums H neighbouring features of one
head where its text adds heads; here heads are added.

References
----------
Bhardwaj, Majumder, Poria, Hovy 2021, "More Identifiable yet Equally Performant Transformers for
Text Classification", sections 2.2, 4 and 6. Vaswani et al. 2017 for the layer.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, einsum, nn
from torch.nn import functional

from capacity.checks import Seed
from capacity.transformer.activations.records.cache import ActivationCache, Written, normed
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.tokens import (
    checked_tokens,
    require_affordable_attention,
)
from capacity.transformer.activations.records.validation import check_written
from capacity.transformer.encoder.config import EncoderConfig, initial_weights


class EncoderClassifier(nn.Module):
    """One encoder layer with post-layer norms, and a linear classifier of its first token.

    Parameters
    ----------
    config : EncoderConfig
        Sizes.
    seed : int or numpy.random.Generator
        Seed of the initial weights, drawn in float64 by `initial_weights`; norms begin with gain 1
        and bias 0.
    dtype : torch.dtype
        Type of the weights.
    device : torch.device or str
        Device of the weights.

    Attributes
    ----------
    W_E, W_pos : (d_vocab, d_model), (n_positions, d_model)
        Embeddings of tokens and positions.
    W_Q, W_K : (n_heads, d_model, d_head_qk)
        Query and key weights.
    W_V : (n_heads, d_model, d_head_vo)
        Value weights.
    W_O : (d_model, d_model)
        Output weights, for the concatenation or the sum of heads; `W_O_of_heads` has one matrix
        for each head.
    W_1, W_2 : (d_model, d_feed_forward), (d_feed_forward, d_model)
        Weights of the feed-forward.
    W_C : (d_model, n_classes)
        Weights of the classifier.
    b_Q, b_K, b_V, b_O, b_1, b_2, b_C
        Biases of these weights. b_K adds the same number to all logits of a row, so that no output
        depends on it, and training doesn't change it.
    norm_1, norm_2 : torch.nn.LayerNorm
        Norms after the heads and after the feed-forward.

    Raises
    ------
    InvalidArgumentError
        If the seed is out of range.
    MemoryBudgetError
        If the weights would take more than 8 GiB in float64.

    Examples
    --------
    >>> model = EncoderClassifier(EncoderConfig(100, 2, 16, 8, 4, 2, 32, "add"), seed=0)
    >>> model(torch.tensor([[2, 40, 7]])).shape
    torch.Size([1, 2])
    """

    W_E: Float[Tensor, "d_vocab d_model"]
    W_pos: Float[Tensor, "n_positions d_model"]
    W_Q: Float[Tensor, "heads d_model d_head_qk"]
    W_K: Float[Tensor, "heads d_model d_head_qk"]
    W_V: Float[Tensor, "heads d_model d_head_vo"]
    W_O: Float[Tensor, "d_model d_model"]
    W_1: Float[Tensor, "d_model d_feed_forward"]
    W_2: Float[Tensor, "d_feed_forward d_model"]
    W_C: Float[Tensor, "d_model n_classes"]
    b_Q: Float[Tensor, "heads d_head_qk"]
    b_K: Float[Tensor, "heads d_head_qk"]
    b_V: Float[Tensor, "heads d_head_vo"]
    b_O: Float[Tensor, "d_model"]
    b_1: Float[Tensor, "d_feed_forward"]
    b_2: Float[Tensor, "d_model"]
    b_C: Float[Tensor, "n_classes"]

    def __init__(
        self,
        config: EncoderConfig,
        *,
        seed: Seed = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        self.config = config
        for name, array in initial_weights(config, seed).items():
            setattr(self, name, nn.Parameter(torch.as_tensor(array, dtype=dtype, device=device)))
        self.norm_1 = nn.LayerNorm(config.d_model, dtype=dtype, device=device)
        self.norm_2 = nn.LayerNorm(config.d_model, dtype=dtype, device=device)

    @property
    def W_O_of_heads(self) -> Float[Tensor, "heads d_head_vo d_model"]:
        """Output weights of each head: its rows of W_O if concatenated, all of W_O if added."""
        heads, d_head_vo, d = self.config.n_heads, self.config.d_head_vo, self.config.d_model
        if self.config.combine == "add":
            return self.W_O.expand(heads, d_head_vo, d)
        return self.W_O.view(heads, d_head_vo, d)

    def forward(
        self, tokens: Int[Tensor, "batch n"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes of sentences.

        Parameters
        ----------
        tokens : integer tensor, shape (batch, n)
            Token ids.
        mask : tensor of 0 and 1, shape (batch, n), optional
            1 for tokens, 0 for the padding after them.

        Returns
        -------
        tensor, shape (batch, n_classes)
            Logits.

        Raises
        ------
        InvalidArgumentError
            If a token is outside the vocabulary, a sentence is too long or padding alone, or
            padding precedes a token.
        """
        real = self.checked_mask(tokens, mask)
        x = self._embedded(tokens)
        # The classes depend on the first token's attention alone. So W_K and W_V multiply one
        # vector a head, in (q W_K^T) x^T and (A x) W_V, instead of every token; b_K cancels.
        first = x[:, :1]
        asked = einsum("bhie,hde->bhid", self._project(first, self.W_Q, self.b_Q), self.W_K)
        pattern = self._attention(einsum("bhid,bnd->bhin", asked, x), real)
        averaged = einsum("bhin,bnd->bhid", pattern, x)
        z = einsum("bhid,hde->bhie", averaged, self.W_V) + self.b_V[:, None]
        stream = self.norm_1(first + self._combined(z) + self.b_O)
        stream = self.norm_2(stream + self._feed_forward(stream) + self.b_2)
        return stream[:, 0] @ self.W_C + self.b_C

    @torch.no_grad()
    def capture(
        self, tokens: Int[Tensor, "batch n"], mask: Tensor | None = None
    ) -> ActivationCache:
        """Record the layer's activations on sentences, for the analyses.

        The steps lead from ``start`` to y, for all tokens. Weights are copied, so that later
        training doesn't change the cache.

        Parameters
        ----------
        tokens : integer tensor, shape (batch, n)
            Token ids.
        mask : tensor of 0 and 1, shape (batch, n), optional
            1 for tokens, 0 for the padding after them.

        Returns
        -------
        ActivationCache
            Activations of one layer. Added heads share one W_O, which is repeated for each.

        Raises
        ------
        InvalidArgumentError
            If a token is outside the vocabulary, a sentence is too long or padding alone, or
            padding precedes a token.
        MemoryBudgetError
            If the attention would take more than 2 GiB.
        """
        real = self.checked_mask(tokens, mask)
        require_affordable_attention(tokens, 1, self.config.n_heads)
        start = self._embedded(tokens)
        q = self._project(start, self.W_Q, self.b_Q)
        k = self._project(start, self.W_K, self.b_K)
        unbiased = einsum("bnd,hde->bhne", start, self.W_V)
        pattern = self._attention(q @ k.mT, real)
        averaged = pattern @ unbiased
        layer = LayerActivations(
            pattern=pattern,
            q=q,
            k=k,
            v=unbiased + self.b_V[:, None],
            # rows of attention sum to 1
            z=averaged + self.b_V[:, None],
            W_O=self.W_O_of_heads.clone(),
            b_V=self.b_V.clone(),
            b_O=self.b_O.clone(),
            scale=self._scale,
        ).without_padding(real)
        bias = self._combined(self.b_V[None, :, None])[0, 0] + self.b_O
        heads = Written(0, "heads", self._combined(averaged) + bias, bias)
        stream = start + heads.whole
        after_heads, stream = normed(0, self.norm_1, stream), self.norm_1(stream)
        wrote = self._feed_forward(stream) + self.b_2
        fed = Written(0, "feed_forward", wrote, self.b_2.clone(), stream)
        after_feeding = normed(0, self.norm_2, fed.applied_to(stream))
        steps = (heads, after_heads, fed, after_feeding)
        return check_written(
            ActivationCache((layer,), real, False, start, steps, type(self).__name__)
        )

    def checked_mask(
        self, tokens: Int[Tensor, "batch n"], mask: Tensor | None
    ) -> Bool[Tensor, "batch n"]:
        """Check sentences as `forward` does, and return the boolean mask of their tokens."""
        # padding must follow, as the first token is classified
        return checked_tokens(
            tokens,
            mask,
            d_vocab=self.config.d_vocab,
            n_positions=self.config.n_positions,
            padding_after=True,
        )

    @property
    def _scale(self) -> float:
        return 1 / math.sqrt(self.config.d_head_qk)

    def _embedded(self, tokens: Tensor) -> Float[Tensor, "batch n d_model"]:
        return functional.embedding(tokens, self.W_E) + self.W_pos[: tokens.shape[1]]

    def _project(self, x: Tensor, weight: Tensor, bias: Tensor) -> Float[Tensor, "batch heads n e"]:
        return einsum("bnd,hde->bhne", x, weight) + bias[:, None]

    def _attention(self, products: Tensor, real: Tensor) -> Float[Tensor, "batch heads rows n"]:
        logits = self._scale * products
        return logits.masked_fill(~real[:, None, None], -torch.inf).softmax(dim=-1)

    def _combined(self, z: Float[Tensor, "batch heads n e"]) -> Float[Tensor, "batch n d_model"]:
        """Joint output of the heads, without b_O."""
        together = z.sum(dim=1) if self.config.combine == "add" else z.transpose(1, 2).flatten(2)
        return together @ self.W_O

    def _feed_forward(self, x: Tensor) -> Float[Tensor, "batch n d_model"]:
        """Output of the feed-forward, without b_2."""
        return torch.relu(x @ self.W_1 + self.b_1) @ self.W_2
