"""Files of certificates.

Reading trusts nothing: what hasn't the form of a certificate is a `CertificateError`, and what has
it is still only a claim, for `capacity.rank.verifier` to check.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from capacity.errors import CertificateError, StorageError
from capacity.limits import shown
from capacity.rank.verifier.argument_json import items
from capacity.rank.verifier.certificate import Certificate
from capacity.safe_files import read_file, write_whole

MAX_BYTES = 64 * 2**20
# what takes some 100 bytes of memory each, of as few as three in the file
MOST = {
    "lists and objects": ((b"[", b"{"), 5_000_000),
    "keys": ((b":",), 500_000),
    "quotation marks": ((b'"',), 8_000_000),
}


def save_certificates(path: str | os.PathLike[str], certificates: Iterable[Certificate]) -> None:
    """Write certificates to a JSON file, whole or not at all, and the folders that it needs.

    Raises
    ------
    StorageError
        If the file can't be written.
    """
    text = json.dumps([certificate.to_dict() for certificate in certificates])
    write_whole(path, text.encode() + b"\n")


def load_certificates(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> list[Certificate]:
    """Read what `save_certificates` wrote.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    max_bytes : int
        A file that is larger is refused before it is read.

    Raises
    ------
    CertificateError
        If the file can't be read, is too large, or doesn't hold at least one certificate.
    """
    try:
        text = read_file(path, max_bytes=max_bytes)
        for what, (signs, most) in MOST.items():
            if sum(map(text.count, signs)) > most * max(1, max_bytes // MAX_BYTES):
                raise CertificateError(f"it has more than {most:,} {what}.")
        data: object = json.loads(text.decode(), object_pairs_hook=_once)
        certificates = [Certificate.from_dict(item) for item in items(data, None, "the file")]
        if not certificates:
            raise CertificateError("it holds none.")
    except (StorageError, ValueError, RecursionError) as error:
        reason = error.reason if isinstance(error, StorageError) else str(error)
        raise CertificateError(
            f"{os.fspath(path)} must hold certificates, as `capacity rank --certificate` writes "
            f"them; {reason}"
        ) from None
    return certificates


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys come once: two readers might take two different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        again = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise CertificateError(f"the key {shown(again)} comes twice in one object.")
    return found
