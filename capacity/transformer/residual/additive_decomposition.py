"""Additive decomposition of embeddings: e = i + h + f + c.

After any layer an embedding is a sum of four terms (Mickus et al. 2022, equations (1) to (5)): the
*input* i, the outputs of all *heads* h and *feed-forward* sublayers f, each as rescaled by the
norms above, and the *constant* c of all biases and of the means that norms subtract. One pass over
the recorded steps updates the four:

* a sublayer's output is added to h or f, its bias to c; if a norm precedes the sum, as in Gemma 2,
  as that norm maps it;
* a norm maps every term u to g u / s, and adds - g m / s + b to c;
* a product with fixed numbers applies to every term;
* a linear map applies to every term, and its bias is added to c.

Hybrids have a fifth term of what else mixes tokens, such as Mamba: *mixers*, which follow the same
rules as heads.

This holds for norms after sublayers (BERT), before them (GPT-2), on their outputs (OLMo 2), and
without means (RMSNorm), where c is 0 if there are no biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import (
    ActivationCache,
    Normed,
    Scaled,
    Step,
    Written,
)
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.validation import SAME, apart

TERMS = ("input", "heads", "feed_forward", "constant")
OF_HYBRIDS = (*TERMS, "mixers")
INPUT, HEADS, FEED_FORWARD, CONSTANT, MIXERS = range(5)


@briefly_shown
@dataclass(frozen=True, eq=False)
class AdditiveDecomposition:
    """Terms of every embedding, before the first layer and after each.

    Attributes
    ----------
    terms : (n_layers + 1, 4, batch, n, d_model)
        Terms in the order of `names`; five of them in hybrids. ``terms[0]`` is the input of layer
        0, ``terms[l + 1]`` the output of layer l, whether it has attention or not. The norm that
        follows the last layer of GPT-2 and Llama belongs to that layer, as in Hugging Face's hidden
        states (but for images: those of ViT, DeiT, SigLIP and DINOv2 lack it).
    mask : (batch, n) bool
        True for tokens; numbers at padding have no meaning.
    names : tuple of str
        Names of the terms: input, heads, feed_forward, constant, and in hybrids mixers.
    """

    terms: Float[Tensor, "stages terms batch n d_model"]
    mask: Bool[Tensor, "batch n"]
    names: tuple[str, ...] = TERMS

    @cached_property
    def embeddings(self) -> Float[Tensor, "stages batch n d_model"]:
        """Embeddings e, the sums of the terms."""
        return self.terms.sum(dim=1)

    def importance(self) -> Float[Tensor, "stages terms batch n"]:
        """Importance mu(e, u) = e . u / |e|^2 of each term u (equation 6); sums to 1 over terms."""
        return _importance(self.embeddings, self.terms)

    def constant_rank(self, *, relative: float | None = None) -> list[int]:
        """Numerical ranks of the constants of all tokens, before the first layer and after each.

        Parameters
        ----------
        relative : float, optional
            Singular values up to this share of the largest count as 0; by default
            max(tokens, d_model) times the machine epsilon of the terms.

        Returns
        -------
        list of int
            One rank for each of the n_layers + 1 stages of ``terms``.
        """
        constants = self.terms[:, CONSTANT][:, self.mask].double()
        s = torch.linalg.svdvals(constants)
        if relative is None:
            relative = max(constants.shape[1:]) * torch.finfo(self.terms.dtype).eps
        return (s > relative * s[:, :1]).sum(-1).tolist()


@briefly_shown
@dataclass(frozen=True, eq=False)
class LayerTerms:
    """Terms of the last embeddings, layer by layer.

    Attributes
    ----------
    terms : (n_terms, batch, n, d_model)
        Terms in the order of `names`.
    mask : (batch, n) bool
        True for tokens; numbers at padding have no meaning.
    names : tuple of (str, int or None)
        Kind of each term, as in `AdditiveDecomposition.names`, and its layer; input and constant
        have none.
    """

    terms: Float[Tensor, "terms batch n d_model"]
    mask: Bool[Tensor, "batch n"]
    names: tuple[tuple[str, int | None], ...]

    def importance(self) -> Float[Tensor, "terms batch n"]:
        """Importance mu(e, u) = e . u / |e|^2 of each term u (equation 6); sums to 1 over terms."""
        return _importance(self.terms.sum(0), self.terms)


def _importance(e: Tensor, terms: Tensor) -> Tensor:
    return torch.einsum("...bnd,...ubnd->...ubn", e, terms) / e.square().sum(-1)[..., None, :, :]


@torch.no_grad()
def decompose(captured: ActivationCache) -> AdditiveDecomposition:
    """Split every embedding into its terms.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.

    Returns
    -------
    AdditiveDecomposition
        Terms whose sums, ``embeddings``, are the model's hidden states up to rounding, which is
        checked for the last ones.

    Raises
    ------
    InvalidArgumentError
        If the residual stream couldn't be followed, or the terms don't sum to the last embeddings.

    Examples
    --------
    >>> import torch
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> split = decompose(layer.capture(torch.tensor([[3, 7]])))
    >>> split.terms.shape
    torch.Size([2, 4, 1, 2, 4])
    >>> split.importance().sum(dim=1).allclose(torch.ones(2, 1, 2))
    True
    """
    captured.require_steps()
    has_mixers = any(isinstance(s, Written) and s.term == "mixers" for s in captured.steps)
    names = OF_HYBRIDS if has_mixers else TERMS
    terms = captured.start.new_zeros(len(names), *captured.start.shape)
    terms[INPUT] = captured.start
    stages = []
    for step in captured.steps:
        while step.layer is not None and step.layer >= len(stages):
            stages.append(terms.clone())
        row = OF_HYBRIDS.index(step.term) if isinstance(step, Written) else None
        terms = _applied(step, terms, row)
    stages.append(terms)
    _require_sum(terms, captured)
    return AdditiveDecomposition(torch.stack(stages), captured.mask, names)


@torch.no_grad()
def terms_by_layer(captured: ActivationCache) -> LayerTerms:
    """Split the last embeddings into what each layer's sublayers have written.

    It is `decompose` with the heads, feed-forwards and mixers of each layer apart.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.

    Returns
    -------
    LayerTerms
        Terms whose sum is the last embeddings, which is checked.

    Raises
    ------
    InvalidArgumentError
        As `decompose`.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> found = terms_by_layer(layer.capture(torch.tensor([[3, 7]])))
    >>> found.names
    (('input', None), ('constant', None), ('heads', 0))
    >>> found.importance().shape
    torch.Size([3, 1, 2])
    """
    captured.require_steps()
    names: list[tuple[str, int | None]] = [("input", None), ("constant", None)]
    for step in captured.steps:
        if isinstance(step, Written) and (step.term, step.layer) not in names:
            names.append((step.term, step.layer))
    terms = captured.start.new_zeros(len(names), *captured.start.shape)
    terms[0] = captured.start
    for step in captured.steps:
        row = names.index((step.term, step.layer)) if isinstance(step, Written) else None
        terms = _applied(step, terms, row, constant=1)
    _require_sum(terms, captured)
    return LayerTerms(terms, captured.mask, tuple(names))


def _require_sum(terms: Tensor, captured: ActivationCache) -> None:
    if captured.last is None:
        return
    off = apart(terms.sum(0), captured.last, captured.mask)
    if not off <= SAME:
        way = (
            "Remove hooks, and compare model(...) before and after"
            if captured.hooked
            else "Use effective_attention and identifiability_table, which don't need it"
        )
        raise InvalidArgumentError(
            f"The terms must sum to the model's last embeddings; in {captured.source} they differ "
            f"by {off:.1g} of their size. The residual stream is changed in a way that isn't "
            f"followed, such as a write in place. {way}."
        )


def _applied(step: Step, terms: Tensor, row: int | None, constant: int = CONSTANT) -> Tensor:
    """Terms after a step, which adds what a sublayer writes to a row, and the rest to another."""
    if isinstance(step, Written):
        gain, fixed = step.gain, step.constant()
        added = step.output if isinstance(gain, float) and gain == 1 else gain * step.output
        terms[row] += added
        if fixed is not None:
            terms[constant] += fixed
        return terms
    if isinstance(step, Scaled):
        terms *= step.factor
        return terms
    if isinstance(step, Normed):
        terms *= step.gain
        terms /= step.scale
        if step.mean is not None:
            terms[constant] -= step.gain * (step.mean / step.scale)
    else:
        terms = terms @ step.weight
    if step.bias is not None:
        terms[constant] += step.bias
    return terms


def constant_rank_bound(captured: ActivationCache) -> list[int]:
    """Bound the rank of c over tokens from above, before the first layer and after each.

    c is a sum of fixed vectors with scalars that vary from token to token (Mickus et al. 2022,
    appendix B). The constants between two norms share one scalar, and the mean that a norm
    subtracts has another. So N norms have at most 2N + 1 vectors if a bias precedes the first, and
    2N otherwise. The paper counts two for each sublayer, and omits the norm of BERT's embeddings.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.

    Returns
    -------
    list of int
        One bound for each of the n_layers + 1 stages of `AdditiveDecomposition.terms`.

    Examples
    --------
    Three vectors: the bias of the heads, the mean that the norm after them subtracts (along its
    gain), and the norm's own bias.

    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2, bias=True, layer_norm=True), d_vocab=10)
    >>> constant_rank_bound(layer.capture(torch.tensor([[3, 7]])))
    [0, 3]
    """
    captured.require_steps()
    bounds: list[int] = []
    closed, is_open = 0, False
    for step in captured.steps:
        while step.layer is not None and step.layer >= len(bounds):
            bounds.append(closed + is_open)
        if isinstance(step, Normed):
            closed += is_open + (step.mean is not None)
            is_open = step.bias is not None
        elif isinstance(step, Written) and step.norm is not None:
            # that norm's scale is another one than those of the stream's
            closed += (step.bias is not None) + (step.norm.mean is not None)
            is_open = is_open or step.norm.bias is not None
        elif not isinstance(step, Scaled):
            is_open = is_open or step.bias is not None
    return [*bounds, closed + is_open]


@torch.no_grad()
def head_terms(captured: ActivationCache) -> Float[Tensor, "layers heads batch n d_model"]:
    """Compute the additive term of each head in the last embeddings; the sum of all is h.

    Equation (4), computed in the order (A (X W_V)) W_O: n^2 d_head_vo + n d_head_vo d_model
    operations for each head, instead of n^2 d_model for averaging the tokens' x W_V W_O.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.

    Returns
    -------
    (n_layers, n_heads, batch, n, d_model)
        Term of each head; the sum over layers and heads is h.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> captured = layer.capture(torch.tensor([[3, 7]]))
    >>> h = decompose(captured).terms[-1, HEADS]
    >>> torch.allclose(head_terms(captured).sum(dim=(0, 1)), h, atol=1e-6)
    True
    """
    return torch.stack(
        [
            (_unbiased(layer) @ layer.W_O).transpose(0, 1) * kept
            for layer, kept in zip(captured.layers, scales_after_heads(captured), strict=True)
        ]
    )


@torch.no_grad()
def head_importance(captured: ActivationCache) -> Float[Tensor, "layers heads batch n"]:
    """Compute the importance mu(e, u) of each head's term u in the last embeddings e.

    The terms themselves (`head_terms`) are not computed, which saves time and memory.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.

    Returns
    -------
    (n_layers, n_heads, batch, n)
        Importance of each head at each token; the sum over layers and heads is that of h.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> captured = layer.capture(torch.tensor([[3, 7]]))
    >>> of_h = decompose(captured).importance()[-1, HEADS]
    >>> torch.allclose(head_importance(captured).sum(dim=(0, 1)), of_h, atol=1e-6)
    True
    """
    e = decompose(captured).embeddings[-1]
    shares = []
    for layer, kept in zip(captured.layers, scales_after_heads(captured), strict=True):
        # e . (g z W_O) = z . ((g e) W_O^T)
        back = torch.einsum("bnd,hvd->hbnv", e * kept, layer.W_O)
        shares.append((_unbiased(layer).transpose(0, 1) * back).sum(-1))
    return torch.stack(shares) / e.square().sum(-1)


def _unbiased(layer: LayerActivations) -> Tensor:
    """Return what W_O reads, without the bias of values, which no layer with a gate has apart."""
    return layer.z_unbiased if layer.gate is None else layer.gated


def scales_after_heads(captured: ActivationCache) -> list[Tensor]:
    """Factors of heads' terms by all later norms: products of gains over scales.

    Returns
    -------
    list of tensors
        One for each layer, (batch, n, d_model), or (d_model,) where no norm follows.
    """
    captured.require_steps()
    factor = torch.ones_like(captured.layers[0].W_O[0, 0])
    kept: list[Tensor] = []
    for step in reversed(captured.steps):
        if isinstance(step, Normed):
            factor = factor * step.gain / step.scale
        elif isinstance(step, Scaled):
            factor = factor * step.factor
        elif isinstance(step, Written) and step.term == "heads":
            kept.append(factor * step.gain)
            if len(kept) == captured.n_layers:
                # steps before the first layer don't follow any heads
                break
    return kept[::-1]
