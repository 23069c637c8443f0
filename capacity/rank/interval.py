"""`RankInterval`: a certified interval of the rank or of the effective rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from capacity.display import table
from capacity.errors import InvalidArgumentError
from capacity.rank.factors import Factors, factors_of
from capacity.rank.verifier.certificate import Certificate
from capacity.tensor.sparse import SparseTensor
from capacity.visible import visible


@dataclass(frozen=True, repr=False)
class RankInterval:
    """A certified interval [lower, upper] that contains the rank, or the effective rank.

    Attributes
    ----------
    lower, upper : Certificate
        Both ends, with their proofs.
    interrupted : bool
        True if Ctrl-C ended the search; the interval is valid all the same.
    explanation : tuple of str
        Sentences: the share of each method in both ends, the component with the widest gap, and
        why the search stopped there.
    tensor : SparseTensor or None
        The tensor whose rank this is; None for an interval that was put together by hand.
    """

    lower: Certificate
    upper: Certificate
    interrupted: bool = False
    explanation: tuple[str, ...] = ()
    tensor: SparseTensor | None = field(default=None, compare=False)

    @property
    def closed(self) -> bool:
        """True if both ends are equal, so that the rank is known."""
        return self.lower.value == self.upper.value

    def uninterrupted(self) -> RankInterval:
        """Return the interval itself, for work that an interrupted search must end.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C ended the search.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        return self

    def __contains__(self, rank: int) -> bool:
        return self.lower.value <= rank <= self.upper.value

    def __repr__(self) -> str:
        known = "known exactly" if self.closed else "certified"
        return (
            f"RankInterval({self}, {known}; lower by {visible(self.lower.by[:60])}, upper by "
            f"{visible(self.upper.by[:60])}{'; interrupted' if self.interrupted else ''})"
        )

    def _repr_html_(self) -> str:
        rows = [("at least", f"{self.lower.value:,}, by {self.lower.by}"),
                ("at most", f"{self.upper.value:,}, by {self.upper.by}"),
                *(("", line) for line in self.explanation)]  # fmt: skip
        return table(f"{self.lower.quantity.replace('_', ' ')} in {self}", rows)

    def __str__(self) -> str:
        return f"[{self.lower.value}, {self.upper.value}]"

    def decomposition(self) -> Factors:
        """Return the simple tensors that prove the upper end.

        For the effective rank they add up to a tensor that agrees with this one on the observed
        fibers.

        Raises
        ------
        InvalidArgumentError
            If the upper end rests on an argument without terms: a pencil, a diagonalization, a fit
            with an exact decomposition near it, or a theorem; or if `tensor` is None.

        Examples
        --------
        >>> from capacity import rank_interval
        >>> from capacity.tensor import w_state
        >>> factors = rank_interval(w_state(3)).decomposition()
        >>> [matrix.tolist() for matrix in factors.matrices]
        [[[1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 0]], [[1, 1, 0], [0, 0, 1]]]
        """
        if self.tensor is None:
            raise InvalidArgumentError(
                "`decomposition` needs an interval that a search has found; this one has no tensor."
            )
        return factors_of(self.upper.arguments, self.tensor)

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as ``capacity rank --json`` prints it."""
        return {
            "lower": self.lower.value,
            "upper": self.upper.value,
            "closed": self.closed,
            "lower_by": self.lower.by,
            "upper_by": self.upper.by,
        }
