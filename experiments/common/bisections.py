"""Parts that bisections of the size of a database share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from capacity.rank import paper_bound
from capacity.sweep import Run, train_run


def share_held(count: int, is_held: Callable[[int], bool]) -> float:
    """Share of databases that are held, each asked for by its number from 0.

    They are tried until half of `count` are held, or so many aren't that half can't be.
    """
    done: list[bool] = []
    while 2 * sum(done) < count and 2 * (len(done) - sum(done)) <= count:
        done.append(is_held(len(done)))
    return float(np.mean(done))


def row_without_search(run: Run) -> dict[str, Any]:
    """The row of a run, with the paper's bound as the only one of its database's rank."""
    return trained_without_search(run)[0]


def trained_without_search(run: Run) -> tuple[dict[str, Any], Any]:
    """The row of a run, with the paper's bound as the only one of its database's rank; its layer.

    To search for others takes longer than the training.
    """
    bound = paper_bound(run.database)
    ranks = {"database_rank_bound": bound, "database_rank_lower": 1, "database_rank_upper": bound}
    return train_run(run, ranks=ranks)
