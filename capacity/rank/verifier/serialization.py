"""Files of certificates.

Reading trusts nothing. A file that hasn't the form of certificates raises `CertificateError`; a
certificate that is read is still only a claim, until `capacity.verify` has checked it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from capacity.checks import shown
from capacity.errors import CertificateError, InvalidArgumentError, StorageError
from capacity.rank.verifier.argument_json import items
from capacity.rank.verifier.certificate import Certificate, TwoEnds, each_certificate
from capacity.safe_files import read_file, write_whole

MAX_BYTES = 64 * 2**20
Claim = TypeVar("Claim")
# limits on parts that take about 100 bytes of memory each, from as few as three in the file
MOST = {
    "lists and objects": ((b"[", b"{"), 5_000_000),
    "keys": ((b":",), 500_000),
    "quotation marks": ((b'"',), 8_000_000),
}


def save_certificates(
    certificates: Certificate | TwoEnds | Iterable[Certificate], path: str | os.PathLike[str]
) -> None:
    """Write certificates to a JSON file, completely or not at all.

    Parameters
    ----------
    certificates : Certificate, RankInterval, or iterable of Certificate
        A certificate, an interval for both of its ends, or several certificates.
    path : path
        The file, which is overwritten; missing folders are created.

    Raises
    ------
    InvalidTypeError
        If `certificates` is something else.
    InvalidArgumentError
        For a name that promises compression.
    StorageError
        If the file can't be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from capacity import Database, rank_interval
    >>> db = Database.from_triples([("Ada", "born in", "London"), ("Alan", "born in", "London")])
    >>> with TemporaryDirectory() as folder:
    ...     save_certificates(rank_interval(db), Path(folder, "bounds.json"))
    ...     [bound.value for bound in load_certificates(Path(folder, "bounds.json"))]
    [1, 1]
    """
    require_plain_name(path)
    text = json.dumps([certificate.to_dict() for certificate in each_certificate(certificates)])
    write_whole(path, text.encode() + b"\n")


def require_plain_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name that promises compression: certificates are written as they are.

    Raises
    ------
    InvalidArgumentError
        With the name that would do.
    """
    name = os.fspath(path)
    stem, _, suffix = name.rpartition(".")
    if suffix.lower() in ("gz", "bz2", "xz", "zst", "zip"):
        raise InvalidArgumentError(
            f"A file of certificates is written without compression; got {name:.200}. Name it "
            f"{stem:.200}."
        )


def load_certificates(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> list[Certificate]:
    """Read certificates that `save_certificates` wrote, without checking that they are true.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    max_bytes : int
        Largest size of the file in bytes; a larger file is refused before it is read.

    Returns
    -------
    list of Certificate
        The certificates, at least one.

    Raises
    ------
    CertificateError
        If the file can't be read, is too large, or doesn't hold at least one certificate.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from capacity import Database, rank_interval, verify
    >>> db = Database.from_triples([("Ada", "born in", "London"), ("Alan", "born in", "London")])
    >>> with TemporaryDirectory() as folder:
    ...     save_certificates(rank_interval(db).certificates.upper, Path(folder, "bound.json"))
    ...     (bound,) = load_certificates(Path(folder, "bound.json"))
    >>> bound.quantity, bound.side, bound.value, verify(bound, db).proved
    ('rank', 'upper', 1, True)
    """
    return read_claims(path, Certificate.from_dict, max_bytes=max_bytes, command="rank")


def read_claims(
    path: str | os.PathLike[str],
    convert: Callable[[Any], Claim],
    *,
    max_bytes: int = MAX_BYTES,
    command: str,
) -> list[Claim]:
    """Read a JSON file with a list of claims that nobody has checked yet.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input.
    convert : callable
        ``convert(item)`` makes a claim of an item of the list, or raises `CertificateError`.
    max_bytes : int
        Largest size of the file in bytes; a larger file is refused before it is read.
    command : str
        The command that writes such files.

    Returns
    -------
    list
        The claims, at least one.

    Raises
    ------
    CertificateError
        If the file can't be read, is too large, or doesn't hold at least one claim.
    """
    try:
        text = read_file(path, max_bytes=max_bytes)
        for what, (signs, most) in MOST.items():
            if sum(map(text.count, signs)) > most * max(1, max_bytes // MAX_BYTES):
                raise CertificateError(f"it has more than {most:,} {what}.")
        data: object = json.loads(text.decode(), object_pairs_hook=_once)
        claims = [convert(item) for item in items(data, None, "the file")]
        if not claims:
            raise CertificateError("it holds none.")
    except (StorageError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"{os.fspath(path)} must hold certificates, as `capacity {command} --certificate` "
            f"writes them; {_reason(error)}"
        ) from None
    return claims


def _reason(error: Exception) -> str:
    """Explain why a file holds no claims, without the words of Python's errors."""
    if isinstance(error, CertificateError):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        why = f"it isn't JSON, at line {error.lineno}, column {error.colno}"
    elif isinstance(error, StorageError):
        why = error.reason
    elif isinstance(error, UnicodeDecodeError):
        why = "it isn't text in UTF-8"
    elif isinstance(error, RecursionError):
        why = "its lists are nested too deeply"
    else:
        why = str(error)
    return f"{why.rstrip('.')}."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of distinct keys; of a key with two values, readers might take different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        again = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise CertificateError(f"the key {shown(again)} comes twice in one object.")
    return found
