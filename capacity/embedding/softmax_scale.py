"""Scales of scores at which answers reach a probability: why nobody should use two dimensions.

Scores are <h, e_o> with |h| |e_o| <= R for every query and each of n objects; a of the objects are
the only answer of some query, whose softmax is at least tau there. Let gamma = ln(tau / (1 - tau)),
which the answer must be ahead of each other object, and Gamma = gamma + ln(n - 1).

Necessary: as <h, e_o - e_o'> >= gamma, the answers' e_o are gamma / |h| apart. Balls of half that
radius are disjoint, within a ball of radius |e| + gamma / (2 |h|), so a <= (1 + 2 R / gamma)^d. And
2 R >= Gamma, for the others have scores of at least -R.

Enough: unit vectors with <e_o, e_o'> <= mu < 1 and h = R e_o have the margin R (1 - mu) >= Gamma.
Such are n points on a circle, points on several circles at once, vectors of signs at random, and
the vertices of a simplex.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capacity.checks import require_integer
from capacity.display import briefly_shown
from capacity.embedding.queries import QueryGraph
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import distinct

DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256)


@briefly_shown
@dataclass(frozen=True)
class Margin:
    """The largest score |h| |e| that a dimension takes.

    Attributes
    ----------
    dimension : int
        The dimension d.
    necessary : float
        No smaller R does, by packing and by the softmax of equal scores.
    enough : float
        An R that does, by the vectors of `by`.
    by : str
        The vectors.
    """

    dimension: int
    necessary: float
    enough: float
    by: str


def margins(
    n_objects: int,
    tau: float = 0.95,
    dimensions: Iterable[int] = DIMENSIONS,
    *,
    answers: int | None = None,
) -> tuple[Margin, ...]:
    """Bound the scale of scores at which answers reach a probability, for each dimension.

    Parameters
    ----------
    n_objects : int
        Number n of objects that a query chooses from, 2 at least.
    tau : float
        The probability, above 1/2 and below 1.
    dimensions : iterable of int
        Dimensions d, from 2.
    answers : int, optional
        Number a of objects that are the only answer of some query; all if omitted.

    Returns
    -------
    tuple of Margin
        One for each dimension.

    Raises
    ------
    InvalidArgumentError
        If an argument is out of range.

    Examples
    --------
    Two dimensions rank any number of answers, by scores in the millions:

    >>> for one in margins(3155, dimensions=[2, 16, 128]):
    ...     print(one.dimension, round(one.necessary, 1), round(one.enough), one.by)
    2 81.2 5547483 a circle
    16 5.5 59 8 circles
    128 5.5 22 signs at random
    """
    n = require_integer("n_objects", n_objects, least=2)
    a = n if answers is None else require_integer("answers", answers, most=n)
    if not isinstance(tau, float) or not 0.5 < tau < 1:
        raise InvalidArgumentError(f"`tau` must be above 1/2 and below 1; got {tau!r}.")
    if not isinstance(dimensions, Iterable):
        raise InvalidArgumentError(f"`dimensions` must be several integers; got {dimensions!r}.")
    each = [require_integer("dimensions", d, least=2) for d in dimensions]
    return tuple(_margin(n, a, tau, d) for d in each)


def margins_of(graph: QueryGraph, tau: float = 0.95) -> tuple[Margin, ...]:
    """Bound the scale of scores at which the single answers of a graph reach a probability.

    Parameters
    ----------
    graph : QueryGraph
        The facts; a query with several answers is asked for nothing.
    tau : float
        The probability, above 1/2 and below 1.

    Returns
    -------
    tuple of Margin
        One for each of eight dimensions; none if no query has a single answer, or all have the
        only object.

    Raises
    ------
    InvalidArgumentError
        If `tau` is out of range.

    Examples
    --------
    >>> from capacity import Database
    >>> graph = QueryGraph.of(Database.from_triples([("a", "r", "b"), ("b", "r", "c")]))
    >>> print(margins_of(graph)[0])
    Margin(dimension=2, necessary=1.818..., enough=2.425..., by='a simplex')
    """
    single = graph.answers[graph.query_of] == 1
    answers = len(distinct(graph.placed[single, 2]))
    objects = graph.places[2]
    if not answers or objects < 2:
        return ()
    return margins(objects, tau, answers=answers)


def _margin(n: int, a: int, tau: float, d: int) -> Margin:
    gamma = math.log(tau / (1 - tau))
    total = gamma + math.log(n - 1)
    necessary = max(total / 2, gamma / 2 * (a ** (1 / d) - 1))
    gap, by = max(_gaps(n, d))
    return Margin(d, necessary, total / gap, by)


def _gaps(n: int, d: int) -> Iterator[tuple[float, str]]:
    """Yield 1 - mu of n unit vectors, and their names."""
    # two points a circle are the fewest
    for circles in range(1, min(d // 2, math.ceil(math.log2(n))) + 1):
        points = max(2, math.floor(n ** (1 / circles)))
        points += points**circles < n
        name = "a circle" if circles == 1 else f"{circles} circles"
        yield (1 - math.cos(2 * math.pi / points)) / circles, name
    # a pair of random signs exceeds mu with less probability than exp(-d mu^2 / 2) (Hoeffding 1963)
    mu = math.sqrt(2 * math.log(max(2, n * (n - 1) / 2)) / d)
    if mu < 1:
        yield 1 - mu, "signs at random"
    if d >= n - 1:
        yield 1 + 1 / (n - 1), "a simplex"
