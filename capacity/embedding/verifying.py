"""A check of a `Dimension` by the facts alone: in integers, and by code apart from the search.

Witnesses, shattered points and the facts that stop symmetric scores are checked by definition.
Bounds without a certificate are ranks and counts: they follow from the facts, and `dimension`
computes them again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.database import Database
from capacity.embedding.model import Reason
from capacity.embedding.one_way import Obstruction
from capacity.embedding.result import Dimension
from capacity.embedding.sign_patterns import Shattered
from capacity.embedding.witness import Witness
from capacity.errors import CertificateError
from capacity.rank import Verdict

Integers = NDArray[np.int64]
Fact = tuple[int, int, int]
# numbers of an object and of a subject for each dimension
NUMBERS = {"linear": 1, "CP": 1, "DistMult": 1, "ComplEx": 2, "SimplE": 2, "RESCAL": 1, "TuckER": 1}
# integers of a witness are below this, and so are its scores
LARGEST, EXACT = 2**31, 2**62


class _RefutedError(Exception):
    """The reason why a dimension isn't proved."""


@dataclass(frozen=True)
class _Facts:
    """Facts by numbers: of subjects, relations and objects, and of entities."""

    triples: set[Fact]
    shape: tuple[int, int, int]
    subjects: list[int]
    objects: list[int]

    @classmethod
    def of(cls, db: Database, *, shared: bool) -> _Facts:
        k, q, v = db.shape
        subjects, objects = [*range(k)], [*range(k, k + v)]
        if shared:
            tokens = sorted({*db.role_ids[0].tolist(), *db.role_ids[2].tolist()})
            number = {token: i for i, token in enumerate(tokens)}
            subjects = [number[token] for token in db.role_ids[0].tolist()]
            objects = [number[token] for token in db.role_ids[2].tolist()]
        return cls({(s, q, o) for s, q, o in db.triples.tolist()}, (k, q, v), subjects, objects)


def verify_dimension(found: Dimension, db: Database) -> Verdict:
    """Check the certificates of a dimension, in integers.

    Parameters
    ----------
    found : Dimension
        The bounds, with their witness, shattered points, and facts that stop symmetric scores.
    db : Database
        The facts that it is about, under the same policy.

    Returns
    -------
    Verdict
        Either `proved`, or with the `reason` why not.

    Raises
    ------
    CertificateError
        If it is about other facts.

    Examples
    --------
    >>> from capacity.embedding import dimension
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "C"), ("C", "knows", "A")])
    >>> verify_dimension(dimension(db, "DistMult", witness=False), db)
    Verdict(proved=True, reason=None)
    """
    if (found.facts_sha256, found.multi) != (db.facts_sha256, db.multi):
        raise CertificateError(
            f"The dimension must be of these facts, {db.facts_sha256[:12]}; it is of "
            f"{found.facts_sha256[:12]}. Load the file that it was made from, with the same policy."
        )
    facts = _Facts.of(db, shared=found.shared)
    try:
        for reason in found.reasons:
            _check(reason, found, facts)
        if found.witness is not None:
            _require(found.witness.model == found.model, "the witness is of another model")
            _check_witness(found.witness, facts)
    except _RefutedError as refuted:
        return Verdict(False, str(refuted))
    return Verdict(True)


def _require(holds: object, reason: str) -> None:
    if not holds:
        raise _RefutedError(reason)


def _check(reason: Reason, found: Dimension, facts: _Facts) -> None:
    if reason.side == "impossible":
        _require(found.model == "DistMult" and found.shared, "only symmetric scores are stopped")
        proof = reason.certificate
        _require(isinstance(proof, tuple) and proof, "nothing stops the scores")
        for one in proof if isinstance(proof, tuple) else ():
            _check_obstruction(one, found.task, facts)
    elif isinstance(reason.certificate, Shattered):
        _require(reason.side == "necessary", "shattered points are a lower bound")
        _check_shattered(reason.certificate, facts)
        m = len(reason.certificate.points)
        ranked = found.task in ("ranking", "both-sides")
        m -= ranked and reason.certificate.kind != "comparisons"
        _require(found.task != "exact", "exact scores aren't bounded by shattered points here")
        _require(reason.certificate.kind != "comparisons" or found.model != "linear",
                 "a linear output layer has no vectors of subjects")  # fmt: skip
        most = max(1, -(-m // NUMBERS[found.model]))
        _require(reason.value <= most, f"the points prove {most}, and not {reason.value}")


def _check_obstruction(one: Obstruction, task: str, facts: _Facts) -> None:
    subject = {entity: s for s, entity in enumerate(facts.subjects)}
    obj = {entity: o for o, entity in enumerate(facts.objects)}

    def is_fact(a: int, b: int) -> bool:
        return (subject.get(a, -1), one.relation, obj.get(b, -1)) in facts.triples

    steps = [*itertools.pairwise(one.entities)]
    for a, b in steps:
        _require(is_fact(a, b) and not is_fact(b, a), f"{a} to {b} is no one-way fact")
    if task in ("exact", "signs"):
        _require(steps, "there is no one-way fact")
    elif task == "ranking":
        _require(steps and one.entities[0] == one.entities[-1], "the facts are no cycle")
    else:
        _require(len(steps) >= 2, "the facts are no path of two")


def _check_shattered(found: Shattered, facts: _Facts) -> None:
    points, rows = found.points.tolist(), found.rows.tolist()
    queries = sorted({(s, q) for s, q, _ in facts.triples})

    def sign(row: int, point: int | list[int]) -> int:
        if isinstance(point, list):
            relation, first, second = point
            return ((row, relation, first) in facts.triples) - (
                (row, relation, second) in facts.triples
            )
        query, o = (row, point) if found.kind == "objects" else (point, row)
        _require(0 <= query < len(queries), "a query isn't there")
        return 1 if (*queries[query], o) in facts.triples else -1

    named = facts.shape[2]
    objects = {"objects": points, "queries": rows}.get(found.kind, [])
    _require(all(0 <= o < named for o in objects), "an object isn't there")
    seen: set[tuple[int, ...]] = set()
    for row in rows:
        signs = [sign(row, point) for point in points]
        _require(all(signs), "no sign is demanded of a row at a point")
        seen.add(tuple(signs[0] * x for x in signs))
    _require(points and len(seen) == 2 ** (len(points) - 1), "a pattern of signs is missing")


def _check_witness(witness: Witness, facts: _Facts) -> None:
    d = witness.dimension
    factors = dict(witness.factors)
    for name, x in factors.items():
        _require(np.issubdtype(x.dtype, np.integer), f"{name} isn't of integers")
        # the absolute value of -2^63 isn't positive
        small = x.min(initial=0) > -LARGEST and x.max(initial=0) < LARGEST
        _require(small, f"{name} has too large numbers")
    queries = sorted({(s, q) for s, q, _ in facts.triples})
    answers: dict[tuple[int, int], list[int]] = {}
    for s, q, o in facts.triples:
        answers.setdefault((s, q), []).append(o)
    try:
        rows = _scores(witness.model, factors, d, queries, facts)
        for query, scores in zip(queries, rows, strict=True):
            is_answer = np.zeros(len(scores), bool)
            is_answer[answers[query]] = True
            ranked = is_answer.all() or scores[is_answer].min() > scores[~is_answer].max()
            _require(ranked, f"query {query} isn't ranked")
    except (KeyError, IndexError, ValueError) as error:
        raise _RefutedError(f"the factors don't fit: {error}") from error


def _scores(
    model: str, f: Mapping[str, Integers], d: int, queries: list[tuple[int, int]], facts: _Facts
) -> Iterator[Integers]:
    """Yield the scores of each query at all objects, by the definition of the model."""
    s_of, o_of = facts.subjects, facts.objects
    for number, (s, q) in enumerate(queries):
        if model == "linear":
            h, e = f["h"][number], f["e"]
        elif model == "CP":
            h, e = _product(f["a"][s], f["b"][q]), f["c"]
        elif model == "DistMult":
            h, e = _product(f["e"][s_of[s]], f["w"][q]), f["e"][o_of]
        elif model == "ComplEx":
            x, y, u, v = f["x"][s_of[s]], f["y"][s_of[s]], f["u"][q], f["v"][q]
            # the real part of (x + i y)(u + i v) times the conjugate of (x' + i y')
            h = np.concatenate([_product(x, u) - _product(y, v), _product(x, v) + _product(y, u)])
            e = np.concatenate([f["x"][o_of], f["y"][o_of]], axis=1)
        elif model == "SimplE":
            h = np.concatenate([_product(f["a"][s_of[s]], f["v"][q]),
                                _product(f["b"][s_of[s]], f["w"][q])])  # fmt: skip
            e = np.concatenate([f["b"][o_of], f["a"][o_of]], axis=1)
        else:
            W = f["W"][q] if model == "RESCAL" else _sum(f["w"][q], f["W"])
            h, e = _sum(f["e"][s_of[s]], W), f["e"][o_of]
        parts = NUMBERS[model]
        _require(h.shape == (parts * d,) and e.shape == (facts.shape[2], parts * d),
                 f"the factors aren't of dimension {d}")  # fmt: skip
        _require(f.get("W", np.zeros(0)).ndim != 3 or f["W"].shape[1:] == (d, d),
                 f"the matrices aren't of dimension {d}")  # fmt: skip
        yield _sum(h, e.T)


def _product(a: Integers, b: Integers) -> Integers:
    _fits(int(np.abs(a).max(initial=0)) * int(np.abs(b).max(initial=0)))
    return a * b


def _sum(a: Integers, B: Integers) -> Integers:
    """Return sum_i a[i] B[i]."""
    _fits(int(np.abs(a).max(initial=0)) * int(np.abs(B).max(initial=0)) * len(a))
    return np.tensordot(a, B, axes=1)


def _fits(largest: int) -> None:
    _require(largest < EXACT, "the scores are too large for 64 bits")
