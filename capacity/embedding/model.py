"""A family of models, with the theorems about its dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from capacity.display import briefly_shown
from capacity.embedding.graph_counts import Counts
from capacity.embedding.one_way import Obstruction
from capacity.embedding.proofs import SignProof
from capacity.embedding.queries import Task

Side: TypeAlias = Literal["necessary", "sufficient", "impossible"]
Certificate: TypeAlias = SignProof | tuple[Obstruction, ...]


@briefly_shown
@dataclass(frozen=True, eq=False)
class Reason:
    """A bound of the dimension, with its reason.

    Attributes
    ----------
    side : {'necessary', 'sufficient', 'impossible'}
        A lower bound, an upper bound, or none: no dimension does.
    value : int
        The bound; 0 where no dimension does.
    words : str
        Its theorem, with the source.
    certificate : Shattered, SmallNorm, tuple of Obstruction, or None
        What proves it, beside the facts; None for a count, which is made again, and for what
        follows from the certified rank (`Dimension.ranks`).
    """

    side: Side
    value: int
    words: str
    certificate: Certificate | None = None

    def at(self, value: int, words: str) -> Reason:
        """Return the bound that another family has by this one."""
        return replace(self, value=value, words=f"{words}: {self.words}")


Bounds: TypeAlias = Callable[[Counts, Task], Iterator[Reason]]
Parameters: TypeAlias = Callable[[Counts], int]


@briefly_shown
@dataclass(frozen=True)
class Model:
    """A family of models that score triples.

    Attributes
    ----------
    name : str
        Its name, as in the literature.
    scores : str
        Its scores, in a formula.
    bounds : callable
        ``bounds(counts, task)`` yields reasons.
    parameters : callable
        ``parameters(counts)`` counts the numbers of a model that grow with its dimension, for
        each dimension.
    both_sides : bool
        False if (?, q, o) isn't asked of it.
    trained : bool
        Whether witnesses are searched.
    """

    name: str
    scores: str
    bounds: Bounds
    parameters: Parameters
    both_sides: bool = True
    trained: bool = True


def nonzero(side: Side, value: int, words: str, proof: Certificate | None = None) -> Reason:
    """Make a reason; a model has one dimension at least."""
    return Reason(side, max(value, 1), words, proof)
