"""Facts without reverses, which no symmetric scores can rank (`embedding.graphs.one_way`)."""

from __future__ import annotations

import numpy as np

from capacity.embedding.graphs.one_way import Obstruction
from capacity.embedding.tasks import Task
from capacity.embedding.verifier.numbered_facts import LOOKUP, Facts
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import require


def check_obstruction(one: Obstruction, task: Task, placed: Facts, budget: CheckBudget) -> None:
    """End the check unless facts stop symmetric scores from a task.

    The numbers must be within those of the facts by entities (`conversion`).
    """
    way = np.array(one.entities, np.int64)
    budget.spend(2 * LOOKUP * len(way))
    relation = np.array(one.relation)
    there = placed.are_facts(way[:-1], relation, way[1:])
    back = placed.are_facts(way[1:], relation, way[:-1])
    require((there & ~back).all(), "a step is no fact, or has a reverse")
    if task in ("exact", "signs"):
        require(len(way) >= 2, "there is no one-way fact")
    elif task == "ranking":
        require(len(way) >= 2 and way[0] == way[-1], "the facts are no cycle")
    else:
        require(len(way) >= 3, "the facts are no path of two")
