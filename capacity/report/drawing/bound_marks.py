"""Bounds of a rank as marks on a line, each with a sentence that explains it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capacity.rank.bounds import Bounds
from capacity.rank.interval import RankInterval
from capacity.rank.verifier.argument import Side

_ROLES = ("subject", "predicate", "object")


@dataclass(frozen=True)
class BoundMark:
    """A bound on the line from 0 to the largest one.

    Attributes
    ----------
    name : str
        Its identifier within the page.
    number : int
        Its place on the line, counted from 1.
    side : {'lower', 'upper'}
        Whether the rank is at least or at most so large.
    value : int
        The bound.
    at : float
        Its position, in percent of the line.
    title, says : str
        What proves it, in a few words and in a sentence.
    """

    name: str
    number: int
    side: Side
    value: int
    at: float
    title: str
    says: str


def bound_marks(bounds: Bounds, interval: RankInterval) -> tuple[BoundMark, ...]:
    """Place the bounds of a database's rank on a line, the smallest first.

    Parameters
    ----------
    bounds : Bounds
        Those that need no search, of triples.
    interval : RankInterval
        Both certified ends.

    Returns
    -------
    tuple of BoundMark
        Three unfoldings and the lower end; three sums of slices, the paper's count, the number of
        triples, and the upper end.
    """
    found = sorted(_bounds(bounds, interval), key=lambda one: (one[2], one[1] == "upper"))
    most = max(value for _, _, value, _, _ in found)
    return tuple(
        BoundMark(name, number, side, value, round(100 * value / most, 3), title, says)
        for number, (name, side, value, title, says) in enumerate(found, start=1)
    )


def _bounds(bounds: Bounds, interval: RankInterval) -> Iterator[tuple[str, Side, int, str, str]]:
    for role, rank, ranks in zip(_ROLES, bounds.unfoldings, bounds.slices, strict=True):
        yield (
            f"unfolding.{role}", "lower", rank, f"the unfolding by {role}s",
            f"The facts as a matrix with a row for each {role} have the rank {rank:,}, and a sum "
            "of fewer terms than that has a smaller one.",
        )  # fmt: skip
        yield (
            f"slices.{role}", "upper", ranks, f"the {role} slices",
            f"Each {role} has a matrix of its facts; the ranks of these matrices add up to "
            f"{ranks:,}, and that number of terms adds up to all of them.",
        )  # fmt: skip
    yield (
        "paper", "upper", bounds.paper, "the paper's count",
        "Proposition 2.1 of Wong 2025 counts the objects of each subject, or of each predicate, "
        f"and takes the smaller sum: {bounds.paper:,}.",
    )  # fmt: skip
    yield (
        "triples", "upper", bounds.triples, "the facts",
        f"Each of the {bounds.triples:,} facts is a term of its own.",
    )  # fmt: skip
    for certificate, word in zip(interval.certificates, ("below", "above"), strict=True):
        yield (
            f"certified.{certificate.side}", certificate.side, certificate.value,
            f"certified, by {certificate.by}",
            f"The best bound from {word} that was found, by {certificate.by}, with a certificate.",
        )  # fmt: skip
