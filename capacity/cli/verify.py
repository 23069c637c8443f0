"""The command ``capacity verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from capacity.cli.output import File, FormatOption, Json, MultiOption, print_json
from capacity.errors import (
    CertificateError,
    InvalidArgumentError,
    MemoryBudgetError,
    MultiValuedError,
)


def verify(
    certificate: Annotated[
        Path, typer.Argument(help="JSON file that --certificate wrote.", show_default=False)
    ],
    file: File,
    format: FormatOption = None,
    multi: MultiOption = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            help="Largest file of certificates to read, in bytes; default: 64 MiB.", min=1
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that certificates prove their bounds for a file.

    Each certificate names the policy for multi-valued pairs that its facts were made under; --multi
    requires a certain one.

    Example: capacity verify rank.json examples/countries.ttl
    """
    from capacity.database.io.readers import load
    from capacity.rank.verifier.budget import CheckBudget
    from capacity.rank.verifier.checker import verify as check
    from capacity.rank.verifier.serialization import MAX_BYTES, load_certificates

    certificates = load_certificates(certificate, max_bytes=max_bytes or MAX_BYTES)
    for one in certificates:
        if multi is not None and one.multi != multi:
            raise CertificateError(
                f"{certificate}: each certificate must be about the facts under multi={multi}; one "
                f"is about those under multi={one.multi[:60]}. Omit --multi, or make the "
                f"certificate with `capacity rank --multi {multi}`."
            )
    every = load(file, format=format, multi="keep")
    rows: list[dict[str, Any]] = []
    budget = CheckBudget.of(every.n_triples)
    try:
        about = {policy: every.with_policy(policy) for policy in {c.multi for c in certificates}}  # type: ignore[arg-type]
        for one in certificates:
            verdict = check(one, about[one.multi], budget=budget)
            row = {
                "quantity": one.quantity,
                "side": one.side,
                "value": one.value,
                "multi": one.multi,
                "facts": about[one.multi].n_triples,
                "of": every.n_triples,
                "proved": verdict.proved,
                "reason": verdict.reason,
            }
            rows.append(row)
            if not as_json:
                print(_in_words(row))
    except (CertificateError, InvalidArgumentError, MemoryBudgetError, MultiValuedError) as error:
        raise type(error)(f"{certificate}: {error}") from None
    reason = next((_in_words(row) for row in rows if not row["proved"]), None)
    if as_json:
        lower, upper = _ends(rows)
        print_json({"proved": reason is None, "certificates": rows, "lower": lower,
                    "upper": upper, "reason": reason})  # fmt: skip
    raise typer.Exit(code=0 if reason is None else 1)


def _in_words(row: dict[str, Any]) -> str:
    """Describe a verdict in one line: the bound, its facts, and whether it is proved."""
    bound = f"{row['side']} bound {row['value']} of the {row['quantity'].replace('_', ' ')}"
    all_ = row["facts"] == row["of"]
    facts = f"all {row['of']:,}" if all_ else f"{row['facts']:,} of the file's {row['of']:,}"
    verdict = "proved" if row["proved"] else f"not proved, {row['reason']}"
    return f"{bound}, for {facts} facts (multi={row['multi']}): {verdict}"


def _ends(rows: list[dict[str, Any]]) -> tuple[int | None, int | None]:
    """Return the best proved bounds of the rank, if all are about the same facts."""
    of_rank = [row for row in rows if row["quantity"] == "rank" and row["proved"]]
    if len({row["multi"] for row in of_rank}) > 1:
        return None, None
    lower = [row["value"] for row in of_rank if row["side"] == "lower"]
    upper = [row["value"] for row in of_rank if row["side"] == "upper"]
    return max(lower, default=None), min(upper, default=None)
