"""Certified intervals: the best lower and upper bound of a database's rank, and what each rests on.

Bounds that scale come first: unfoldings and independent sets from below, slices from above, each
component in the mode that suits it. Where the interval of a component is still open and its tensor
is small, `capacity.rank.search.component_search` goes on, as far as the effort allows: spanning
trees over the slices of the concise core, the substitution game, the exact rank of two slices,
Koszul flattenings, flip graphs, numerical fits made exact, annealing.

The *effective rank* is the lowest rank of a tensor that agrees with D on the observed fibers D[k,
q, :] (Wong 2025, section 2.1). It is at most the rank. From below it has the rank of the observed
fibers, which is the number of objects on functional data, and the game with the unobserved fibers
unknown; from above the rank's decompositions, those of merged subjects and predicates, and shorter
ones that ignore the unobserved fibers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from capacity.database.facts import Database
from capacity.database.tensor import is_complete
from capacity.errors import InvalidArgumentError
from capacity.rank.bounds import Bounds, database_bounds
from capacity.rank.effort import Effort, checked_seed, require_effort
from capacity.rank.search.component_search import Progress, Search
from capacity.rank.search.effective_search import EffectiveSearch
from capacity.rank.verifier.argument import Argument, Side
from capacity.rank.verifier.certificate import Certificate, Quantity

INTERRUPTED = ("interrupted before the search was over",)


@dataclass(frozen=True)
class RankInterval:
    """A certified interval [lower, upper] that contains the rank, or the effective rank.

    Attributes
    ----------
    lower, upper : Certificate
    interrupted : bool
        Whether the search was ended by Ctrl-C. The interval holds all the same.
    explanation : tuple of str
        In words: which methods give how much of each end; of what is open the widest part, and
        what stopped it.
    """

    lower: Certificate
    upper: Certificate
    interrupted: bool = False
    explanation: tuple[str, ...] = ()

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
            "lower_by": self.lower.by,
            "upper_by": self.upper.by,
        }


def rank_interval(
    db: Database,
    *,
    effort: Effort = "quick",
    seed: int = 0,
    computed: Bounds | None = None,
    progress: Progress | None = None,
) -> RankInterval:
    """Bound the rank of a database from both sides, with certificates.

    Ctrl-C ends the search and returns the best interval so far; a second one is an interrupt as
    usual.

    Parameters
    ----------
    db : Database
        Functional or not.
    effort : {'quick', 'standard', 'thorough'}
        How much work to spend on components that are still open, counted in steps and not in
        seconds. On small data about a second, half a minute, minutes. The same seed gives the same
        interval on any machine, but for numerical fits (from `standard` on), where the last bits
        of floating point can decide whether one is found.
    seed : int
        Of the search.
    computed : Bounds, optional
        What `database_bounds` gave for this database, if it is at hand.
    progress : callable, optional
        Called with the interval so far, and what is tried next: ``progress(lower, upper, what)``.

    Returns
    -------
    RankInterval

    Raises
    ------
    ValueError
        For an unknown effort, a seed that is no integer from 0 to 2^32 - 1, or bounds of another
        database.
    MemoryBudgetError
        As `database_bounds` does.

    Examples
    --------
    >>> facts = [(k, q, "v") for k in "abc" for q in "pq"]
    >>> interval = rank_interval(Database.from_triples(facts))
    >>> print(interval)
    [1, 1]
    >>> interval.explanation
    ('at least 1: 1 by unfolding', 'at most 1: 1 by slices')
    """
    require_effort(effort)
    seed = checked_seed(seed)
    search = Search(db, _bounds(db, computed), effort, seed, progress)
    interrupted = False
    try:
        search.run()
    except KeyboardInterrupt:
        interrupted = True
    return RankInterval(
        _certificate(db, "rank", "lower", *search.lower_arguments()),
        _certificate(db, "rank", "upper", *search.upper_arguments()),
        interrupted,
        search.explanation() + INTERRUPTED * interrupted,
    )


def effective_rank_interval(
    db: Database,
    *,
    effort: Effort = "quick",
    seed: int = 0,
    computed: Bounds | None = None,
    rank: RankInterval | None = None,
    progress: Progress | None = None,
) -> RankInterval:
    """Bound the effective rank of a database from both sides, with certificates.

    Parameters, returns and errors as in `rank_interval`, and:

    Parameters
    ----------
    rank : RankInterval, optional
        The interval of the rank, whose upper end holds here too, if it is at hand.

    Examples
    --------
    Example 2.4 of the paper has rank 5 and effective rank 1:

    >>> facts = [(k, q, "v") for k, q in zip("abcde", "fghij")]
    >>> print(effective_rank_interval(Database.from_triples(facts)))
    [1, 1]
    """
    require_effort(effort)
    seed = checked_seed(seed)
    bounds = _bounds(db, computed)
    if rank is None:
        rank = rank_interval(db, effort=effort, seed=seed, computed=bounds, progress=progress)
    mine = ("rank", db.facts_sha256, db.multi)
    if (rank.upper.quantity, rank.upper.facts_sha256, rank.upper.multi) != mine:
        raise InvalidArgumentError(
            "`rank` must be what `rank_interval` gave for this database; got an interval of the "
            f"{rank.upper.quantity} of facts {rank.upper.facts_sha256[:12]} with "
            f"multi={rank.upper.multi}."
        )
    if is_complete(db):
        return replace(
            rank,
            lower=replace(rank.lower, quantity="effective_rank"),
            upper=replace(rank.upper, quantity="effective_rank"),
            explanation=(*rank.explanation, "every pair has an object: this is the rank"),
        )
    search = EffectiveSearch(db, bounds, rank.upper, effort, seed, progress)
    interrupted = rank.interrupted
    try:
        if not interrupted:
            search.run()
    except KeyboardInterrupt:
        interrupted = True
    return RankInterval(
        _certificate(db, "effective_rank", "lower", *search.lower_arguments()),
        _certificate(db, "effective_rank", "upper", *search.upper),
        interrupted,
        search.explanation() + INTERRUPTED * interrupted,
    )


def raised(rank: RankInterval, effective: RankInterval) -> RankInterval:
    """The interval of the rank, raised to the effective rank's lower end if that is larger.

    What bounds the effective rank from below bounds the rank: a game that goes without the
    unobserved fibers goes with them.
    """
    if effective.lower.value <= rank.lower.value:
        return rank
    lower = effective.lower
    certificate = replace(lower, quantity="rank")
    first = f"at least {lower.value:,}: as the effective rank is, by {lower.by}"
    # what was said of the widest component no longer holds
    left = (f"open: [{lower.value:,}, {rank.upper.value:,}]",)
    still_open = left if lower.value < rank.upper.value else ()
    explanation = (first, *rank.explanation[1:2], *still_open, *INTERRUPTED * rank.interrupted)
    return replace(rank, lower=certificate, explanation=explanation)


def _bounds(db: Database, computed: Bounds | None) -> Bounds:
    """The bounds that are at hand, if they are this database's."""
    if computed is None:
        return database_bounds(db)
    if computed.facts_sha256 != db.facts_sha256:
        raise InvalidArgumentError(
            "`computed` must be what `database_bounds` gave for this database, of facts "
            f"{db.facts_sha256[:12]}; got bounds of {computed.facts_sha256[:12]}."
        )
    return computed


def _certificate(
    db: Database, quantity: Quantity, side: Side, arguments: tuple[Argument, ...], by: str
) -> Certificate:
    value = sum(argument.value for argument in arguments)
    return Certificate(quantity, side, value, by, arguments, db.facts_sha256, db.multi)
