"""Certified intervals: the best lower and upper bound of a database's rank, and what each rests on.

The rank of D is at most the sum of the ranks of its components, and in each component the smallest
sum of slice ranks serves. Unfolding ranks add over components, each in its own best mode: the
unfoldings of a direct sum, mixed so, still bound the rank from below, since substitution removes a
component's rank from the sum one slice at a time. (Other lower bounds do not add: Shitov's
counterexample to Strassen's additivity conjecture.)

The *effective rank* is the lowest rank of a tensor that agrees with D on the observed fibers
D[k, q, :] (Wong 2025, section 2.1). It is at most the rank, and at least the rank of the observed
fibers as vectors, that is of the object unfolding: the number of objects, on functional data. It is
not additive over components, and no sum over them is taken for it.

References
----------
Wong 2025, Proposition 2.1 and section 2.1; B. Alexeev, M. Forbes, J. Tsimerman, Tensor rank: some
lower and upper bounds, CCC 2011 (substitution); Y. Shitov, Counterexamples to Strassen's direct sum
conjecture, Acta Math. 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.rank.bounds import Bounds, database_bounds
from capacity.rank.certificate import Certificate, Kind, Part, Quantity, Side

Effort: TypeAlias = Literal["quick", "standard", "thorough"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True)
class RankInterval:
    """A certified interval [lower, upper] that contains the rank, or the effective rank.

    Attributes
    ----------
    lower, upper : Certificate
    """

    lower: Certificate
    upper: Certificate

    @property
    def closed(self) -> bool:
        """Whether the two ends meet, so that the rank is known."""
        return self.lower.value == self.upper.value

    def __contains__(self, rank: int) -> bool:
        return self.lower.value <= rank <= self.upper.value

    def __str__(self) -> str:
        return f"[{self.lower.value}, {self.upper.value}]"

    def to_dict(self) -> dict[str, Any]:
        """Write the interval as the command line prints it."""
        return {
            "lower": self.lower.value,
            "upper": self.upper.value,
            "closed": self.closed,
            "lower_by": self.lower.kind,
            "upper_by": self.upper.kind,
        }


def rank_interval(
    db: Database, *, effort: Effort = "quick", computed: Bounds | None = None
) -> RankInterval:
    """Bound the rank of a database from both sides, with certificates.

    Parameters
    ----------
    db : Database
        Functional or not.
    effort : {'quick', 'standard', 'thorough'}
        How much work to spend. The bounds there are so far take the same at each.
    computed : Bounds, optional
        What `database_bounds` gave for this database, if it is at hand.

    Returns
    -------
    RankInterval

    Raises
    ------
    ValueError
        For an unknown effort.
    MemoryBudgetError
        As `database_bounds` does.

    Examples
    --------
    >>> facts = [(k, q, "v") for k in "abc" for q in "pq"]
    >>> print(rank_interval(Database.from_triples(facts)))
    [1, 1]
    """
    _check_effort(effort)
    b = computed or database_bounds(db)
    lower = _certificate(db, "rank", "lower", "unfolding", b, b.unfoldings_by_component, "max")
    upper = _certificate(db, "rank", "upper", "slices", b, b.slices_by_component, "min")
    return RankInterval(lower, upper)


def effective_rank_interval(
    db: Database, *, effort: Effort = "quick", computed: Bounds | None = None
) -> RankInterval:
    """Bound the effective rank of a database from both sides, with certificates.

    Parameters, returns and errors as in `rank_interval`.

    Examples
    --------
    Example 2.4 of the paper has rank 5 and effective rank 1:

    >>> facts = [(k, q, "v") for k, q in zip("abcde", "fghij")]
    >>> print(effective_rank_interval(Database.from_triples(facts)))
    [1, 5]
    """
    _check_effort(effort)
    b = computed or database_bounds(db)
    fibers = b.unfoldings[2]
    lower = Certificate(
        "effective_rank", "lower", "unfolding", fibers,
        (Part(0, db.n_triples, 2, fibers),), db.facts_sha256, db.multi,
    )  # fmt: skip
    upper = _certificate(db, "effective_rank", "upper", "slices", b, b.slices_by_component, "min")
    return RankInterval(lower, upper)


def _check_effort(effort: str) -> None:
    if effort not in EFFORTS:
        raise ValueError(f"`effort` must be one of {', '.join(EFFORTS)}; got {effort!r}.")


def _certificate(
    db: Database,
    quantity: Quantity,
    side: Side,
    kind: Kind,
    b: Bounds,
    by_mode: NDArray[np.int64],
    best: Literal["min", "max"],
) -> Certificate:
    modes = by_mode.argmin(axis=1) if best == "min" else by_mode.argmax(axis=1)
    values = by_mode[np.arange(len(modes)), modes]
    columns = (b.first_facts, b.n_facts, modes, values)
    parts = tuple(Part(*row) for row in zip(*(c.tolist() for c in columns), strict=True))
    return Certificate(quantity, side, kind, int(values.sum()), parts, db.facts_sha256, db.multi)
