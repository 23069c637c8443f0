"""Upper bounds from slices, with the simple tensors that they stand for.

The rank of D is at most the sum of the ranks of its slices of one mode (Wong 2025, Proposition
2.1), and at most the weight of a *spanning tree* over the slices: an edge from T_i to T_j weighs
rank(T_j - T_i), one from the root rank(T_i). If c hangs below p, the terms of T_c - T_p serve T_c
and all slices below it. Slices that differ little cost little.

Peeling a slice cuts its facts into boxes, one a unit of rank (`capacity.rank.exact.peeling`); only
what can't be peeled needs factors over the rationals.
"""

from __future__ import annotations

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import MODES, Mode, stacked_slice_entries
from capacity.rank.exact.factorization import factors
from capacity.rank.exact.peeling import reduce
from capacity.rank.exact.sparse_terms import term, vector
from capacity.rank.types import Indices, Term
from capacity.rank.verifier.kinds.decomposition import PRODUCTS_A_FACT, products_of_terms

# entries up to which a block is factored, if a checker has the time for its terms
FACTORED_ENTRIES = 200_000


def slice_terms(db: Database, mode: Mode, facts: Indices) -> tuple[Indices, list[Term]]:
    """Write facts as boxes and terms, as many as the ranks of their slices.

    Parameters
    ----------
    db : Database
    mode : {0, 1, 2}
    facts : ndarray of int64
        Rows of ``Database.triples``.

    Returns
    -------
    box : ndarray of int64, shape (len(facts),)
        The box of each fact, numbered from 0, or -1 where terms give it.
    terms : list of Term
    """
    rows, columns = (x[facts] for x in stacked_slice_entries(db, mode))
    n = db.shape[mode]
    matrix = reduce(rows, columns)
    box = matrix.taken_by.copy()
    terms: list[Term] = []
    stands_for = np.full(len(facts), -1, np.int64)
    for number, block in enumerate(matrix.blocks()):
        stands_for[block] = number
    core = np.where(box < 0, stands_for[matrix.same_as], -1)
    order = np.argsort(core, kind="stable")
    order = order[np.searchsorted(core[order], 0) :]
    for block in np.split(order, np.flatnonzero(np.diff(core[order])) + 1) if len(order) else []:
        i = int(rows[block[0]] % n)
        ia, row = np.unique(rows[block] // n, return_inverse=True)
        ib, column = np.unique(columns[block] // n, return_inverse=True)
        dense = np.zeros((len(ia), len(ib)), np.int64)
        dense[row.ravel(), column.ravel()] = 1
        across = vector([i], [1])
        found = [
            term(mode, across, vector(ia.tolist(), left), vector(ib.tolist(), right))
            for left, right in (factors(dense) if dense.size <= FACTORED_ENTRIES else ())
        ]
        if found and products_of_terms(found) <= PRODUCTS_A_FACT // 2 * len(block):
            terms += found
        else:
            # a box for each line, in the shorter direction
            lines = row if len(ia) <= len(ib) else column
            box[block] = box.max(initial=-1) + 1 + lines.ravel()
    return box, terms


def sliced(
    db: Database, modes: Indices, component: Indices, facts: Indices
) -> tuple[Indices, list[Term]]:
    """Boxes (one a fact, or -1) and terms of the slices of each component in its own mode."""
    box = np.full(db.n_triples, -1, np.int64)
    terms: list[Term] = []
    for mode in MODES:
        mine = facts[modes[component[facts]] == mode]
        if len(mine):
            found, more = slice_terms(db, mode, mine)
            box[mine] = np.where(found < 0, -1, found + box.max() + 1)
            terms += more
    return box, terms
