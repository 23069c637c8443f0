"""Check certificates. Short, exact, and independent of how bounds are found.

Nothing of the search is imported: this module, the checkers of each kind of argument, the data
types of `capacity.rank.certificate` and the triples of the database are all that has to be
trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import component_labels, is_complete
from capacity.errors import CertificateError
from capacity.rank.arrays import Indices
from capacity.rank.certificate import (
    Argument,
    Boxes,
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    Pencil,
    Substitution,
    Unfolding,
)
from capacity.rank.check_lower import (
    Touched,
    check_koszul,
    check_not_diagonal,
    check_pencil,
    check_substitution,
    check_unfolding,
)
from capacity.rank.check_upper import (
    facts_of_boxes,
    facts_of_diagonal,
    facts_of_enclosure,
    facts_of_pencil,
    facts_of_terms,
)
from capacity.rank.check_view import Refuted, require


@dataclass(frozen=True)
class Verdict:
    """What a certificate proves.

    Attributes
    ----------
    proved : bool
    reason : str or None
        The step that fails, if it doesn't prove its bound.
    """

    proved: bool
    reason: str | None = None


def verify(certificate: Certificate, db: Database) -> Verdict:
    """Check that a certificate proves its bound for the facts of a database.

    Parameters
    ----------
    certificate : Certificate
    db : Database

    Returns
    -------
    Verdict

    Raises
    ------
    CertificateError
        If the certificate is for other facts or another policy.
    MemoryBudgetError
        If it takes more memory, or time, to check than a certificate may.

    Notes
    -----
    *Lower bounds of the rank* add over arguments about different components. Let D = A (+) B. An
    argument for A removes slices of A, S_m of mode m: moves of the game, or the r independent
    slices of an unfolding of rank r, each nonzero when its turn comes, and the rank falls by one
    each time. What is left at the indices of B is D with multiples of the slices S_m added in each
    mode m, so it is

        B + sum over (i, j, k) in S_0 x S_1 x S_2 of A[i, j, k] times a simple tensor,

    for all other products meet zeros of D. But A vanishes on S_0 x S_1 x S_2. For an unfolding two
    of the sets are empty. In the game, if A[i, j, k] weren't zero, the first of the three slices to
    go, say i, would hide (x, j, k) for all x; then j, unknown there, would hide (x, y, k) for all x
    and y; and k, of which nothing is known any more, couldn't go. So B is left as it was. If the
    game is played on a view of A, restrict to the view first. One component may have any lower
    bound of its rank, such as a flattening's: the others' slices are removed first. Two such
    bounds don't add in general (Shitov's counterexample to Strassen's additivity); but one
    flattening may be about several components at once: its rank is the sum of theirs.

    *Pairs.* An unfolding and another argument may be about the same components, if the slices that
    the unfolding removes are none of the other's sub-tensor, and vanish on it: it then stays as it
    is, too. A game needs less: where they don't vanish its entries are hidden from the start, for
    multiples of them were subtracted there. An argument can be in one such pair; in longer chains
    what was subtracted first could come back.

    *Lower bounds of the effective rank* don't add over components: two token-disjoint databases can
    share terms in the unobserved fibers. They have one argument, or a pair: the unfolding's minor
    lies in observed fibers, and where its slices vanish on observed fibers of the other's
    sub-tensor, these stay as they are, which is all that the other argument knows.

    If all fibers are observed, D alone represents the facts: the effective rank is the rank.
    Flattenings, pencils and diagonalizations bound the effective rank where their sub-tensor has
    observed fibers alone, for it is then the same in every tensor that represents the facts.

    *Upper bounds* add: D is a sum of simple tensors, one for each box and each term, and as many as
    the rank of the components that an argument of another kind gives.
    """
    if certificate.facts_sha256 != db.facts_sha256 or certificate.multi != db.multi:
        raise CertificateError(
            f"The certificate must be for these facts, {db.facts_sha256[:12]} with multi="
            f"{db.multi}; it is for {certificate.facts_sha256[:12]} with multi="
            f"{certificate.multi}. Load the file that it was made from, under the same policy."
        )
    try:
        total = sum(argument.value for argument in certificate.arguments)
        require(certificate.value == total, f"the arguments give {total}")
        sides = all(certificate.side in argument.sides for argument in certificate.arguments)
        require(sides, f"an argument can't argue for a {certificate.side} bound")
        if certificate.side == "upper":
            _check_upper(certificate, db)
        else:
            _check_lower(certificate, db)
    except Refuted as refuted:
        return Verdict(False, str(refuted))
    return Verdict(True)


def _check_lower(certificate: Certificate, db: Database) -> None:
    effective = _is_effective(certificate, db)
    # before any of them is looked at, which may take seconds
    strong = [isinstance(a, Koszul | Diagonalization | Pencil) for a in certificate.arguments]
    require(sum(strong) <= 1, "of such arguments only one may be there: they don't add")
    touched = [_lower(argument, db, effective) for argument in certificate.arguments]
    before = _pairs(certificate, touched, db, effective) if len(touched) > 1 else {}
    for number, argument in enumerate(certificate.arguments):
        if isinstance(argument, Substitution):
            check_substitution(argument, db, effective, before.get(number))


def _is_effective(certificate: Certificate, db: Database) -> bool:
    """Whether other tensors than D represent the facts: if a fiber is unobserved."""
    return certificate.quantity == "effective_rank" and not is_complete(db)


def _pairs(
    certificate: Certificate, touched: list[Touched], db: Database, effective: bool
) -> dict[int, Unfolding]:
    """For each argument that is the second of a pair, the unfolding whose slices go first."""
    labels = component_labels(db)
    owner: dict[int, int] = {}
    paired: set[int] = set()
    before: dict[int, Unfolding] = {}
    for j, indices in enumerate(touched):
        about = {0} if effective else _components(indices, db, labels)
        # whoever was there first
        for i in {owner.setdefault(component, j) for component in about} - {j}:
            first, second = certificate.arguments[i], certificate.arguments[j]
            require(
                isinstance(first, Unfolding)
                and not paired & {i, j}
                and not np.isin(first.rows, indices[first.mode]).any()
                and (isinstance(second, Substitution) or _leaves(first, indices, db)),
                f"argument {i} may change what argument {j} is about",
            )
            assert isinstance(first, Unfolding)
            paired |= {i, j}
            before[j] = first
    return before


def _lower(argument: Argument, db: Database, effective: bool) -> Touched:
    """Check an argument, unless it is a game; return what it is about."""
    if isinstance(argument, Unfolding):
        return check_unfolding(argument, db, effective)
    if isinstance(argument, Koszul):
        return check_koszul(argument, db, effective)
    if isinstance(argument, Diagonalization):
        return check_not_diagonal(argument, db, effective)
    if isinstance(argument, Pencil):
        return check_pencil(argument, db, effective)
    assert isinstance(argument, Substitution)
    return argument.view.indices


def _leaves(argument: Unfolding, indices: Touched, db: Database) -> bool:
    """Whether the slices of an unfolding vanish on the sub-tensor of some indices."""
    chosen = [np.isin(np.arange(n), i) for n, i in zip(db.shape, indices, strict=True)]
    chosen[argument.mode] = np.isin(np.arange(db.shape[argument.mode]), argument.rows)
    inside = [chosen[mode][db.triples[:, mode]] for mode in range(3)]
    return not (inside[0] & inside[1] & inside[2]).any()


def _components(touched: Touched, db: Database, labels: Indices) -> set[int]:
    """Components that an argument is about."""
    found: set[int] = set()
    for mode in range(3):
        found.update(labels[np.isin(db.triples[:, mode], touched[mode])].tolist())
    return found


def _check_upper(certificate: Certificate, db: Database) -> None:
    """D, or a tensor that represents the facts, is a sum of so many simple tensors.

    Each fact is given once: by the terms, added up exactly, or by its box. A box is the simple
    tensor of the indicators of its subjects, predicates and objects; it gives each fact of its own
    and nothing else if those are as many as its triples. For the effective rank only the observed
    fibers have to agree, so triples of a box that lie in unobserved ones don't count.
    """
    effective = _is_effective(certificate, db)
    given = np.zeros(db.n_triples, np.int64)
    whole = any(isinstance(a, Pencil | Diagonalization | Enclosure) for a in certificate.arguments)
    labels = component_labels(db) if whole else given
    for kind in (Decomposition, Boxes):
        several = sum(isinstance(argument, kind) for argument in certificate.arguments) > 1
        require(not several, f"there may be one {kind.kind} at most")
    for argument in certificate.arguments:
        require((given <= 1).all(), "a fact is given twice")
        if isinstance(argument, Decomposition):
            given += facts_of_terms(argument, db, effective)
        elif isinstance(argument, Pencil):
            given += facts_of_pencil(argument, db, labels)
        elif isinstance(argument, Diagonalization):
            given += facts_of_diagonal(argument, db, labels)
        elif isinstance(argument, Enclosure):
            given += facts_of_enclosure(argument, db, effective, labels)
        else:
            assert isinstance(argument, Boxes)
            given += facts_of_boxes(argument, db, effective)
    wrong = np.flatnonzero(given != 1)
    require(not len(wrong), f"fact {wrong[:1]} is not given once")
