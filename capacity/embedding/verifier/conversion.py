"""Types, ranges and distinctness of all that a claim of a dimension names, in this one place.

Checkers look up facts and factors by the numbers of a claim. A number that names nothing would be
no fact, and prove a sign that nothing demands; so each is compared with the facts here, before a
checker sees it, and a new claim is made of what passed. Sizes that the checks square are limited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.embedding.estimate import Estimate
from capacity.embedding.model import Certificate, Reason, Side
from capacity.embedding.models import MODELS, models_of
from capacity.embedding.one_way import Obstruction
from capacity.embedding.proofs import (
    LONG,
    MOST_POINTS,
    SHORT,
    Points,
    Shattered,
    SignProof,
    SmallNorm,
    Witness,
)
from capacity.embedding.queries import Task
from capacity.embedding.results.result import Dimension
from capacity.embedding.verifier.numbered_facts import Facts
from capacity.exact.types import Indices
from capacity.rank.verifier.budget import CheckBudget, require_at_most
from capacity.rank.verifier.certificate import Certificate as RankCertificate
from capacity.rank.verifier.entries import Refuted, require
from capacity.tensor.coordinates import distinct

# steps for a number, for a reason or a certificate of any size, and for a certificate of a rank
# that another claim may have had checked
VALUE, PART, RANK = 30, 50_000, 2_000
# integers of a witness are below this
LARGEST = 2**31


def require_claim(found: Dimension) -> None:
    """End the check unless a claim names what it is about: family, task, and shared or not."""
    for name in ("model", "task", "facts_sha256", "multi"):
        require(type(getattr(found, name)) is str, f"`{name}` must be a text")
    require(type(found.shared) is bool, "`shared` must be true or false")
    require(found.model in MODELS, f"no family is named {found.model:.60}")
    require(found.task in get_args(Task), f"no task is named {found.task:.60}")
    require(found.model in models_of(found.task), f"{found.model} isn't asked for {found.task}")


def checked_claim(found: Dimension, named: Facts, placed: Facts, budget: CheckBudget) -> Dimension:
    """Return a claim of what passed; end the check if anything has another form or range.

    Parameters
    ----------
    found : Dimension
        A claim that `require_claim` admitted.
    named, placed : Facts
        The facts by subjects and objects, and by entities where these are shared.
    budget : CheckBudget
        Budget of the check.
    """
    reasons = tuple(_reason(one, found, named, placed, budget) for one in _tuple(found.reasons))
    ranks = _tuple(found.ranks)
    budget.spend(RANK * len(ranks))
    require(all(type(one) is RankCertificate for one in ranks), "`ranks` must be certificates")
    witness = found.witness
    if witness is not None:
        require(type(witness) is Witness, "`witness` must be a Witness")
        same = type(witness.model) is str and witness.model == found.model
        require(same, "the witness is of another model")
        witness = checked_witness(witness, placed, found.task, budget)
    claim = Dimension(
        found.model, found.task, found.shared, reasons, witness, _estimate(found.estimate), (),
        found.effort, found.seed, found.facts_sha256, found.multi, ranks,
    )  # fmt: skip
    least, most = claim.necessary, claim.sufficient
    ordered = least is None or most is None or least <= most
    require(ordered, f"the lower end, {least}, is above the upper one, {most}")
    return claim


def _reason(
    one: Reason, found: Dimension, named: Facts, placed: Facts, budget: CheckBudget
) -> Reason:
    budget.spend(PART)
    require(type(one) is Reason, "each of `reasons` must be a Reason")
    require(type(one.side) is str and one.side in get_args(Side), "a side must be one of three")
    least, most = (0, 1) if one.side == "impossible" else (1, 2**63)
    value = _integer(one.value, "`value` of a reason", least=least, below=most)
    proof: Certificate | None = None
    if one.side == "impossible":
        require(found.model == "DistMult" and found.shared, "only symmetric scores are stopped")
        proof = tuple(_obstruction(x, placed, budget) for x in _tuple(one.certificate))
        require(proof, "nothing stops the scores")
    elif one.certificate is not None:
        require(one.side == "necessary", f"no {one.side} bound has a certificate")
        proof = _signs(one.certificate, named, budget)
    return Reason(one.side, value, "", proof)


def _obstruction(one: object, placed: Facts, budget: CheckBudget) -> Obstruction:
    budget.spend(PART)
    if type(one) is not Obstruction:
        raise Refuted("what stops the scores must be facts without reverses")
    relation = _integer(one.relation, "a relation", below=placed.shape[1])
    entities = _tuple(one.entities)
    budget.spend(VALUE * len(entities))
    numbers = tuple(_integer(x, "an entity", below=placed.shape[0]) for x in entities)
    # a cycle ends where it begins
    once = len({*numbers[1:]}) == len(numbers[1:]) and not {*numbers[:1]} & {*numbers[1:-1]}
    require(once, "an entity comes twice")
    return Obstruction(relation, numbers)


def _signs(one: object, named: Facts, budget: CheckBudget) -> SignProof:
    if type(one) is not Shattered and type(one) is not SmallNorm:
        raise Refuted("a lower bound is proved by signs")
    kind, (k, q, v), n = one.kind, named.shape, len(named.queries)
    require(type(kind) is str and kind in get_args(Points), "no points are of that kind")
    # the numbers of what the columns of the points, and the rows, name
    sizes, n_rows = {"objects": ((v,), n), "queries": ((n,), v), "comparisons": ((q, v, v), k)}[
        kind
    ]
    points = _array(one.points, "points", 2 if kind == "comparisons" else 1, budget)
    rows = _array(one.rows, "rows", 1, budget)
    require(points.size and rows.size, "there are no points")
    if type(one) is Shattered:
        require_at_most("points", len(points), MOST_POINTS)
        require_at_most("rows", len(rows), 2 ** (MOST_POINTS - 1))
    else:
        short, long = sorted((len(points), len(rows)))
        require_at_most("signs on the shorter side", short, SHORT)
        require_at_most("signs on the longer side", long, LONG)
    columns = points.T if points.ndim == 2 else points[None]
    require(len(columns) == len(sizes), "a comparison is of three numbers")
    for numbers, size in zip((*columns, rows), (*sizes, n_rows), strict=True):
        require(numbers.min() >= 0 and numbers.max() < size, "a point or a row isn't there")
    require(len(np.unique(points, axis=0)) == len(points), "a point comes twice")
    require(len(distinct(rows)) == len(rows), "a row comes twice")
    if kind == "comparisons":
        require((points[:, 1] != points[:, 2]).all(), "an object is compared with itself")
    if type(one) is Shattered:
        return Shattered(kind, points, rows)
    most = min(len(points), len(rows))
    d = _integer(cast(SmallNorm, one).dimension, "a dimension by a norm", least=1, below=most + 1)
    return SmallNorm(kind, points, rows, d)


def checked_witness(witness: Witness, placed: Facts, task: Task, budget: CheckBudget) -> Witness:
    """Return a witness of what passed: small integers of 64 bits, in the shapes of its family."""
    budget.spend(PART)
    d = _integer(witness.dimension, "`dimension` of a witness", below=LARGEST)
    require(d >= 1, "a model has one dimension at least")
    (k, q, v), n = placed.shape, placed.n_entities
    n_queries = len(placed.queries) if task == "ranking" else k * q
    # TuckER's vectors of relations may have any dimension
    shapes: dict[str, dict[str, tuple[int | None, ...]]] = {
        "linear": {"h": (n_queries, d), "e": (v, d)},
        "CP": {"a": (k, d), "b": (q, d), "c": (v, d)},
        "DistMult": {"e": (n, d), "w": (q, d)},
        "ComplEx": {"x": (n, d), "y": (n, d), "u": (q, d), "v": (q, d)},
        "SimplE": {"a": (n, d), "b": (n, d), "v": (q, d), "w": (q, d)},
        "RESCAL": {"e": (n, d), "W": (q, d, d)},
        "TuckER": {"e": (n, d), "w": (q, None), "W": (None, d, d)},
    }
    require(witness.model in shapes, f"no witness is known of {witness.model:.60}")
    expected, given = shapes[witness.model], witness.factors
    named = isinstance(given, Mapping) and {*given} == {*expected}
    require(named, f"the factors must be {', '.join(expected)}")
    factors: dict[str, Indices] = {}
    for name, shape in expected.items():
        x = _array(given[name], name, len(shape), budget)
        fits = all(m in (None, size) for m, size in zip(shape, x.shape, strict=True))
        require(fits, f"{name} isn't of dimension {d}")
        # the absolute value of -2^63 isn't positive
        small = x.min(initial=0) > -LARGEST and x.max(initial=0) < LARGEST
        require(small, f"{name} has too large numbers")
        factors[name] = x
    if witness.model == "TuckER":
        same = factors["w"].shape[1] == len(factors["W"])
        require(same, "w and W aren't of one dimension of relations")
    return Witness(witness.model, d, factors)


def _estimate(one: Estimate | None) -> Estimate | None:
    if one is None:
        return None
    require(type(one) is Estimate, "`estimate` must be an Estimate")
    d = one.dimension
    number = None if d is None else _integer(d, "`dimension` of an estimate", below=2**63)
    finite = type(one.bits) is float and math.isfinite(one.bits)
    require(finite, "`bits` of an estimate must be a finite number")
    return Estimate(number, one.bits, "")


def _integer(value: object, name: str, *, least: int = 0, below: int) -> int:
    whole = type(value) is int and least <= value < below
    require(whole, f"{name} must be an integer from {least} to {below - 1}")
    return cast(int, value)


def _array(value: object, name: str, ndim: int, budget: CheckBudget) -> Indices:
    plain = np.asarray(cast("NDArray[Any]", value)) if isinstance(value, np.ndarray) else None
    if plain is None or plain.dtype != np.int64:
        raise Refuted(f"{name} isn't of integers of 64 bits")
    # a broadcast view of a single number can have any size
    budget.spend(VALUE * plain.size, 40 * plain.size)
    require(plain.ndim == ndim, f"{name} must have {ndim} dimensions")
    return np.ascontiguousarray(plain)


def _tuple(value: object) -> tuple[Any, ...]:
    # a subclass could have another length than it has elements
    if type(value) is not tuple:
        raise Refuted("reasons, ranks, what stops scores, and entities must be tuples")
    return cast("tuple[Any, ...]", value)
