"""e = i + h + f + c: what each part of a transformer adds to an embedding.

After any layer an embedding is a sum of four terms (Mickus et al. 2022, equations (1) to (5)): the
*input* i, what the *heads* h and the *feed-forward* sublayers f have written, each as the norms
above have rescaled it, and the *constant* c, all biases and what norms subtract. One pass over the
recorded steps keeps the four up to date:

* a sublayer's output joins h or f, its bias joins c;
* a norm maps every term u to g u / s, and c gets - g m / s + b besides;
* a linear map applies to every term, its bias joins c.

This holds for norms after sublayers (BERT), before them (GPT-2), and without means (RMSNorm), where
c is 0 if there are no biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.transformer.activations.cache import ActivationCache, Mapped, Normed, Written

TERMS = ("input", "heads", "feed_forward", "constant")
INPUT, HEADS, FEED_FORWARD, CONSTANT = range(4)


@dataclass(frozen=True, eq=False)
class AdditiveDecomposition:
    """The four terms of every embedding.

    Attributes
    ----------
    terms : (n_layers + 1, 4, batch, n, d_model)
        In the order of `TERMS`; first what enters layer 1, then what leaves each layer. The norm
        that follows the last layer of GPT-2 and Llama belongs to that layer, as it does in Hugging
        Face's hidden states.
    mask : (batch, n) bool
        Tokens; what stands at padding has no meaning.
    """

    terms: Float[Tensor, "stages 4 batch n d_model"]
    mask: Bool[Tensor, "batch n"]

    @cached_property
    def embeddings(self) -> Float[Tensor, "stages batch n d_model"]:
        """e, the sum of the terms."""
        return self.terms.sum(dim=1)

    def importance(self) -> Float[Tensor, "stages 4 batch n"]:
        """mu(e, u) = e . u / |e|^2 of each term u (equation 6); sums to 1 over terms."""
        e = self.embeddings
        return torch.einsum("lbnd,lubnd->lubn", e, self.terms) / e.square().sum(-1)[:, None]

    def constant_rank(self, *, relative: float | None = None) -> list[int]:
        """Numerical rank, after each layer, of the constants of all tokens.

        Parameters
        ----------
        relative : float, optional
            Singular values up to this share of the largest count as 0; by default
            max(tokens, d_model) times the precision of the terms.
        """
        constants = self.terms[:, CONSTANT][:, self.mask].double()
        s = torch.linalg.svdvals(constants)
        if relative is None:
            relative = max(constants.shape[1:]) * torch.finfo(self.terms.dtype).eps
        return (s > relative * s[:, :1]).sum(-1).tolist()


@torch.no_grad()
def decompose(captured: ActivationCache) -> AdditiveDecomposition:
    """Split every embedding into its four terms.

    Parameters
    ----------
    captured : Captured

    Returns
    -------
    AdditiveDecomposition
        Its ``embeddings`` are the model's hidden states, up to rounding.

    Examples
    --------
    >>> import torch
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> split = decompose(layer.capture(torch.tensor([[3, 7]])))
    >>> split.terms.shape
    torch.Size([2, 4, 1, 2, 4])
    """
    terms = captured.start.new_zeros(len(TERMS), *captured.start.shape)
    terms[INPUT] = captured.start
    stages = []
    for step in captured.steps:
        if step.layer is not None and step.layer >= len(stages):
            stages.append(terms.clone())
        terms = _applied(step, terms)
    stages.append(terms)
    return AdditiveDecomposition(torch.stack(stages), captured.mask)


def _applied(step: Written | Normed | Mapped, terms: Tensor) -> Tensor:
    if isinstance(step, Written):
        terms[HEADS if step.term == "heads" else FEED_FORWARD] += step.output
    elif isinstance(step, Normed):
        terms *= step.gain
        terms /= step.scale
        if step.mean is not None:
            terms[CONSTANT] -= step.gain * (step.mean / step.scale)
    else:
        terms = terms @ step.weight
    if step.bias is not None:
        terms[CONSTANT] += step.bias
    return terms


def constant_rank_bound(captured: ActivationCache) -> list[int]:
    """Upper bound of the rank of c over tokens, after each layer.

    c is a sum of fixed vectors with scalars that vary from token to token (Mickus et al. 2022,
    appendix B). A norm starts a new scalar for whatever constants follow it, which all share it
    until the next norm, and another for the mean that it subtracts. So N norms give at most 2N + 1
    vectors if a bias precedes the first, and 2N otherwise. The paper counts two a sublayer, and
    forgets the norm of BERT's embeddings.
    """
    bounds: list[int] = []
    closed, is_open = 0, False
    for step in captured.steps:
        if step.layer is not None and step.layer >= len(bounds):
            bounds.append(closed + is_open)
        if isinstance(step, Normed):
            closed += is_open + (step.mean is not None)
            is_open = step.bias is not None
        else:
            is_open = is_open or step.bias is not None
    return [*bounds, closed + is_open]


@torch.no_grad()
def head_terms(captured: ActivationCache) -> Float[Tensor, "layers heads batch n d_model"]:
    """Term of each head of each layer in the last embeddings; the sum over both is h.

    Equation (4) with A (X W_V) W_O in this order: n^2 d_head_vo + n d_head_vo d_model operations a
    head instead of the n^2 d_model of weighing every token's x W_V W_O.
    """
    return torch.stack(
        [
            (layer.z_unbiased @ layer.W_O).transpose(0, 1) * kept
            for layer, kept in zip(captured.layers, scales_after_heads(captured), strict=True)
        ]
    )


@torch.no_grad()
def head_importance(captured: ActivationCache) -> Float[Tensor, "layers heads batch n"]:
    """mu(e, u) of each head's term u in the last embeddings e, without making the terms."""
    e = decompose(captured).embeddings[-1]
    shares = []
    for layer, kept in zip(captured.layers, scales_after_heads(captured), strict=True):
        # e . (g z W_O) = z . ((g e) W_O^T)
        back = torch.einsum("bnd,hvd->hbnv", e * kept, layer.W_O)
        shares.append((layer.z_unbiased.transpose(0, 1) * back).sum(-1))
    return torch.stack(shares) / e.square().sum(-1)


def scales_after_heads(captured: ActivationCache) -> list[Tensor]:
    """Scaling of heads' terms after they are written: gains over scales of all later norms.

    Returns
    -------
    list of tensors
        One a layer, (batch, n, d_model), or (d_model,) where no norm follows.
    """
    factor = torch.ones_like(captured.layers[0].W_O[0, 0])
    kept: list[Tensor] = []
    for step in reversed(captured.steps):
        if isinstance(step, Normed):
            factor = factor * step.gain / step.scale
        elif isinstance(step, Written) and step.term == "heads":
            kept.append(factor)
            if len(kept) == captured.n_layers:
                # what comes before the first layer isn't on the heads' way
                break
    return kept[::-1]
