"""Roles of a model's modules, as `capture` needs them.

For each layer `Block` names the module that attends, the one that writes the heads' outputs to the
residual stream, the first and last of the feed-forward and the norms on the stream, and reads
queries, keys and values from recorded calls. `Architecture` has the layers, and what precedes and
follows them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Call:
    """Input and output of one call of a module."""

    input: Any
    output: Any
    keywords: dict[str, Any]


Calls = dict[nn.Module, list[Call]]
# (recorded calls, number of the module's call) -> q, k, v by heads, and the values' bias;
# a module that layers share is called several times
Read = Callable[[Calls, int], tuple[Tensor, Tensor, Tensor, Tensor | None]]


@briefly_shown
@dataclass(frozen=True, eq=False)
class Block:
    """Modules of one layer by their roles, and a function that reads its heads.

    Attributes
    ----------
    attention : module
        Module that returns (output, pattern).
    reads : tuple of modules
        Modules whose calls ``read`` needs.
    read : callable
        Maps recorded calls, and the number of the module's call, to q, k and v, shape
        (batch, n_heads, n, d_head), and the bias of the values, shape (n_heads, d_head), or None.
    output : module
        Linear module with W_O and b_O, from z, heads side by side, to the stream.
    feed_forward, feed_forward_output : module
        Modules that receive the feed-forward's input and return its output; the same one if
        it does both.
    norm_after_heads, norm_after_feed_forward : module or None
        Norms on the stream itself; None where norms are on the sublayers' inputs (pre-LN).
    scale : float
        Factor of the logits.
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


@briefly_shown
@dataclass(frozen=True, eq=False)
class Architecture:
    """Layers of a model, and the modules around them.

    Attributes
    ----------
    blocks : tuple of Block
        Layers, from the first to the last.
    starts_at : module
        Module whose first input is the initial residual stream.
    embedding_norm : module or None
        Norm of the embeddings.
    mapping : module or None
        Linear map from embeddings to the first layer's input, as in ALBERT.
    final_norm : module or None
        Norm after the last layer.
    causal : bool
        True if tokens attend to themselves and earlier tokens only.
    d_vocab : int
        Size of the vocabulary.
    n_positions : int
        Largest number of tokens in a sentence.
    longest : str
        Name of that limit, for messages.
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
        """Modules whose calls must be recorded, without repetition."""
        ends = (self.starts_at, self.embedding_norm, self.final_norm)
        inner = [
            module
            for b in self.blocks
            for module in (b.attention, *b.reads, b.output, b.feed_forward, b.feed_forward_output,
                           b.norm_after_heads, b.norm_after_feed_forward)
        ]  # fmt: skip
        return list(dict.fromkeys(m for m in (*ends, *inner) if m is not None))


def matrix(module: Any) -> Tensor:
    """Copy of a linear module's weights, for ``x @ W``: shape (d_in, d_out)."""
    _require_linear(module)
    weight = module.weight.detach().clone()
    return weight.T if isinstance(module, nn.Linear) else weight


def bias_of(module: Any) -> Tensor | None:
    """Copy of a linear module's bias, or None."""
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
    """Reshape (batch, n, n_heads * d_head) to (batch, n_heads, n, d_head)."""
    return x.unflatten(-1, (-1, d_head)).transpose(1, 2)
