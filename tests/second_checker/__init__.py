"""A second, slower checker of certificates: dense, in fractions, by definitions alone."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np

from capacity.database import Database
from capacity.errors import CapacityError
from capacity.rank import (
    AlderStrassen,
    BlockSubstitution,
    Boxes,
    Cases,
    Certificate,
    ComplexDecomposition,
    Decomposition,
    Diagonalization,
    Koszul,
    Pencil,
    Published,
    RankOneCompletion,
    RankOneLocus,
    Substitution,
    Unfolding,
    verify,
)
from capacity.tensor import SparseTensor
from tests.second_checker.lower import proves_lower, proves_removals, vanishes
from tests.second_checker.slices import rank_of_two_slices as rank_of_two_slices
from tests.second_checker.theorems import theorem
from tests.second_checker.upper import adds_up
from tests.second_checker.views import component_names, indices_of, taken_together


def second_checker(certificate: Certificate, of: Database | SparseTensor) -> bool:
    """Whether the arguments prove the value, by definitions alone."""
    try:
        return _proves(certificate, of)
    except (IndexError, KeyError):
        return False  # an index that the tensor hasn't


def dense_of(of: Database | SparseTensor) -> np.ndarray:
    """The tensor as Python integers, which don't wrap."""
    tensor = of.tensor() if isinstance(of, Database) else of
    T = np.zeros(tensor.shape, dtype=object)
    for place, x in zip(tensor.indices.tolist(), tensor.values.tolist(), strict=True):
        T[tuple(place)] = x
    return T


def _holds_there(certificate: Certificate) -> bool:
    """Whether arguments about the rank over R hold over the field, and for the border rank."""
    kinds = {type(argument) for argument in certificate.arguments}
    if certificate.side == "upper" and ComplexDecomposition in kinds:
        return certificate.field == "C"
    if certificate.side == "upper":
        return certificate.field != "Q" or kinds <= {Boxes, Decomposition}
    by_any_field = {Unfolding, Substitution, BlockSubstitution, Koszul, Cases, RankOneLocus}
    if certificate.field == "C" and not all(
        type(a) in by_any_field or (isinstance(a, Published) and (theorem(a.name) or (0, False))[1])
        for a in certificate.arguments
    ):
        return False
    if not certificate.border or not kinds:
        return True
    if kinds == {Unfolding}:
        # minors of one matrix, which are parts of a larger one
        return len({getattr(a, "mode", None) for a in certificate.arguments}) == 1
    return kinds == {Koszul} and len(certificate.arguments) == 1


def _proves(certificate: Certificate, of: Database | SparseTensor) -> bool:
    if not _is_about(certificate, of):
        return False
    T = dense_of(of)
    complete = bool((T != 0).any(axis=-1).all())
    effective = certificate.quantity == "effective_rank" and not complete
    if certificate.groups:
        last = certificate.groups[-1] == (T.ndim - 1,)
        together = taken_together(T, certificate.groups)
        if certificate.side == "upper" or together is None or together.ndim < 2:
            return False
        if effective and not last:
            return False
        T = together
    observed = np.asarray((T != 0).any(axis=-1))
    # without the zero slices, which a group leaves out, all may be observed
    effective = effective and not observed.all()
    if certificate.value != sum(a.value for a in certificate.arguments):
        return False
    if (certificate.border and effective) or not _holds_there(certificate):
        return False
    if certificate.side == "upper":
        return adds_up(certificate, T, observed, effective)
    removing = (Substitution, BlockSubstitution)
    touched = [
        indices_of(a.view) if isinstance(a, removing)
        else proves_lower(a, T, observed, effective)
        for a in certificate.arguments
    ]  # fmt: skip
    if any(t is None for t in touched):
        return False
    strong = (
        Koszul, Pencil, Diagonalization, AlderStrassen, RankOneLocus, RankOneCompletion, Cases,
        Published,
    )  # fmt: skip
    if sum(isinstance(a, strong) for a in certificate.arguments) > 1:
        return False
    names = component_names(T)
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
        if not isinstance(second, removing) and not vanishes(first, indices or set(), T):
            return False
        before[id(second)] = first
    return all(
        proves_removals(a, T, observed, effective, before[id(a)]) is not None
        for a in certificate.arguments
        if isinstance(a, removing)
    )


def _is_about(certificate: Certificate, of: Database | SparseTensor) -> bool:
    """Whether the certificate names this tensor, or the facts that it is of."""
    if certificate.multi is None:
        tensor = of.tensor() if isinstance(of, Database) else of
        return certificate.facts_sha256 == tensor.sha256
    if not isinstance(of, Database):
        return False
    return (certificate.facts_sha256, certificate.multi) == (of.facts_sha256, of.multi)


def claim(
    of: Database | SparseTensor,
    *arguments: Any,
    quantity: Any = "rank",
    side: Any = "lower",
    groups: tuple[tuple[int, ...], ...] = (),
    field: Any = "R",
) -> Certificate:
    value = sum(a.value for a in arguments)
    name = (of.sha256, None) if isinstance(of, SparseTensor) else (of.facts_sha256, of.multi)
    return Certificate(quantity, side, value, "hand", arguments, *name, groups, field)


def proved_by_both(data: dict[str, Any], of: Database | SparseTensor) -> bool | None:
    """Return whether both checkers prove a certificate in JSON; None if it isn't read.

    The second one may prove what `verify` refuses, and not the other way round.
    """
    try:
        certificate = Certificate.from_dict(json.loads(json.dumps(data)))
        proved = verify(certificate, of).proved
    except CapacityError:
        return None
    assert not proved or second_checker(certificate, of), data
    return proved
