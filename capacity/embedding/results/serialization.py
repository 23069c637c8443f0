"""Dimensions as JSON, and back.

Reading trusts nothing: what hasn't the form of a dimension raises `CertificateError`, and what has
it is still only a claim, until `verify_dimension` has checked it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np

from capacity.checks import MAX_SEED, shown
from capacity.embedding.estimate import Estimate
from capacity.embedding.model import Certificate, Reason, Side
from capacity.embedding.one_way import Obstruction
from capacity.embedding.proofs import Points, Shattered, SmallNorm, Witness
from capacity.embedding.queries import Task
from capacity.embedding.results.result import Dimension
from capacity.errors import CertificateError
from capacity.exact.types import Indices
from capacity.rank.options import BUDGETS
from capacity.rank.verifier.argument_json import field, items, mapping
from capacity.rank.verifier.certificate import Certificate as RankCertificate
from capacity.rank.verifier.serialization import MAX_BYTES, read_claims, require_plain_name
from capacity.safe_files import write_whole

FORMAT = "capacity dimension 1"


def save_dimensions(found: Iterable[Dimension], path: str | os.PathLike[str]) -> None:
    """Write dimensions with all that proves them to a JSON file, completely or not at all.

    Parameters
    ----------
    found : iterable of Dimension
        What `dimensions` returns.
    path : path
        The file, which is overwritten; missing folders are created.

    Raises
    ------
    InvalidArgumentError
        For a name that promises compression.
    StorageError
        If the file can't be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from capacity import Database
    >>> from capacity.embedding import dimensions, verify_dimension
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "C"), ("C", "knows", "A")])
    >>> with TemporaryDirectory() as folder:
    ...     save_dimensions(dimensions(db, ["CP"], witness=False), Path(folder, "cp.json"))
    ...     (again,) = load_dimensions(Path(folder, "cp.json"))
    >>> print(again, verify_dimension(again, db).proved)
    CP: [2, 2] True
    """
    require_plain_name(path)
    every = [*found]
    # ranks that several dimensions rest on are written once
    ranks = {id(rank): rank for one in every for rank in one.ranks}
    claims = [rank.to_dict() for rank in ranks.values()] + [dimension_to_dict(x) for x in every]
    texts = dict.fromkeys(json.dumps(claim) for claim in claims)
    write_whole(path, f"[{', '.join(texts)}]\n".encode())


def load_dimensions(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> list[Dimension]:
    """Read dimensions that `save_dimensions` wrote, without checking that they are true.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    max_bytes : int
        Largest size of the file in bytes; a larger file is refused before it is read.

    Returns
    -------
    list of Dimension
        The dimensions, at least one.

    Raises
    ------
    CertificateError
        If the file can't be read, is too large, or doesn't hold at least one dimension.

    Examples
    --------
    `save_dimensions` has one.
    """
    claims = load_claims(path, max_bytes=max_bytes, command="dimension")
    found = [one for one in claims if isinstance(one, Dimension)]
    if not found:
        raise CertificateError(
            f"{os.fspath(path)} must hold dimensions, as `capacity dimension --certificate` writes "
            "them; it holds certificates of ranks alone. Read it by load_certificates."
        )
    return found


def load_claims(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, command: str
) -> list[Dimension | RankCertificate]:
    """Read certificates of ranks and dimensions, each by the format that it names.

    A dimension gets the file's certificates of ranks about the same facts as its `ranks`.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    max_bytes : int
        Largest size of the file in bytes; a larger file is refused before it is read.
    command : str
        The command that writes such files.

    Returns
    -------
    list of Certificate or Dimension
        The claims, at least one.

    Raises
    ------
    CertificateError
        If the file can't be read, is too large, or doesn't hold at least one claim.
    """
    claims = read_claims(path, _claim, max_bytes=max_bytes, command=command)
    listed: dict[tuple[str, str | None], list[RankCertificate]] = {}
    for one in claims:
        if isinstance(one, RankCertificate):
            listed.setdefault((one.facts_sha256, one.multi), []).append(one)
    # one tuple for all dimensions: both may be many
    about = {key: tuple(some) for key, some in listed.items()}
    return [
        replace(one, ranks=about.get((one.facts_sha256, one.multi), ()))
        if isinstance(one, Dimension)
        else one
        for one in claims
    ]


def _claim(data: object) -> Dimension | RankCertificate:
    named = isinstance(data, dict) and cast("dict[str, object]", data).get("format")
    return dimension_from_dict(data) if named == FORMAT else RankCertificate.from_dict(data)


def dimension_to_dict(one: Dimension) -> dict[str, Any]:
    """Write a dimension as JSON-ready data, by numbers of subjects, relations and objects.

    Its `ranks` aren't in it: they are claims of their own, by `Certificate.to_dict`.
    """
    return {
        "format": FORMAT,
        "model": one.model,
        "task": one.task,
        "shared": one.shared,
        "necessary": one.necessary,
        "sufficient": one.sufficient,
        "reasons": [
            {"side": r.side, "value": r.value, "words": r.words,
             "certificate": _certificate_to_dict(r.certificate)}
            for r in one.reasons
        ],
        "witness": one.witness and {
            "dimension": one.witness.dimension,
            "factors": {name: x.tolist() for name, x in one.witness.factors.items()},
        },
        "estimate": one.estimate and {
            "dimension": one.estimate.dimension, "bits": one.estimate.bits,
            "words": one.estimate.words,
        },
        "notes": [*one.notes],
        "effort": one.effort,
        "seed": one.seed,
        "facts_sha256": one.facts_sha256,
        "multi": one.multi,
    }  # fmt: skip


def _certificate_to_dict(proof: Certificate | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    if isinstance(proof, tuple):
        facts = [{"relation": one.relation, "entities": [*one.entities]} for one in proof]
        return {"kind": "one-way facts", "relations": facts}
    signs = {"of": proof.kind, "points": proof.points.tolist(), "rows": proof.rows.tolist()}
    if isinstance(proof, Shattered):
        return {"kind": "shattered", **signs}
    return {"kind": "small norm", **signs, "dimension": proof.dimension}


def dimension_from_dict(data: object) -> Dimension:
    """Read a dimension that `dimension_to_dict` wrote, without `ranks`.

    Raises
    ------
    CertificateError
        If the data hasn't the form of a dimension.
    """
    fields = mapping(data, "a dimension")
    if fields.get("format") != FORMAT:
        raise CertificateError(f"`format` must be {FORMAT!r}; got {shown(fields.get('format'))}.")
    witness, estimate = fields.get("witness"), fields.get("estimate")
    model = field(fields, "model", str)
    found = Dimension(
        model,
        _choice(fields, "task", get_args(Task)),
        field(fields, "shared", bool),
        tuple(map(_reason, items(fields.get("reasons"), None, "`reasons`"))),
        None if witness is None else _witness(model, mapping(witness, "`witness`")),
        None if estimate is None else _estimate(mapping(estimate, "`estimate`")),
        tuple(map(str, items(fields.get("notes"), None, "`notes`"))),
        _choice(fields, "effort", BUDGETS),
        _seed(fields),
        field(fields, "facts_sha256", str),
        field(fields, "multi", str),
    )
    for name in ("necessary", "sufficient"):
        if name in fields and fields[name] != getattr(found, name):
            raise CertificateError(
                f"`{name}` must be what the reasons and the witness prove, {getattr(found, name)}; "
                f"got {shown(fields[name])}."
            )
    return found


def _reason(data: object) -> Reason:
    fields = mapping(data, "a reason")
    proof = fields.get("certificate")
    return Reason(
        _choice(fields, "side", get_args(Side)),
        field(fields, "value", int),
        field(fields, "words", str),
        None if proof is None else _certificate(mapping(proof, "a certificate")),
    )


def _certificate(fields: Mapping[str, object]) -> Certificate:
    kind = _choice(fields, "kind", ("one-way facts", "shattered", "small norm"))
    if kind == "one-way facts":
        return tuple(
            Obstruction(field(one, "relation", int),
                        tuple(_integers(one.get("entities"), "entities").ravel().tolist()))
            for one in (mapping(x, "a relation") for x in field(fields, "relations", list))
        )  # fmt: skip
    points, rows = (_integers(fields.get(name), name) for name in ("points", "rows"))
    of = _choice(fields, "of", get_args(Points))
    if kind == "shattered":
        return Shattered(of, points, rows)
    return SmallNorm(of, points, rows, field(fields, "dimension", int))


def _witness(model: str, fields: Mapping[str, object]) -> Witness:
    factors = mapping(fields.get("factors"), "`factors`")
    return Witness(
        model,
        field(fields, "dimension", int),
        {name: _integers(x, f"the factor {name[:20]}") for name, x in factors.items()},
    )


def _estimate(fields: Mapping[str, object]) -> Estimate:
    dimension = None if fields.get("dimension") is None else field(fields, "dimension", int)
    return Estimate(dimension, field(fields, "bits", float), field(fields, "words", str))


def _choice(fields: Mapping[str, object], name: str, known: Iterable[str]) -> Any:
    found = field(fields, name, str)
    if found not in known:
        raise CertificateError(f"`{name}` must be one of {', '.join(known)}; got {shown(found)}.")
    return found


def _seed(fields: Mapping[str, object]) -> int:
    seed = field(fields, "seed", int)
    if not 0 <= seed <= MAX_SEED:
        raise CertificateError(f"`seed` must be from 0 to 2^63 - 1; got {shown(seed)}.")
    return seed


def _integers(data: object, what: str) -> Indices:
    """Read lists of integers of 64 bits, or lists of such lists of one length."""
    whole = flat = items(data, None, what)
    while flat and all(isinstance(one, list) for one in flat):
        flat = [x for one in cast("list[list[object]]", flat) for x in one]
    # before there is an array: one of texts takes the length of the longest for each of them
    if not all(type(x) is int for x in flat):
        raise CertificateError(f"{what} must hold integers of 64 bits, in lists of one length.")
    try:
        return np.array(whole, dtype=np.int64)
    except (ValueError, OverflowError):
        raise CertificateError(
            f"{what} must hold integers of 64 bits, in lists of one length."
        ) from None
