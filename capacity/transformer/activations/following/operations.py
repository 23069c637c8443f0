"""Operations that make a residual stream: nodes of the expression that the last embeddings are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from capacity.transformer.activations.records.norms import NormCall


@dataclass(eq=False)
class Node:
    """Operation that made a tensor.

    Attributes
    ----------
    stream : bool
        Whether the tensor is the residual stream, or what is added to it.
    """

    stream: bool


@dataclass(eq=False)
class Leaf(Node):
    """A tensor that isn't followed further.

    Attributes
    ----------
    value : Tensor or None
        Itself; None as long as no operation has used it.
    call : int or None
        Number of the attention whose heads' joint output it is.
    module : nn.Module or None
        The linear module that made it, whose bias is part of it.
    mixes : bool
        Whether that module is part of a sublayer that mixes tokens.
    input : Tensor or None
        Input of the sublayer that made it, if that is known.
    """

    value: Tensor | None
    call: int | None = None
    module: Any = None
    input: Tensor | None = None
    mixes: bool = False


@dataclass(eq=False)
class Start(Node):
    """Input of the first layer, and the operation that made it."""

    value: Tensor
    of: Node | None


@dataclass(eq=False)
class Sum(Node):
    """Sum of two tensors in layer `layer`."""

    parts: tuple[Node, Node]
    layer: int


@dataclass(eq=False)
class Multiple(Node):
    """A tensor times a number, or times a vector, feature by feature, in layer `layer`."""

    of: Node
    factor: Any
    layer: int


@dataclass(eq=False)
class NormOf(Node):
    """A norm of a tensor; before the first layer `value` is that tensor."""

    of: Node
    call: NormCall
    value: Any


@dataclass(eq=False)
class MapOf(Node):
    """A linear map of a tensor, `value`."""

    of: Node
    module: Any
    layer: int | None
    value: Tensor
