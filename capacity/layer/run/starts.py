"""Random starts of a training: how many, until when, and what came of them. No torch in here.

One start decides nothing about what a layer can hold: training fails from some draws of the
initial weights and succeeds from others. A layer *reaches* a database if some start holds it, which
is a lower end of what it can hold; the share of starts that do is its *reliability*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from capacity.checks import require_choice, require_integer, with_known_options
from capacity.display import briefly_shown
from capacity.layer.recall.threshold import Threshold, check_threshold

Until: TypeAlias = Literal["all", "held"]

MAX_STARTS = 10_000


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class Starts:
    """Starts to train from, each with weights and an order of facts of its own.

    Parameters
    ----------
    most : int
        Largest number of starts; at most 10,000.
    until : {'all', 'held'}
        'held': no further start after the first that holds the database.
    held_at : float, 'argmax' or 'argmax_paper'
        Threshold at which a start must recall every fact to hold the database.

    Raises
    ------
    InvalidArgumentError
        For a value out of its range.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> Starts(8, "held").is_over(NOT_TRIED.then(0.9).then(1.0))
    True
    """

    most: int = 1
    until: Until = "all"
    held_at: Threshold = 0.95

    def __post_init__(self) -> None:
        most = require_integer("starts", self.most, most=MAX_STARTS)
        object.__setattr__(self, "most", most)
        require_choice("`until`", self.until, get_args(Until))
        check_threshold(self.held_at)
        if not isinstance(self.held_at, str):
            object.__setattr__(self, "held_at", float(self.held_at))

    def is_over(self, tried: TriedStarts) -> bool:
        """Return True if no further start is to be trained after these."""
        return tried.tried >= self.most or (self.until == "held" and tried.held > 0)


@briefly_shown
@dataclass(frozen=True)
class TriedStarts:
    """Outcome of some starts.

    Attributes
    ----------
    start : int
        Number of the start that is kept, from 0: the first that holds the database, or else the
        first of those that recall most facts.
    tried, held : int
        Numbers of starts that were trained, and of those that hold the database.
    recalled : float
        Share of the facts that the kept start recalls; -1 if it diverged.
    """

    start: int
    tried: int
    held: int
    recalled: float

    @property
    def share(self) -> float:
        """Share of the starts that hold the database, their reliability."""
        return self.held / self.tried

    def then(self, recalled: float) -> TriedStarts:
        """Return the outcome after one more start, which recalls a share of the facts.

        Parameters
        ----------
        recalled : float
            Share of the facts; NaN if training diverged.
        """
        recalled = -1.0 if math.isnan(recalled) else recalled
        held = self.held + (recalled == 1)
        if recalled > self.recalled:
            return TriedStarts(self.tried, self.tried + 1, held, recalled)
        return TriedStarts(self.start, self.tried + 1, held, self.recalled)


ONE_START = Starts()
NOT_TRIED = TriedStarts(0, 0, 0, -math.inf)
