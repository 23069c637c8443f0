"""One run of a pretrained model, from which layers are kept on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import shared_change
from capacity.transformer.activations.following.head_outputs import Heads
from capacity.transformer.activations.following.modules import (
    modules_of,
    product_of,
    require_attending,
)
from capacity.transformer.activations.following.recorder import Recorder
from capacity.transformer.activations.following.steps import steps_of
from capacity.transformer.activations.masks import Masks
from capacity.transformer.activations.models.families import Part, body_of
from capacity.transformer.activations.models.inputs import checked_inputs
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.products import are_softmax, random_vector, rows_of
from capacity.transformer.activations.records.tokens import require_affordable_attention
from capacity.transformer.activations.records.validation import (
    Check,
    RecordedHeads,
    check_heads,
    heads_of,
    require_within,
)
from capacity.transformer.activations.untouched import (
    generator_of,
    require_same_model,
    same_random_numbers,
)


@dataclass(frozen=True)
class Plan:
    """Attention that is recorded, and how it is checked; see `capture`."""

    part: Part | None
    layers: tuple[int, ...] | None
    heads: tuple[int, ...] | None
    check: Check
    one_by_one: bool = False

    @property
    def whole(self) -> bool:
        """True if all layers and heads are kept, of a stack that adds nothing else."""
        every = self.layers is None and self.heads is None and not self.one_by_one
        return every and self.part in (None, "encoder")


class Run:
    """One run of a model, and what is known of its sentences meanwhile."""

    def __init__(
        self,
        model: nn.Module,
        given: dict[str, Any],
        plan: Plan,
        keep: Callable[[int, LayerActivations], None],
    ) -> None:
        self.source, self.plan = type(model).__name__, plan
        self._body, self._stack = body_of(model, plan.part)
        self._given = checked_inputs(given, self._body, self.source)
        self._keep = keep
        # layers that are kept once their products have been compared, with all others'
        self._waiting: list[tuple[int, RecordedHeads]] = []
        self._require_affordable(self._stack.config)
        self._recorder = self._recorder_of(own=False)
        self._masks = Masks(self._given, self._body, plan.part)

    def run(self) -> None:
        """Run the model; its layers are kept on the way."""
        device = next((p.device for p in self._body.parameters()), torch.device("cpu"))
        state = generator_of(device).get_state()
        with shared_change(modules_of(self._body), "training", value=False):
            self._record()
            if not self._recorder.has_heard:
                # the family doesn't use the interface: what it computes itself is recorded
                self._recorder = self._recorder_of(own=True)
                with same_random_numbers(device, state):
                    self._record()
            self._require_attention()
            require_same_model(self._body, self._stack, self._given, self._recorder.last,
                               self._masks.tokens, state, self.source, self.plan.check)  # fmt: skip

    def _recorder_of(self, *, own: bool) -> Recorder:
        return Recorder(self._body, self._stack, across=self.plan.part == "cross", own=own)

    def _record(self) -> None:
        try:
            with self._recorder.recording(self._assemble, follow=self.plan.whole):
                self._body(**self._given)
            self._settle()
        except CapacityError:
            # what is wrong with an earlier layer may be the reason
            self._settle()
            raise
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception:
            self._require_running()
            raise

    def _require_running(self) -> None:
        """Refuse inputs on which the model fails by itself, without being recorded."""
        try:
            self._body(**self._given)
        except Exception as error:
            why = (str(error).strip() or "without a message").splitlines()[0]
            dtype = next((p.dtype for p in self._body.parameters()), torch.float32)
            raise InvalidArgumentError(
                f"The model must run on the inputs by itself; {self.source} in "
                f"{str(dtype).removeprefix('torch.')} raises {type(error).__name__}, '{why:.200}'. "
                "Check its inputs and its precision by calling it."
            ) from error

    def _require_attention(self) -> None:
        attending = self._recorder.count.attending
        if not attending and self._recorder.has_heard:
            raise InvalidArgumentError(
                "Attention across sequences must compute its values from the embeddings that an "
                f"encoder returns; that of {self.source} isn't known from attention within one. "
                "Capture its patterns and values by hooks, and pass them to "
                "capacity.transformer.from_tensors."
            )
        if not attending:
            raise InvalidArgumentError(
                "A model's attention must go through the AttentionInterface of transformers, or "
                "average values by a softmax of products of queries and keys; none of "
                f"{self.source} does, as its family has none, or another kind of it. Capture its "
                "patterns and values by hooks, and pass them to "
                "capacity.transformer.from_tensors."
            )
        require_attending("`layers`", self.plan.layers or (), attending)

    def cache(self, layers: list[LayerActivations]) -> ActivationCache:
        """Cache of layers that were kept."""
        attending, mask = self._recorder.count.attending, self._masks.tokens
        first, steps, why, last = layers[0].z.new_zeros(*mask.shape, 0), (), None, None
        if self.plan.part in ("decoder", "cross"):
            why = (
                "A decoder adds what its attention across sequences reads from the encoder, a term "
                f"that e = i + h + f + c doesn't have; {self.source} has one. Decompose its "
                "encoder."
            )
        elif self.plan.whole:
            try:
                follower, last = self._recorder.stream, self._recorder.last
                first, steps = steps_of(last, follower, layers, attending, self.source,
                                        hooked=self._recorder.hooked)  # fmt: skip
                last = last.view(*mask.shape, -1)
            except InvalidArgumentError as error:
                # the other analyses don't need the stream
                why, last = str(error), None
        numbers = self.plan.layers
        if numbers is None and attending != list(range(len(attending))):
            numbers = tuple(attending)
        return ActivationCache(tuple(layers), mask, self._masks.causal, first, steps, self.source,
                               self._masks.of_keys, why, last,
                               (numbers, self.plan.heads), self._recorder.hooked)  # fmt: skip

    def _require_affordable(self, config: Any) -> None:
        name = "decoder_input_ids" if self.plan.part == "decoder" else "input_ids"
        tokens = self._given.get(name)
        if tokens is None:
            return
        # most configurations have these names, if not of their own
        n_layers = getattr(config, "num_hidden_layers", 1)
        n_heads = getattr(config, "num_attention_heads", 1)
        n_layers = 1 if self.plan.one_by_one else len(self.plan.layers or range(n_layers))
        require_affordable_attention(tokens, n_layers, len(self.plan.heads or range(n_heads)))

    def _assemble(self, index: int, heads: Heads) -> None:
        plan = self.plan
        if plan.layers is not None and index not in plan.layers:
            return
        where = f"layer {index} of {self.source}"
        masks = self._masks
        masks.find(heads)
        shape, known = heads.call.pattern.shape, (*masks.tokens.shape, masks.keys.shape[1])
        if (shape[0], *shape[2:]) != known:
            raise InvalidArgumentError(
                f"All layers must attend among the same tokens of the same sentences; {where} has "
                f"patterns of shape {tuple(shape)}, where {known} is the shape (batch, n, m) of "
                "the others: sentences or images are split on the way. Pass the module that holds "
                "such layers alone, or tensors to capacity.transformer.from_tensors."
            )
        kind, layer = masks.kind_of(heads), heads.layer()
        layer = layer if kind.window is None else layer.changed(seen=kind.window)
        rows = rows_of(layer)
        if masks.is_padded:
            layer = layer.without_padding(masks.tokens, masks.of_keys)
        r, W_O = random_vector(layer.W_O.shape[-1], layer.z), layer.W_O.flatten(0, 1)
        product = product_of(heads.output.module, W_O, r)
        recorded = heads_of(layer, masks.tokens, where, causal=kind.causal, rows=rows)
        recorded = recorded.writing(heads.output.output, product, hooked=self._recorder.hooked)
        self._waiting.append((index, recorded))
        # others may take too much memory until then
        if plan.one_by_one or plan.heads is not None or plan.check == "full":
            self._settle()

    def _settle(self) -> None:
        """Compare the products of layers that wait, and keep the layers."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        recorded = [one for _, one in waiting]
        soft = are_softmax([one.rows for one in recorded], self._masks.tokens)
        check_heads(recorded, self._masks.tokens, self.plan.check)
        for (index, one), is_soft in zip(waiting, soft, strict=True):
            layer = one.layer if is_soft else one.layer.changed(soft=False)
            if self.plan.heads is not None:
                require_within("heads", self.plan.heads, layer.v.shape[1])
                layer = layer.of_heads(self.plan.heads)
            self._keep(index, layer)
