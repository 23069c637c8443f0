"""A check of a `Dimension` by the facts alone, in integers.

Witnesses, signs and the facts that stop symmetric scores are checked by definition, by code apart
from the search. Bounds without a certificate are ranks and counts, which follow from the facts, and
so does the estimate: they are computed again, by the same code and with the same effort and seed. A
bound holds if one of them is as strong. Words and notes are for people, and aren't checked.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from capacity.database import Database
from capacity.database.required import require_triples
from capacity.embedding.estimate import estimate
from capacity.embedding.families import MODELS, models_of
from capacity.embedding.graph import QueryGraph
from capacity.embedding.model import Reason
from capacity.embedding.one_way import Obstruction
from capacity.embedding.quantities import Quantities
from capacity.embedding.result import Dimension
from capacity.embedding.signs.shattered import Shattered
from capacity.embedding.signs.spectral import LONG, SHORT, SmallNorm
from capacity.embedding.witnesses.integer_scores import (
    ENCODERS,
    NUMBERS,
    Facts,
    WrongError,
    check_witness,
    require,
)
from capacity.errors import CertificateError, InvalidTypeError
from capacity.rank import Verdict


def verify_dimension(found: Dimension, db: Database) -> Verdict:
    """Check every bound of a dimension, in integers; words and notes aren't checked.

    Parameters
    ----------
    found : Dimension
        The bounds, with their witness, signs, and facts that stop symmetric scores.
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
    InvalidTypeError
        If an argument is of another type.
    InvalidArgumentError
        If the facts aren't triples.

    Examples
    --------
    >>> from capacity.embedding import dimension
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "C"), ("C", "knows", "A")])
    >>> verify_dimension(dimension(db, "DistMult", witness=False), db)
    Verdict(proved=True, reason=None)
    """
    if not isinstance(found, Dimension):
        raise InvalidTypeError(f"`found` must be a Dimension; got {type(found).__name__}.")
    require_triples(db, "verify_dimension(found, db)")
    if (found.facts_sha256, found.multi) != (db.facts_sha256, db.multi):
        raise CertificateError(
            f"The dimension must be of these facts, {db.facts_sha256[:12]}; it is of "
            f"{found.facts_sha256[:12]}. Load the file that it was made from, with the same policy."
        )
    facts = Facts.of(db, shared=found.shared)
    try:
        require(found.model in MODELS, f"no family is named {found.model}")
        require(found.model in models_of(found.task), f"{found.model} isn't asked for {found.task}")
        for reason in found.reasons:
            _check(reason, found, facts)
        _check_counts(found, db)
        if found.witness is not None:
            require(found.witness.model == found.model, "the witness is of another model")
            check_witness(found.witness, facts, found.task)
    except WrongError as refuted:
        return Verdict(False, str(refuted))
    return Verdict(True)


def _check_counts(found: Dimension, db: Database) -> None:
    """Compute the bounds again that rest on ranks and counts, and the estimate."""
    claimed = [one for one in found.reasons if one.certificate is None]
    if not claimed and found.estimate is None:
        return
    graph = QueryGraph.of(db, found.shared)
    of = Quantities(db, graph, found.effort, found.seed, signs=False)
    if found.estimate is not None:
        said, known = found.estimate, estimate(of)
        same = said.dimension == known.dimension and math.isclose(said.bits, known.bits)
        require(same, f"the estimate is {known.dimension}, by {known.bits:.1f} bits")
    bounds = [*MODELS[found.model].bounds(of, found.task)]
    least = max((one.value for one in bounds if one.side == "necessary"), default=1)
    most = min((one.value for one in bounds if one.side == "sufficient"), default=math.inf)
    for one in claimed:
        holds = 1 <= one.value <= least if one.side == "necessary" else one.value >= most
        require(holds, f"the facts don't give {one.value} as {one.side}, by {one.words}")


def _check(reason: Reason, found: Dimension, facts: Facts) -> None:
    proof = reason.certificate
    if reason.side == "impossible":
        require(found.model == "DistMult" and found.shared, "only symmetric scores are stopped")
        require(isinstance(proof, tuple) and proof, "nothing stops the scores")
        for one in proof if isinstance(proof, tuple) else ():
            _check_obstruction(one, found.task, facts)
    elif proof is not None:
        require(reason.side == "necessary", f"no {reason.side} bound has a certificate")
        if isinstance(proof, tuple):
            raise WrongError("a lower bound is proved by signs")
        m = _dimension_of_signs(proof, facts)
        ranked = found.task in ("ranking", "both-sides")
        m -= ranked and proof.kind != "comparisons"
        require(found.task != "exact", "exact scores aren't bounded by signs here")
        require(proof.kind != "comparisons" or found.model not in ENCODERS,
                 f"{found.model} has no vectors of subjects")  # fmt: skip
        most = max(1, -(-m // NUMBERS[found.model]))
        require(reason.value <= most, f"the signs prove {most}, and not {reason.value}")


def _check_obstruction(one: Obstruction, task: str, facts: Facts) -> None:
    subject = {entity: s for s, entity in enumerate(facts.subjects)}
    obj = {entity: o for o, entity in enumerate(facts.objects)}

    def is_fact(a: int, b: int) -> bool:
        return (subject.get(a, -1), one.relation, obj.get(b, -1)) in facts.triples

    steps = [*itertools.pairwise(one.entities)]
    for a, b in steps:
        require(is_fact(a, b) and not is_fact(b, a), f"{a} to {b} is no one-way fact")
    if task in ("exact", "signs"):
        require(steps, "there is no one-way fact")
    elif task == "ranking":
        require(steps and one.entities[0] == one.entities[-1], "the facts are no cycle")
    else:
        require(len(steps) >= 2, "the facts are no path of two")


def _dimension_of_signs(found: Shattered | SmallNorm, facts: Facts) -> int:
    """Return the dimension that scores with the signs of the facts need, by what was found."""
    W = _signs(found, facts)
    if isinstance(found, Shattered):
        seen = {tuple(row[0] * x for x in row) for row in W}
        require(len(seen) == 2 ** (W.shape[1] - 1), "a pattern of signs is missing")
        return W.shape[1]
    short, long = sorted(W.shape)
    require(short <= SHORT and long <= LONG, "the matrix of signs is too large to be checked")
    W = W if len(W) == short else W.T
    A2 = (W @ W.T) @ (W @ W.T)
    A4 = (A2 @ A2).tolist()
    # the 8th power of ||W||^2 is at most these
    largest = min(max(sum(map(abs, row)) for row in A4) ** 2, sum(x * x for row in A4 for x in row))
    d = found.dimension
    require(1 <= d <= short, "no dimension is that large")
    require((d - 1) ** 16 * largest < W.size**8, f"the norm of the signs doesn't prove {d}")
    return d


def _signs(found: Shattered | SmallNorm, facts: Facts) -> NDArray[np.int64]:
    """Return the signs of rows at points, which must all be demanded by the facts."""
    wide = 2 if found.kind == "comparisons" else 1
    integers = found.points.dtype == np.int64 and found.rows.dtype == np.int64
    require(integers, "points and rows must be integers of 64 bits")
    require(found.points.ndim == wide and found.rows.ndim == 1, "the points have another form")
    require(found.points.size and found.rows.size, "there are no points")
    require(wide == 1 or found.points.shape[1] == 3, "a comparison is of three numbers")
    points, rows = found.points.tolist(), found.rows.tolist()
    queries = sorted({(s, q) for s, q, _ in facts.triples})
    objects = {"objects": points, "queries": rows}.get(found.kind, [])
    of_queries = {"objects": rows, "queries": points}.get(found.kind, [])
    require(all(0 <= o < facts.shape[2] for o in objects), "an object isn't there")
    require(all(0 <= i < len(queries) for i in of_queries), "a query isn't there")

    def sign(row: int, point: int | list[int]) -> int:
        if isinstance(point, list):
            q, first, second = point
            return ((row, q, first) in facts.triples) - ((row, q, second) in facts.triples)
        query, o = (row, point) if found.kind == "objects" else (point, row)
        return 1 if (*queries[query], o) in facts.triples else -1

    W = np.array([[sign(row, point) for point in points] for row in rows], np.int64)
    require(W.all(), "no sign is demanded of a row at a point")
    return W
