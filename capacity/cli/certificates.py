"""Files of certificates that ``capacity verify`` reads: of ranks, and of dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from capacity.cli.results import whose
from capacity.errors import CertificateError

if TYPE_CHECKING:
    from capacity.embedding.results.result import Dimension
    from capacity.rank.verifier.certificate import Certificate


def read_certificates(path: Path, max_bytes: int | None) -> list[Certificate | Dimension]:
    """Read certificates of ranks, or dimensions, by the format that each names."""
    from capacity.embedding.results.serialization import load_claims
    from capacity.rank.verifier.serialization import MAX_BYTES

    try:
        return load_claims(path, max_bytes=max_bytes or MAX_BYTES, command="rank")
    except CertificateError as error:
        order = "The file of certificates comes first, and then that of the facts."
        raise CertificateError(f"{error} {order}") from None


def require_shared(claims: list[Certificate | Dimension], path: Path, *, shared: bool) -> None:
    """Refuse a file unless it is about dimensions, all of them with entities shared or not."""
    from capacity.embedding.results.result import Dimension

    dimensions = [claim for claim in claims if isinstance(claim, Dimension)]
    flag = "--shared" if shared else "--separate"
    if not dimensions:
        raise CertificateError(
            f"{path}: {flag} is about dimensions; the file holds certificates of ranks alone. "
            f"Omit {flag}."
        )
    wrong = next((claim for claim in dimensions if claim.shared is not shared), None)
    if wrong is not None:
        raise CertificateError(
            f"{path}: {flag} requires dimensions for subjects and objects that are "
            f"{whose(shared)}; that of {wrong.model:.60} for {wrong.task:.60} is for those that "
            f"are {whose(not shared)}. Omit {flag}, or make the file with `capacity dimension "
            f"{flag}`."
        )
