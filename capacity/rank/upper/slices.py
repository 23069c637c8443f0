"""Upper bounds from slices, as explicit decompositions.

The rank of D is at most the sum of the ranks of its slices of one mode (Wong 2025, Proposition
2.1), and at most the weight of a *spanning tree* over the slices: an edge from T_i to T_j weighs
rank(T_j - T_i), one from the root rank(T_i). If c hangs below p, the terms of T_c - T_p serve T_c
and all slices below it. Slices that differ little cost little.

Peeling a slice cuts its facts into boxes, one per unit of rank (`capacity.rank.exact.peeling`);
only the remainder needs factors over the rationals.
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

# entries of the largest block that is factored, if the verifier can afford its terms
FACTORED_ENTRIES = 200_000


def slice_terms(db: Database, mode: Mode, facts: Indices) -> tuple[Indices, list[Term]]:
    """Decompose facts slice by slice into boxes and terms.

    They are as many as the ranks of the slices add up to; a block that is too large to factor takes
    a box for each of its rows or columns, which can be more.

    Parameters
    ----------
    db : Database
        The database that the facts belong to.
    mode : {0, 1, 2}
        Mode of the slices.
    facts : ndarray of int64
        Row numbers of the facts in ``Database.triples``.

    Returns
    -------
    box : ndarray of int64, shape (len(facts),)
        The box of each fact, numbered from 0; -1 for facts that the terms cover.
    terms : list of Term
        Simple tensors that add up to the other facts.
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
            # a box for each row or column, whichever are fewer
            lines = row if len(ia) <= len(ib) else column
            box[block] = box.max(initial=-1) + 1 + lines.ravel()
    return box, terms


def sliced(
    db: Database, modes: Indices, component: Indices, facts: Indices
) -> tuple[Indices, list[Term]]:
    """Decompose each component slice by slice, in a mode of its own.

    Parameters
    ----------
    db : Database
        The database that the facts belong to.
    modes : ndarray of int64, shape (n_components,)
        Mode of the slices of each component.
    component : ndarray of int64, shape (n_triples,)
        The component of each fact.
    facts : ndarray of int64
        Row numbers of the facts to decompose, all of each component.

    Returns
    -------
    box : ndarray of int64, shape (n_triples,)
        The box of each fact, or -1 for facts that the terms cover and for all others.
    terms : list of Term
        Simple tensors that add up to the facts without a box.
    """
    box = np.full(db.n_triples, -1, np.int64)
    terms: list[Term] = []
    for mode in MODES:
        mine = facts[modes[component[facts]] == mode]
        if len(mine):
            found, more = slice_terms(db, mode, mine)
            box[mine] = np.where(found < 0, -1, found + box.max() + 1)
            terms += more
    return box, terms
