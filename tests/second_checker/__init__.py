"""A second, slower checker of certificates: dense, in fractions, by definitions alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from capacity.database import Database
from capacity.rank import Certificate, Diagonalization, Koszul, Pencil, Substitution, Unfolding
from tests.second_checker.lower import proves_lower, proves_removals, vanishes
from tests.second_checker.slices import rank_of_two_slices as rank_of_two_slices
from tests.second_checker.upper import adds_up
from tests.second_checker.views import component_names, indices_of


def second_checker(certificate: Certificate, db: Database) -> bool:
    """Whether the arguments prove the value, by definitions alone."""
    try:
        return _proves(certificate, db)
    except (IndexError, KeyError):
        return False  # an index that the database hasn't


def _proves(certificate: Certificate, db: Database) -> bool:
    if (certificate.facts_sha256, certificate.multi) != (db.facts_sha256, db.multi):
        return False
    D = db.to_numpy().astype(int)
    observed = np.asarray(D.any(axis=2))
    effective = certificate.quantity == "effective_rank" and not observed.all()
    if certificate.value != sum(a.value for a in certificate.arguments):
        return False
    if certificate.side == "upper":
        return adds_up(certificate, db, D, observed, effective)
    touched = [
        indices_of(a.view) if isinstance(a, Substitution)
        else proves_lower(a, D, observed, effective)
        for a in certificate.arguments
    ]  # fmt: skip
    if any(t is None for t in touched):
        return False
    strong = (Koszul, Pencil, Diagonalization)
    if sum(isinstance(a, strong) for a in certificate.arguments) > 1:
        return False
    names = component_names(db)
    # lower bounds of the effective rank don't add over components
    parts = [{0} if effective else {names[vertex] for vertex in t or ()} for t in touched]
    meeting = [p for p in itertools.combinations(range(len(parts)), 2) if parts[p[0]] & parts[p[1]]]
    if len({i for pair in meeting for i in pair}) < 2 * len(meeting):
        return False  # an argument meets two others
    pairs = [(certificate.arguments[i], certificate.arguments[j], touched[j]) for i, j in meeting]
    before = dict.fromkeys(map(id, certificate.arguments))
    for first, second, indices in pairs:
        if not isinstance(first, Unfolding):
            return False
        if {(first.mode, i) for i in first.rows.tolist()} & (indices or set()):
            return False
        if not isinstance(second, Substitution) and not vanishes(first, indices or set(), D):
            return False
        before[id(second)] = first
    return all(
        proves_removals(a, D, observed, effective, before[id(a)]) is not None
        for a in certificate.arguments
        if isinstance(a, Substitution)
    )


def claim(
    db: Database, *arguments: Any, quantity: Any = "rank", side: Any = "lower"
) -> Certificate:
    value = sum(a.value for a in arguments)
    return Certificate(quantity, side, value, "hand", arguments, db.facts_sha256, db.multi)
