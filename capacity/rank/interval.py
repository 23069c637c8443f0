"""Certified intervals: the best lower and upper bound of a database's rank, and what each rests on.

Bounds are found component by component, where each adds (`capacity.rank.verify` says which do): an
unfolding in the mode that suits the component, or moves of the substitution game, from below;
slices in the best mode, or a spanning tree over them, from above. The next stronger method is
asked only where a component's interval is still open and its tensor is small.

The *effective rank* is the lowest rank of a tensor that agrees with D on the observed fibers D[k,
q, :] (Wong 2025, section 2.1). It is at most the rank. It is not additive over components, so one
argument has to do: the rank of the observed fibers, which is the number of objects on functional
data, or the game on the whole tensor with the unobserved fibers unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.tensor import MODES
from capacity.errors import InvalidArgumentError
from capacity.rank.bounds import Bounds, database_bounds, unfolding_minor
from capacity.rank.certificate import Argument, Boxes, Certificate, Koszul, Side, Substitution
from capacity.rank.effective import merged_arguments
from capacity.rank.factor import Term
from capacity.rank.flattening import best_projection
from capacity.rank.independent import independent_set_minors
from capacity.rank.slices import as_arguments, lifted, sliced, spanning_tree_terms
from capacity.rank.substitution import greedy_moves

Indices = NDArray[np.int64]
Effort: TypeAlias = Literal["quick", "standard", "thorough"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
# searches a component (or, for the effective rank, a database) is given: their number at most, and
# what they may cost together, in entries of the dense tensor times slices that could be removed
SEARCHES: dict[Effort, int] = {"quick": 8, "standard": 100, "thorough": 1000}
FLATTENINGS: dict[Effort, int] = {"quick": 1, "standard": 5, "thorough": 20}
PRIME = 2**61 - 1
WORK: dict[Effort, int] = {"quick": 10**7, "standard": 10**9, "thorough": 10**10}


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
            "lower_by": self.lower.by,
            "upper_by": self.upper.by,
        }


def rank_interval(
    db: Database, *, effort: Effort = "quick", seed: int = 0, computed: Bounds | None = None
) -> RankInterval:
    """Bound the rank of a database from both sides, with certificates.

    Parameters
    ----------
    db : Database
        Functional or not.
    effort : {'quick', 'standard', 'thorough'}
        How much work to spend on components that are still open, counted in steps and not in
        seconds: the same on every machine.
    seed : int
        Of the search.
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
    lower_modes = b.unfoldings_by_component.argmax(axis=1)
    upper_modes = b.slices_by_component.argmin(axis=1)
    lower, upper = b.unfoldings_by_component.max(axis=1), b.slices_by_component.min(axis=1)
    lower_by, upper_by = "unfolding", "slices"
    order = np.argsort(b.component, kind="stable")
    facts_of = np.split(order, np.cumsum(np.bincount(b.component))[:-1])
    trees: list[Term] = []
    played_moves: list[Argument] = []
    movers: list[int] = []
    played, treed = np.zeros(len(lower), bool), np.zeros(len(lower), bool)
    for c in np.flatnonzero(lower < upper).tolist():
        part = _Part.of(db, facts_of[c])
        games = _searches(part.shape, effort)
        if not games:
            continue
        found = [t for m in MODES if (t := spanning_tree_terms(part.tensor, m)) is not None]
        tree = min(found, key=len, default=None)
        if tree is not None and len(tree) < upper[c]:
            upper[c], treed[c], upper_by = len(tree), True, "spanning tree"
            trees += lifted(tree, part.indices)
        if lower[c] == upper[c]:
            continue
        known = np.ones(part.tensor.shape, bool)
        moves = greedy_moves(part.tensor != 0, known, games=games, seed=seed, target=int(upper[c]))
        if len(moves) > lower[c]:
            lower[c], played[c], lower_by = len(moves), True, "substitution"
            played_moves.append(Substitution(part.lifted_moves(moves)))
            movers.append(c)
    strong = _flattening(db, facts_of, lower, upper, effort, seed)
    if strong is not None:
        c, argument = strong
        played[c], lower_by = True, "Koszul flattening"
        played_moves = [m for m, of in zip(played_moves, movers, strict=True) if of != c]
        played_moves.append(argument)
        lower[c] = argument.value
    sets: tuple[Argument, ...] = ()
    if (lower < upper).any():
        sets, gained = independent_set_minors(db, b.component, lower, np.flatnonzero(~played))
        if len(gained):
            lower_by = "independent sets" if lower_by == "unfolding" else lower_by
            played[gained] = True
    minors = [
        unfolding_minor(
            db, mode, np.flatnonzero(~played[b.component] & (lower_modes[b.component] == mode))
        )
        for mode in MODES
    ]
    arguments = (*sets, *(m for m in minors if m is not None), *played_moves)
    box, terms = sliced(db, upper_modes, b.component, np.flatnonzero(~treed[b.component]))
    boxes = (Boxes(box),) if (box >= 0).any() else ()
    return RankInterval(
        _certificate(db, "lower", lower_by, arguments),
        _certificate(db, "upper", upper_by, (*boxes, *as_arguments(terms + trees))),
    )


def effective_rank_interval(
    db: Database, *, effort: Effort = "quick", seed: int = 0, computed: Bounds | None = None
) -> RankInterval:
    """Bound the effective rank of a database from both sides, with certificates.

    Parameters, returns and errors as in `rank_interval`.

    Examples
    --------
    Example 2.4 of the paper has rank 5 and effective rank 1:

    >>> facts = [(k, q, "v") for k, q in zip("abcde", "fghij")]
    >>> print(effective_rank_interval(Database.from_triples(facts)))
    [1, 1]
    """
    _check_effort(effort)
    upper = rank_interval(db, effort=effort, seed=seed, computed=computed).upper
    arguments, by = upper.arguments, upper.by
    searches = _searches(db.shape, effort)
    if db.is_functional:
        rng = np.random.default_rng(seed)
        for _ in range(searches):
            candidate = merged_arguments(db, rng)
            if sum(a.value for a in candidate) < sum(a.value for a in arguments):
                arguments, by = candidate, "merging"
    best: Argument | None = unfolding_minor(db, 2, np.arange(db.n_triples))
    assert best is not None
    lower_by = "unfolding"
    if searches and best.value < sum(a.value for a in arguments):
        values = db.to_numpy(np.bool_)
        known = np.broadcast_to(values.any(axis=2, keepdims=True), values.shape)
        moves = greedy_moves(values, known, games=searches, seed=seed)
        if len(moves) > best.value:
            best, lower_by = Substitution(moves), "substitution"
    return RankInterval(
        _certificate(db, "lower", lower_by, (best,), effective=True),
        _certificate(db, "upper", by, arguments, effective=True),
    )


def _flattening(
    db: Database,
    facts_of: list[Indices],
    lower: Indices,
    upper: Indices,
    effort: Effort,
    seed: int,
) -> tuple[int, Koszul] | None:
    """The component whose lower bound a Koszul flattening raises most, and the argument."""
    best: tuple[int, Koszul] | None = None
    gain = 0
    for c in np.flatnonzero(upper - lower > 0).tolist():
        part = _Part.of(db, facts_of[c])
        if not _searches(part.shape, effort):
            continue
        found = best_projection(part.tensor, tries=FLATTENINGS[effort], seed=seed, prime=PRIME)
        if found is not None and found[0] - lower[c] > gain:
            gain = found[0] - int(lower[c])
            value, mode, projection = found
            best = (c, Koszul(*part.indices, mode, projection, PRIME, value))
    return best


def _searches(shape: tuple[int, int, int], effort: Effort) -> int:
    """How many searches a tensor of this shape is given; none if it is too large for one."""
    return min(SEARCHES[effort], WORK[effort] // (math.prod(shape) * sum(shape)))


def _check_effort(effort: str) -> None:
    if effort not in EFFORTS:
        raise InvalidArgumentError(f"`effort` must be one of {', '.join(EFFORTS)}; got {effort!r}.")


def _certificate(
    db: Database, side: Side, by: str, arguments: tuple[Argument, ...], *, effective: bool = False
) -> Certificate:
    quantity = "effective_rank" if effective else "rank"
    value = sum(argument.value for argument in arguments)
    return Certificate(quantity, side, value, by, arguments, db.facts_sha256, db.multi)


@dataclass(frozen=True)
class _Part:
    """The dense tensor of some facts, and the indices of the whole that it is made of."""

    shape: tuple[int, int, int]
    places: Indices
    indices: tuple[Indices, Indices, Indices]

    @classmethod
    def of(cls, db: Database, facts: Indices) -> _Part:
        triples = db.triples[facts].astype(np.int64)
        k, q, v = (np.unique(triples[:, mode]) for mode in MODES)
        places = np.stack(
            [np.searchsorted(of, triples[:, m]) for m, of in enumerate((k, q, v))], axis=1
        )
        return cls((len(k), len(q), len(v)), places, (k, q, v))

    @property
    def tensor(self) -> NDArray[np.int8]:
        dense = np.zeros(self.shape, np.int8)
        dense[tuple(self.places.T)] = 1
        return dense

    def lifted_moves(self, moves: Indices) -> Indices:
        """Moves in the part as moves in the whole."""
        offsets = np.cumsum([0, *self.shape])
        whole = np.concatenate(self.indices)[offsets[moves[:, 0]] + moves[:, 1]]
        return np.stack([moves[:, 0], whole], axis=1)
