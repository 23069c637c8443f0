"""Work that a search may do, counted so that a seed gives the same result on any machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Work:
    """Work that remains, in units of about a nanosecond."""

    left: int

    def spend(self, steps: int) -> bool:
        """Charge some work; return False if that was more than was left."""
        self.left -= steps
        return self.left >= 0

    def share(self, most: int) -> Work:
        """Set some work aside, at most what is left; `back` returns what remains of it."""
        part = Work(max(0, min(most, self.left)))
        self.left -= part.left
        return part

    def back(self, part: Work) -> None:
        """Take back what remains of a share; what it has overdrawn is charged."""
        self.left += part.left
