"""Architectures, as `capture` needs them: which modules of a model do what.

`Architecture` and `Block` say for each layer which module attends, which writes heads to the
residual stream, which ends the feed-forward has, which norms lie on the stream, and how queries,
keys and values are read from recorded calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from capacity.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Call:
    """The input and output of one call of a module."""

    input: Any
    output: Any
    keywords: dict[str, Any]


Calls = dict[nn.Module, list[Call]]
# of recorded calls and the turn of a shared module: q, k, v by heads, and the values' bias
Read = Callable[[Calls, int], tuple[Tensor, Tensor, Tensor, Tensor | None]]


@dataclass(frozen=True, eq=False)
class Block:
    """One layer: its modules, and how its heads are read.

    Attributes
    ----------
    attention : module
        Gives (output, pattern).
    reads : tuple of modules
        Whose calls ``read`` needs.
    read : callable
    output : module
        Takes z, heads side by side, and writes to the stream: W_O and b_O.
    feed_forward, feed_forward_output : module
        The one takes the feed-forward's input, the other gives its output.
    norm_after_heads, norm_after_feed_forward : module or None
        Norms on the stream itself; None where norms are on the sublayers' inputs (pre-LN).
    scale : float
        Of the logits.
    """

    attention: nn.Module
    reads: tuple[nn.Module, ...]
    read: Read
    output: Any
    feed_forward: nn.Module
    feed_forward_output: Any
    norm_after_heads: nn.Module | None
    norm_after_feed_forward: nn.Module | None
    scale: float


@dataclass(frozen=True, eq=False)
class Architecture:
    """A model's layers and what surrounds them.

    Attributes
    ----------
    blocks : tuple of Block
    starts_at : module
        Whose first input is the residual stream as it begins.
    embedding_norm, mapping, final_norm : module or None
    causal : bool
    d_vocab : int
    n_positions : int
    longest : str
        Where ``n_positions`` comes from, for messages.
    """

    blocks: tuple[Block, ...]
    starts_at: nn.Module
    embedding_norm: nn.Module | None
    mapping: Any
    final_norm: nn.Module | None
    causal: bool
    d_vocab: int
    n_positions: int
    longest: str = "the model's max_position_embeddings"

    def modules(self) -> list[nn.Module]:
        """Modules whose calls are needed, once each."""
        ends = (self.starts_at, self.embedding_norm, self.final_norm)
        inner = [
            module
            for b in self.blocks
            for module in (b.attention, *b.reads, b.output, b.feed_forward, b.feed_forward_output,
                           b.norm_after_heads, b.norm_after_feed_forward)
        ]  # fmt: skip
        return list(dict.fromkeys(m for m in (*ends, *inner) if m is not None))


def matrix(module: Any) -> Tensor:
    """A copy of a linear module's weights, as ``x @ W``, shape (d_in, d_out)."""
    _require_linear(module)
    weight = module.weight.detach().clone()
    return weight.T if isinstance(module, nn.Linear) else weight


def bias_of(module: Any) -> Tensor | None:
    """A copy of a linear module's bias, or None."""
    _require_linear(module)
    return None if module.bias is None else module.bias.detach().clone()


def _require_linear(module: Any) -> None:
    # GPT-2's Conv1D is linear too, and holds its weights transposed
    if not (isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"):
        raise InvalidArgumentError(
            f"Projections must be linear modules; got {type(module).__name__}. Merge adapters into "
            "the model, and analyse it without quantization."
        )


def split_heads(x: Tensor, d_head: int) -> Tensor:
    """(batch, n, n_heads * d_head) to (batch, n_heads, n, d_head)."""
    return x.unflatten(-1, (-1, d_head)).transpose(1, 2)
