"""Proofs for Lean that ``capacity verify --lean`` writes, and their description."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.cli.output import new_folder, write_text
from capacity.errors import InvalidArgumentError

if TYPE_CHECKING:
    from capacity.database.facts import Database
    from capacity.embedding.results.result import Dimension
    from capacity.rank.verifier.certificate import Certificate
    from capacity.tensor.sparse import SparseTensor


def write_proof(
    path: Path,
    certificates: Sequence[Certificate | Dimension],
    by_policy: dict[str | None, Database | SparseTensor],
) -> tuple[dict[str, Any], str]:
    """Write certificates of the rank of one tensor for Lean.

    Returns what is in the file, and whether its folder was made, in words.

    Raises
    ------
    InvalidArgumentError
        If there are none, or of several policies, or `lean_proof` can't write any.
    """
    from capacity.rank.lean.document import lean_proof
    from capacity.rank.verifier.certificate import Certificate

    ends = [
        one
        for one in certificates
        if isinstance(one, Certificate) and one.quantity == "rank" and not one.border
    ]
    policies = {end.multi for end in ends}
    if len(policies) != 1:
        what = "several policies" if policies else "no rank"
        raise InvalidArgumentError(
            f"--lean needs certificates of the rank of one tensor; they are of {what}."
        )
    proof = lean_proof(ends, by_policy[policies.pop()])
    made = new_folder(path)
    write_text(path, proof.text)
    ends_of = {"lower": proof.lower, "upper": proof.upper}
    return {"file": str(path), **ends_of, "omitted": list(proof.omitted)}, made


def proof_in_words(written: dict[str, Any], made: str) -> str:
    """Describe a file for Lean in one line: the ends that are in it, and why others aren't."""
    signs = {"lower": ">=", "upper": "<="}
    ends = [f"rank {sign} {written[side]}" for side, sign in signs.items()
            if written[side] is not None]  # fmt: skip
    omitted = "".join(f"; not the {reason}" for reason in written["omitted"])
    return f"{written['file']}{made}: {' and '.join(ends)}, for Lean 4{omitted}"
