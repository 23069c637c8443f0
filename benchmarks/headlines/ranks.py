"""Quick bounds of each family of databases, beside a loop of Python and small numpy operations."""

from __future__ import annotations

from functools import partial

from interval_width import FAMILIES

from capacity.database import Database, random_database
from capacity.rank import rank_interval
from headlines.figure import Figure, calibration, ratio

COUNT, REPEATS = 20, 3


def random(seed: int) -> Database:
    """A database of the paper's kind."""
    return random_database(seed, triples=(4, 200))


def quick_bounds(family: str) -> float:
    """Mean seconds of `rank_interval` at effort quick, in units of the loop's."""
    make = FAMILIES.get(family, random)
    databases = [make(seed) for seed in range(COUNT)]

    def bound() -> None:
        for db in databases:
            rank_interval(db)

    return ratio(bound, calibration, repeats=REPEATS) / COUNT


FIGURES = {
    f"quick bounds, {family}": Figure(
        "ratio", "calibration loop, a database", partial(quick_bounds, family)
    )
    for family in ("random", *FAMILIES)
}
