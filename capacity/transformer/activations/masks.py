"""Masks of a run: those of its sentences, and what each mask that the model makes allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from capacity.transformer.activations.following.attention_calls import least_logit
from capacity.transformer.activations.following.head_outputs import Heads
from capacity.transformer.activations.models.families import Part
from capacity.transformer.activations.models.inputs import mask_of


@dataclass(frozen=True, eq=False)
class MaskKind:
    """Pairs of tokens that a mask of the model allows.

    Attributes
    ----------
    mask : tensor or None
        The mask, which is held so that no other one takes its place in memory.
    causal : bool
        True if no token attends to a later one.
    window : (batch, n, m) bool or None
        Pairs of tokens that it allows; None if all but padding, and later tokens if it is causal.
    """

    mask: Tensor | None
    causal: bool
    window: Tensor | None


class Masks:
    """Masks of one run, found when its first layer attends.

    Parameters
    ----------
    given : dict
        Inputs of the model.
    body : module
        The model without its head.
    part : Part or None
        Which attention is recorded.

    Attributes
    ----------
    tokens : (batch, n) bool
        Tokens that attend, without padding; of no tokens before the first layer.
    of_keys : (batch, m) bool or None
        Tokens that are attended to, if these are of other sequences.
    is_padded : bool
        True if either has padding.
    """

    def __init__(self, given: dict[str, Any], body: nn.Module, part: Part | None) -> None:
        self._given, self._body, self._part = given, body, part
        self.tokens, self.is_padded = torch.empty(0), False
        self.of_keys: Tensor | None = None
        # by the mask of the model, which layers share
        self._kinds: dict[int, MaskKind] = {}

    @property
    def keys(self) -> Tensor:
        """Tokens that are attended to."""
        return self.tokens if self.of_keys is None else self.of_keys

    @property
    def causal(self) -> bool:
        """True if all masks of the model are causal."""
        return all(kind.causal for kind in self._kinds.values())

    def find(self, heads: Heads) -> None:
        """Find the masks of the sentences, at the first call."""
        if self.tokens.numel():
            return
        _, _, n, n_keys = heads.call.pattern.shape
        batch = next(len(x) for x in self._given.values() if isinstance(x, Tensor))
        decoder = self._part in ("decoder", "cross")
        name = "decoder_attention_mask" if decoder else "attention_mask"
        device = heads.call.v.device
        self.tokens = mask_of(self._given, name, (batch, n), self._body).to(device)
        if self._part == "cross":
            of_keys = mask_of(self._given, "attention_mask", (batch, n_keys), self._body)
            self.of_keys = of_keys.to(device)
        self.is_padded = not (self.tokens.all() and self.keys.all())

    def kind_of(self, heads: Heads) -> MaskKind:
        """Return what the mask of a call allows, whose pattern has the shape of the others'."""
        mask = heads.call.mask
        if id(mask) not in self._kinds:
            self._kinds[id(mask)] = self._kind(mask, heads)
        return self._kinds[id(mask)]

    def _kind(self, mask: Tensor | None, heads: Heads) -> MaskKind:
        rows, allowed, causal = self.tokens, None, False
        if mask is not None:
            allowed = (mask > least_logit(mask))[:, 0].expand(len(rows), -1, -1)
            allowed = allowed.expand(-1, rows.shape[1], -1)
            causal = self.of_keys is None and not (allowed.triu(1) & rows[..., None]).any()
        if rows.shape[1] == 1:
            # nothing shows in one token
            causal = bool(getattr(heads.call.module, "is_causal", False))
        every = rows[:, :, None] & self.keys[:, None]
        every = every.tril() if causal else every
        window = None if allowed is None or (allowed | ~every).all() else allowed & every
        return MaskKind(mask, bool(causal), window)
