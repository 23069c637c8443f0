"""Published schemes on the command line: in the place of a certificate, and as a start."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.cli.output import print_json
from capacity.errors import InvalidArgumentError, StorageError
from capacity.tensor.sparse import SparseTensor
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.database.facts import Database
    from capacity.rank.factors import Factors

# what an object of JSON has if it is a scheme, and what one has if it is a certificate
_KEYS = re.compile(rb'"(u|U|A|multiplications|matrices|factors)"\s*:')
_NAMED = re.compile(rb'"format"\s*:\s*"')


def is_scheme(path: Path) -> bool:
    """Return whether a file is a scheme, by its name, and of JSON by its keys."""
    from capacity.rank.schemes.files import MOST_BYTES
    from capacity.rank.schemes.format import format_of
    from capacity.safe_files import read_file

    format = format_of(path.name)
    if format is None or format.name != "json":
        return format is not None
    # only a scheme is compressed
    if path.name.lower().endswith(".gz"):
        return True
    try:
        raw = read_file(path, max_bytes=MOST_BYTES)
    except StorageError:
        return False
    # nothing is parsed before it is known whose limits hold: certificates are a list, or name a
    # format in words
    object_ = raw.lstrip().startswith(b"{") and _NAMED.search(raw) is None
    return object_ and _KEYS.search(raw) is not None


def print_verdict(path: Path, of: Database | SparseTensor, *, as_json: bool) -> int:
    """Check a scheme, print the verdict, and return the code of the exit.

    Raises
    ------
    InvalidArgumentError
        If it is to be a scheme of facts, or its shape is another.
    DecompositionFormatError
        If it can't be read.
    """
    row, turned = _checked(path, of)
    words = _in_words(row, turned=turned)
    if as_json:
        upper = row["value"] if row["proved"] else None
        reason = None if row["proved"] else words
        print_json({"proved": row["proved"], "certificates": [row],
                    "lower": None, "upper": upper, "reason": reason})  # fmt: skip
    else:
        print(words)
    return 0 if row["proved"] else 1


def _checked(path: Path, of: Database | SparseTensor) -> tuple[dict[str, Any], bool]:
    """Check a scheme, and return its verdict as that of a certificate, and whether C was turned."""
    from capacity.rank.decompositions import verify_decomposition
    from capacity.rank.schemes.files import read_scheme

    if not isinstance(of, SparseTensor):
        raise InvalidArgumentError(
            f"{path}: a scheme is about a tensor; got facts. Pass a tensor's file, or its name, "
            "such as matrices:3x3x3."
        )
    factors, turned = read_scheme(path, of)
    shape = tuple(len(matrix) for matrix in factors.matrices)
    if shape != of.shape:
        raise InvalidArgumentError(
            f"{path}: it is for the shape {shape}; the tensor has {of.shape}."
        )
    verdict = verify_decomposition(of, factors)
    row = {"quantity": "rank", "side": "upper", "value": factors.rank, "entries": of.n_entries,
           "proved": verdict.proved, "reason": verdict.reason, "cited": []}  # fmt: skip
    if factors.is_complex:
        row["field"] = "C"
    return row, turned


def _in_words(row: dict[str, Any], *, turned: bool) -> str:
    """Describe a verdict in one line."""
    verdict = "proved" if row["proved"] else f"not proved, {row['reason']}"
    read = " (the file has C transposed)" if turned else ""
    over = " over C" if row.get("field") == "C" else ""
    return visible(
        f"upper bound {row['value']} of the rank{over} by a scheme{read}, for the tensor of "
        f"{row['entries']:,} entries: {verdict}"
    )


def start_of(path: Path | None, of: Database | SparseTensor) -> Factors | None:
    """Read the scheme that a search starts from.

    Raises
    ------
    DecompositionFormatError
        If it can't be read.
    """
    if path is None:
        return None
    from capacity.rank.schemes.files import read_decomposition
    from capacity.rank.verifier.named import tensor_of

    return read_decomposition(os.fspath(path), tensor_of(of))
