"""Logits of candidates after prompts, as sums over the components of a model.

With the scales of norms taken at their values, a model's logit is a sum of what its embeddings,
heads, feed-forwards and biases write, each times the gradient of the logit
(`capacity.transformer.logit_attribution`). Here this is done for all candidates of many prompts,
and what a head writes is split by the tokens from which it comes: the subject's, the predicate's,
and the rest.

References
----------
Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Chughtai, Cooney, Nanda
2024, "Summing Up the Facts", for parts by source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.checks import megabytes
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.recall.components.prompts import SOURCES, Prompts
from capacity.transformer.activations.capturing import capture
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.residual.affine_head import AffineHead, affine_head, logits_before_cap
from capacity.transformer.residual.logit_shares import carried_back

MOST_BYTES = 2**32
# rounding of the sum, in units of the dtype's epsilon and the sum of absolute parts
ROUNDING = 256.0


class Component(NamedTuple):
    """A part of a model that writes to its last embeddings.

    Attributes
    ----------
    name : str
        ``embedding``, ``head``, ``attention_bias``, ``feed_forward``, ``mixers``, ``bias`` (of
        norms) or ``output_bias``.
    layer, head : int or None
        Where it is, counted from 0.
    """

    name: str
    layer: int | None
    head: int | None


@dataclass(frozen=True, eq=False)
class ComponentLogits:
    """Parts of the logits of candidates after prompts.

    Attributes
    ----------
    components : tuple of Component
        Components of the model, in their order.
    logits : (n_prompts, n_tokens)
        The model's own logits, before a cap.
    parts : (n_components, n_prompts, n_tokens)
        Parts, which sum to the logits.
    by_source : (n_heads, 3, n_prompts, n_tokens)
        Those of the heads, in the order of `components`, by the tokens from which they come, in
        the order of `SOURCES`.
    off : float
        Largest distance of a sum from its logit, as a share of the sum of absolute parts.
    """

    components: tuple[Component, ...]
    logits: NDArray[np.floating]
    parts: NDArray[np.floating]
    by_source: NDArray[np.floating]
    off: float


@dataclass(frozen=True, eq=False)
class Run:
    """A batch of prompts that the model has run on.

    Attributes
    ----------
    rows : list of int
        Indices of the prompts.
    captured : ActivationCache
        Activations, with padding on the right.
    inputs : dict of str to Tensor
        What the model was called with.
    sentences, at : (batch,) int
        Index of each prompt in the batch, and that of its last token.
    """

    rows: list[int]
    captured: ActivationCache
    inputs: dict[str, Tensor]
    sentences: Tensor
    at: Tensor

    def last(self, x: Tensor) -> Tensor:
        """Numbers of last tokens, of those of all tokens: (batch, 1, features)."""
        return x[self.sentences, self.at][:, None]

    def number_of(self, layer: LayerActivations) -> int:
        """Index in the model of an attention layer."""
        at = next(i for i, one in enumerate(self.captured.layers) if one is layer)
        return self.captured.layer_numbers[at]


def batched(prompts: Prompts, batch_size: int, device: Any) -> Iterator[tuple[list[int], Any]]:
    """Yield batches of prompts of about the same length: their indices, and inputs of a model."""
    order = sorted(range(len(prompts.ids)), key=lambda i: len(prompts.ids[i]))
    for begin in range(0, len(order), batch_size):
        rows = order[begin : begin + batch_size]
        some = [prompts.ids[i] for i in rows]
        n = max(map(len, some))
        ids = torch.tensor([[*one, *[one[0]] * (n - len(one))] for one in some], device=device)
        mask = torch.tensor([[1] * len(one) + [0] * (n - len(one)) for one in some], device=device)
        yield rows, {"input_ids": ids, "attention_mask": mask}


def runs_of(model: Any, prompts: Prompts, batch_size: int) -> Iterator[Run]:
    """Run a model on prompts, and yield what it computes batch by batch."""
    device = next(model.parameters()).device
    for rows, inputs in batched(prompts, batch_size, device):
        captured = capture(model, inputs)
        captured.require_steps()
        sentences = torch.arange(len(rows), device=captured.mask.device)
        yield Run(rows, captured, inputs, sentences, captured.mask.sum(1) - 1)


def gradients(model: Any, run: Run, tokens: Sequence[int]) -> tuple[AffineHead, Tensor, Tensor]:
    """Find the head of a model, and the gradients of the logits of tokens: (batch, m, d_model).

    The third is the model's own logits before a cap, (batch, m).

    Raises
    ------
    InvalidArgumentError
        If the head isn't linear, but for a cap.
    """
    *_, embeddings = run.captured.streams()
    last = embeddings[run.sentences, run.at]
    head = affine_head(model, last)
    wanted = torch.tensor(list(tokens), device=last.device)
    own = logits_before_cap(model, head, last, wanted.expand(len(last), -1))
    return head, head.directions(wanted).expand(len(last), -1, -1), own


def sources_of(prompts: Prompts, run: Run) -> Tensor:
    """Mark the tokens of each source, as 0 and 1: (batch, 3, n)."""
    dtype, device = run.captured.layers[0].v.dtype, run.captured.mask.device
    marked = torch.zeros(*run.captured.mask.shape, len(SOURCES), dtype=dtype)
    for i, row in enumerate(run.rows):
        whose = torch.tensor(prompts.sources[row])
        marked[i, range(len(whose)), whose] = 1
    return marked.mT.to(device)


def written_to(logits: Tensor, layer: LayerActivations, z: Tensor, run: Run) -> Tensor:
    """Logits that heads write of what they have read, (batch, n_heads, origins, m).

    Parameters
    ----------
    logits : (batch, m, d_model)
        Gradients of the logits with regard to what the layer writes.
    layer : LayerActivations
        Its heads.
    z : (batch, n_heads, origins, d_head_vo)
        Values that were read.
    run : Run
        The run.
    """
    if layer.gate is not None:
        z = z * layer.gate[run.sentences, :, run.at][:, :, None]
    return torch.einsum("bhod,bmd->bhom", z @ layer.W_O, logits)


@torch.no_grad()
def component_logits(
    model: Any,
    prompts: Prompts,
    *,
    batch_size: int = 16,
    report: Callable[[int], object] = lambda _done: None,
) -> ComponentLogits:
    """Split the logits of candidates after prompts into parts of all components.

    Parameters
    ----------
    model : PreTrainedModel
        Causal model.
    prompts : Prompts
        Prompts, with the tokens whose logits are split.
    batch_size : int
        Number of prompts that are run together.
    report : callable
        Called with the number of prompts that are done.

    Raises
    ------
    InvalidArgumentError
        If the residual stream isn't known, the head isn't linear, or the parts don't sum to the
        model's logits.
    MemoryBudgetError
        If the parts would take more than 4 GiB.
    """
    components: tuple[Component, ...] = ()
    logits = parts = by_source = np.zeros(0)
    off, n_done = 0.0, 0
    for run in runs_of(model, prompts, batch_size):
        head, directions, own = gradients(model, run, prompts.tokens)
        marked = sources_of(prompts, run)

        def of_heads(layer: LayerActivations, inner: Tensor, run: Run = run,
                     marked: Tensor = marked) -> Tensor:  # fmt: skip
            attention = layer.pattern[run.sentences, :, run.at]
            z = torch.einsum("bhn,bon,bhnv->bhov", attention, marked, layer.v)
            return written_to(inner, layer, z, run)

        shares, origins = carried_back(run.captured, directions, run.last, of_heads)
        shares = [(name, layer, at, _wide(x, own)) for name, layer, at, x in shares]
        if head.b_U is not None:
            wanted = torch.tensor(prompts.tokens, device=own.device)
            shares.append(("output_bias", None, None, _wide(head.biases(wanted), own)))
        found = torch.stack([share for *_, share in shares])
        off = max(off, _off(found, own, run.captured.source))
        if not components:
            components = tuple(Component(*one[:3]) for one in shares)
            n_heads = sum(one.name == "head" for one in components)
            logits, parts, by_source = _empty(found, n_heads, len(prompts.ids))
        logits[run.rows] = own.cpu().numpy()
        parts[:, run.rows] = found.cpu().numpy()
        every = torch.cat([one.movedim(0, 2) for one in origins])
        by_source[:, :, run.rows] = every.cpu().numpy()
        n_done += len(run.rows)
        report(n_done)
    return ComponentLogits(components, logits, parts, by_source, off)


def _wide(share: Tensor, like: Tensor) -> Tensor:
    """A share for each prompt and token, where it is the same for all."""
    return share.expand_as(like)


def _off(parts: Tensor, own: Tensor, source: str) -> float:
    parts = parts.double()
    size = parts.abs().sum(0).clamp_min(torch.finfo(own.dtype).tiny)
    off = float(((parts.sum(0) - own).abs() / size).max())
    most = ROUNDING * torch.finfo(own.dtype).eps
    # norms compute in float32, whatever their model does
    if not off <= max(most, 1e-5):
        raise InvalidArgumentError(
            f"The parts must sum to the model's logits; those of {source} differ by {off:.1g} of "
            "their size. Compare model(...) before and after, and remove hooks."
        )
    return off


def _empty(
    found: Tensor, n_heads: int, n_prompts: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    n_components, _, m = found.shape
    dtype = np.float64 if found.dtype == torch.float64 else np.float32
    rows = n_components + n_heads * len(SOURCES) + 1
    n_bytes = rows * n_prompts * m * np.dtype(dtype).itemsize
    if n_bytes > MOST_BYTES:
        raise MemoryBudgetError(
            f"Parts must take at most {megabytes(MOST_BYTES)}; those of {n_prompts:,} prompts and "
            f"{m:,} candidates would take {megabytes(n_bytes)}. Take fewer facts or candidates."
        )
    return (
        np.zeros((n_prompts, m), dtype),
        np.zeros((n_components, n_prompts, m), dtype),
        np.zeros((n_heads, len(SOURCES), n_prompts, m), dtype),
    )
