"""The command ``capacity verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.cli.certificates import read_certificates, require_shared
from capacity.cli.output import ANALYSIS, FACTS, OUTPUT, READING, Cited, Json, print_json
from capacity.cli.proofs import proof_in_words, write_proof
from capacity.cli.results import proved_ends, verdict_in_words
from capacity.cli.schemes import is_scheme, print_verdict
from capacity.cli.selecting import ALL, Chosen, selection_json, with_selection
from capacity.cli.selection_options import MultiOption
from capacity.cli.sources.files import FilesOrTensor, one_or_several
from capacity.cli.sources.input import (
    FactsOrTensorFormat,
    is_tensor,
    read_input,
    refuse_options_of_facts,
)
from capacity.database.facts import Database
from capacity.errors import (
    CertificateError,
    InvalidArgumentError,
    MemoryBudgetError,
    MultiValuedError,
)
from capacity.tensor.sparse import SparseTensor
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.embedding.results.result import Dimension
    from capacity.embedding.verifier.checker import Checks
    from capacity.rank.verifier.budget import CheckBudget
    from capacity.rank.verifier.certificate import Certificate
    from capacity.rank.verifier.checker import Verdict


PANEL = FACTS
EXAMPLES = (
    "capacity verify rank.json examples/figure-1.ttl",
    "capacity verify dimension.json examples/figure-1.ttl --json",
    "capacity verify scheme.json tensor.npy",
    "capacity verify rank.json examples/figure-1.ttl --lean proof.lean",
)


@with_selection
def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            help="JSON file that --certificate wrote. If the input is a tensor, also a published "
            "scheme (.json, _L.sms, .exp, .m, .mpl, .npy, .npz).",
            show_default=False,
        ),
    ],
    files: FilesOrTensor,
    format: FactsOrTensorFormat = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared/--separate",
            help="Require that in each dimension subjects and objects are the same entities, or "
            "that they aren't.",
            show_default=False,
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    certificate_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-certificate-bytes",
            help="Largest file of certificates to read, in bytes; default: 64 MiB.",
            min=1,
            rich_help_panel=READING,
        ),
    ] = None,
    cited: Cited = True,
    lean: Annotated[
        Path | None,
        typer.Option(
            help="Also write what is proved of the rank to this file, for Lean 4 with a public "
            "library of theorems: explicit terms, and a minor of an unfolding or of a Koszul "
            "flattening with p = 1.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that certificates prove their bounds for a file: of ranks, or of dimensions.

    A certificate of facts contains the policy for pairs with several objects; --multi requires a
    certain policy. The options that choose facts must be the same as when the certificate was
    written. A certificate of a tensor contains the hash of the tensor. A dimension depends on
    whether subjects and objects are the same entities, which is printed; --shared and --separate
    require one of the two. A scheme is checked entry by entry. If its matrix C is transposed, it is
    read so, and this is printed.
    """
    from capacity.rank.verifier.budget import CheckBudget

    file = one_or_several(files)
    tensor = is_tensor(file, format)
    if tensor:
        refuse_options_of_facts(file, multi=multi, **chosen.flags())
    if is_scheme(certificate):
        if lean is not None:
            raise InvalidArgumentError(
                f"--lean writes certificates; {certificate} is a scheme. Start a search with it, "
                "`capacity rank TENSOR --start SCHEME --certificate FILE`, and verify that file."
            )
        policy = None if tensor else "keep"
        every = read_input(file, format=format, multi=policy, chosen=chosen).of
        raise typer.Exit(code=print_verdict(certificate, every, as_json=as_json))
    certificates = read_certificates(certificate, certificate_bytes)
    for entry in certificates:
        if multi is not None and entry.multi != multi:
            about = "a tensor" if entry.multi is None else f"those under multi={entry.multi[:60]}"
            raise CertificateError(
                f"{certificate}: each certificate must be about the facts under multi={multi}; one "
                f"is about {about}. Omit --multi, or make the certificate with `capacity rank "
                f"--multi {multi}`."
            )
    if shared is not None:
        require_shared(certificates, certificate, shared=shared)
    policy = None if tensor else "keep"
    every = read_input(file, format=format, multi=policy, chosen=chosen).of
    selection = selection_json(every, chosen) if isinstance(every, Database) else None
    rows: list[dict[str, Any]] = []
    try:
        budget = CheckBudget.of(_size(every))
        by_policy = {policy: _under(every, policy) for policy in {c.multi for c in certificates}}
        checks = _checks_of_dimensions(certificates, by_policy, budget, cited=cited)
        for entry in certificates:
            facts = by_policy[entry.multi]
            claim, verdict = _checked(entry, facts, budget, checks.get(entry.multi), cited)
            row = {
                **claim,
                **_about(entry.multi, facts, every),
                "proved": verdict.proved,
                "reason": verdict.reason,
                "cited": list(verdict.cited),
            }
            rows.append(row)
            if not as_json:
                print(visible(verdict_in_words(row, selection)))
        written: dict[str, Any] = {}
        if lean is not None and all(row["proved"] for row in rows):
            written["lean"], made = write_proof(lean, certificates, by_policy)
            if not as_json:
                print(visible(proof_in_words(written["lean"], made)))
    except (CertificateError, InvalidArgumentError, MemoryBudgetError, MultiValuedError) as error:
        raise type(error)(f"{certificate}: {error}") from None
    reason = next((verdict_in_words(row, selection) for row in rows if not row["proved"]), None)
    if as_json:
        lower, upper = proved_ends(rows)
        of_facts = {"selection": selection} if isinstance(every, Database) else {}
        print_json({"proved": reason is None, **of_facts, "certificates": rows,
                    "lower": lower, "upper": upper, "reason": reason, **written})  # fmt: skip
    raise typer.Exit(code=0 if reason is None else 1)


def _checks_of_dimensions(
    claims: list[Certificate | Dimension],
    by_policy: dict[str | None, Database | SparseTensor],
    budget: CheckBudget,
    *,
    cited: bool,
) -> dict[str | None, Checks]:
    """Make one for the facts of each policy that dimensions are about: they share what it takes."""
    from capacity.embedding.results.result import Dimension

    about = {
        claim.multi: by_policy[claim.multi] for claim in claims if isinstance(claim, Dimension)
    }
    if not about:
        return {}
    from capacity.embedding.verifier.checker import Checks

    return {
        m: Checks(db, budget, cited=cited) for m, db in about.items() if isinstance(db, Database)
    }


def _checked(
    entry: Certificate | Dimension,
    facts: Database | SparseTensor,
    budget: CheckBudget,
    checks: Checks | None,
    cited: bool,
) -> tuple[dict[str, Any], Verdict]:
    """Return what is claimed, and the verdict, by the checks of dimensions about these facts."""
    from capacity.embedding.results.result import Dimension
    from capacity.rank.verifier.checker import verify as check

    if not isinstance(entry, Dimension):
        claim = {"quantity": entry.quantity, "side": entry.side, "value": entry.value}
        claim |= {"field": entry.field} if entry.field != "R" else {}
        claim |= {"border": True} if entry.border else {}
        if checks is None:
            return claim, check(entry, facts, budget=budget, cited=cited)
        return claim, checks.verdict_of_rank(entry)
    if checks is None:
        raise CertificateError("a dimension is about facts; got a tensor. Pass the file of facts.")
    about = {"model": entry.model, "task": entry.task, "shared": entry.shared}
    claim = {"quantity": "dimension", **about, "lower": entry.necessary, "upper": entry.sufficient}
    return claim, checks.verdict(entry)


def _under(every: Database | SparseTensor, policy: str | None) -> Database | SparseTensor:
    """The facts under the policy of a certificate; a certificate about a tensor names none."""
    if policy is None or not isinstance(every, Database):
        return every
    return every.with_policy(policy)  # type: ignore[arg-type]


def _size(of: Database | SparseTensor) -> int:
    return of.n_facts if isinstance(of, Database) else of.n_entries


def _about(
    policy: str | None, of: Database | SparseTensor, every: Database | SparseTensor
) -> dict[str, Any]:
    """Describe what a certificate is about, in the keys of facts or of tensors."""
    if not isinstance(every, Database):
        return {"entries": _size(every)}
    return {"multi": policy, "facts": _size(of), "of": _size(every)}
