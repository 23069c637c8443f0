"""`RankInterval`: a certified interval of the rank or of the effective rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capacity.display import table
from capacity.rank.verifier.certificate import Certificate


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
    """

    lower: Certificate
    upper: Certificate
    interrupted: bool = False
    explanation: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """True if both ends are equal, so that the rank is known."""
        return self.lower.value == self.upper.value

    def __contains__(self, rank: int) -> bool:
        return self.lower.value <= rank <= self.upper.value

    def __repr__(self) -> str:
        known = "known exactly" if self.closed else "certified"
        return (
            f"RankInterval({self}, {known}; lower by {self.lower.by:.60}, upper by "
            f"{self.upper.by:.60}{'; interrupted' if self.interrupted else ''})"
        )

    def _repr_html_(self) -> str:
        rows = [("at least", f"{self.lower.value:,}, by {self.lower.by}"),
                ("at most", f"{self.upper.value:,}, by {self.upper.by}"),
                *(("", line) for line in self.explanation)]  # fmt: skip
        return table(f"{self.lower.quantity.replace('_', ' ')} in {self}", rows)

    def __str__(self) -> str:
        return f"[{self.lower.value}, {self.upper.value}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as ``capacity rank --json`` prints it."""
        return {
            "lower": self.lower.value,
            "upper": self.upper.value,
            "closed": self.closed,
            "lower_by": self.lower.by,
            "upper_by": self.upper.by,
        }
