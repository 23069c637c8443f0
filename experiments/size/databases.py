"""Databases of a given number of triples, of the kind of the paper's experiment."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from capacity import Database
from capacity.database import random_database

# of the mean number of triples for a largest number of subjects: tables x predicates x subjects
MEAN = 2.5 * 4.5 / 2
# triples may differ by this share
WITHIN = 0.02


@lru_cache(maxsize=512)
def sized_database(n_triples: int, seed: int) -> Database:
    """Draw one to four tables whose subjects grow in number with `n_triples`, within 2 %."""
    return random_database(
        np.random.default_rng([28, n_triples, seed]),
        subjects=(2, max(4, round(n_triples / MEAN))),
        triples=(round((1 - WITHIN) * n_triples), round((1 + WITHIN) * n_triples)),
    )
