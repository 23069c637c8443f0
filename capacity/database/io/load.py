"""From a file on disk to bytes whose format is known; nothing is ever fetched.

A file is read whole, checked, and only then parsed, so that nothing half-loaded is returned:
gzip, bzip2, xz and zstandard are undone by their magic bytes and under a size cap; a UTF-8 byte
order mark is dropped; binary files and other encodings are refused by name. The format is guessed
from the content first and the name second: ``@prefix`` in a ``.nt`` file is Turtle.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from capacity.database.policy import MultiPolicy
from capacity.errors import DatabaseFormatError, MultiValuedError, StorageError
from capacity.limits import shown
from capacity.safe_files import read_file, read_pieces

if TYPE_CHECKING:
    from capacity.database.facts import Database

Format: TypeAlias = Literal[
    "turtle", "ntriples", "nquads", "trig", "n3", "rdfxml", "jsonld", "tsv", "csv"
]
TABLES: tuple[Format, ...] = ("tsv", "csv")
MAX_BYTES = 4 * 2**30

# names, file extensions and media types, all in lower case
ALIASES: dict[Format, tuple[str, ...]] = {
    "turtle": ("turtle", "ttl", "text/turtle"),
    "ntriples": ("ntriples", "nt", "n-triples", "application/n-triples"),
    "nquads": ("nquads", "nq", "n-quads", "application/n-quads"),
    "trig": ("trig", "application/trig"),
    "n3": ("n3", "text/n3"),
    "rdfxml": ("rdfxml", "rdf", "owl", "xml", "rdf/xml", "application/rdf+xml"),
    "jsonld": ("jsonld", "json-ld", "json", "application/ld+json"),
    "tsv": ("tsv", "tab", "text/tab-separated-values"),
    "csv": ("csv", "text/csv"),
}
FORMATS: dict[str, Format] = {alias: name for name, all_ in ALIASES.items() for alias in all_}


@dataclass(frozen=True)
class Content:
    """A file's bytes, decompressed and known to be UTF-8, with what to call it."""

    name: str
    data: bytes
    sha256: str


def load(
    path: str | os.PathLike[str], *, format: str | None = None, multi: MultiPolicy | None = None
) -> Database:
    """Read a file of facts: RDF in any common format, or a table of three columns.

    Parameters
    ----------
    path : path
        Maybe compressed (gzip, bzip2, xz, zstandard); ``-`` is standard input.
    format : str, optional
        A name, extension or media type of `ALIASES`; guessed if left out.
    multi : MultiPolicy, optional
        What to do with multi-valued pairs; left out: ``keep``, with a warning.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read as a database: missing, empty, binary, broken or without facts.
    MultiValuedError
        As the policy says.
    """
    content = read(path)
    chosen = resolve_format(content, format)
    try:
        if chosen in TABLES:
            from capacity.database.io.tables import parse_table

            return parse_table(content, chosen, terms="label", multi=multi)
        from capacity.database.io.rdf import parse_rdf

        return parse_rdf(content, chosen, graph=None, multi=multi)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None


def resolve_format(content: Content, format: str | None) -> Format:
    """The named format, or the one that the content and the name suggest.

    Raises
    ------
    DatabaseFormatError
        For an unknown name, or where nothing gives the format away.
    """
    if format is not None:
        if format.lower() not in FORMATS:
            raise DatabaseFormatError(
                content.name,
                f"unknown format {shown(format)}",
                advice=f"Use one of {', '.join(ALIASES)}.",
            )
        return FORMATS[format.lower()]
    guess = guess_format(content)
    if guess is None:
        raise DatabaseFormatError(
            content.name,
            "neither its content nor its name tells the format",
            advice=f"Say which with format: {', '.join(ALIASES)}.",
        )
    return guess


def read(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Content:
    """Read a file whole, undo its compression, and check that it is text in UTF-8.

    Raises
    ------
    DatabaseFormatError
        If there is no such file, or it isn't regular, empty, over `max_bytes`, binary, or not
        UTF-8.
    """
    try:
        raw = read_file(path, max_bytes=max_bytes)
    except StorageError as error:
        raise DatabaseFormatError(error.path, error.reason, advice=error.advice) from None
    return check(os.fspath(path), raw, max_bytes=max_bytes)


def check(name: str, raw: bytes, *, max_bytes: int = MAX_BYTES) -> Content:
    """Turn raw bytes into checked `Content`; raises as `read` does."""
    data = _decompressed(name, raw, max_bytes)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DatabaseFormatError(
            name,
            "the text is encoded in UTF-16; it must be UTF-8",
            advice="Convert it: iconv -f UTF-16 -t UTF-8.",
        )
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise DatabaseFormatError(name, "the file is empty", advice="It must hold facts.")
    if b"\0" in data:
        raise DatabaseFormatError(
            name,
            "the file is binary, it holds NUL bytes",
            advice="Give RDF text (Turtle, N-Triples, ...) or a table (TSV, CSV).",
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatabaseFormatError(
            name,
            f"byte 0x{data[error.start]:02x} isn't UTF-8",
            line=line,
            advice="If it is text in Latin-1, convert it: iconv -f LATIN1 -t UTF-8.",
        ) from None
    return Content(name, data, hashlib.sha256(raw).hexdigest())


def _decompressed(name: str, raw: bytes, max_bytes: int) -> bytes:
    kind = next((k for magic, k in _MAGIC.items() if raw.startswith(magic)), None)
    # "BZh" may begin a word; the block size and the first block's mark don't
    if kind is None or (kind == "bzip2" and not re.match(rb"BZh[1-9]1AY&SY", raw)):
        return raw
    try:
        return read_pieces(name, _open(kind, raw), max_bytes=max_bytes)
    except StorageError:
        raise DatabaseFormatError(
            name,
            f"it holds more than {max_bytes:,} bytes, decompressed",
            advice="Split it, or take a part of it.",
        ) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DatabaseFormatError(
            name, f"the {kind} stream is broken ({error})", advice="Fetch or compress it again."
        ) from None


_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def _open(kind: str, raw: bytes) -> Any:
    stream = io.BytesIO(raw)
    if kind == "gzip":
        return gzip.open(stream)
    if kind in ("bzip2", "xz"):
        return _Streams(bz2.BZ2Decompressor if kind == "bzip2" else lzma.LZMADecompressor, raw)
    import pyarrow

    return pyarrow.CompressedInputStream(stream, "zstd")


class _Streams:
    """Concatenated bzip2 or xz streams; the library's reader drops one that is broken."""

    def __init__(self, make: Callable[[], Any], raw: bytes) -> None:
        self.make, self.raw, self.current = make, raw, make()

    def read(self, size: int) -> bytes:
        while True:
            if self.current.eof:
                self.raw = self.current.unused_data.lstrip(b"\0")
                if not self.raw:
                    return b""
                self.current = self.make()
            piece = self.current.decompress(self.raw, size)
            self.raw = b""
            if piece:
                return piece
            if self.current.needs_input and not self.current.eof:
                raise EOFError("it ends too early")


_XML = re.compile(r"<\?xml|<!DOCTYPE|<!--|<rdf:RDF|<[\w.-]+(:[\w.-]+)?\s+xmlns")
_DIRECTIVE = re.compile(r"@?(prefix|base|version)\b", re.IGNORECASE)
_N_STATEMENT = re.compile(r"(<[^>]*>|_:\S+)\s*<[^>]*>\s*.*\.\s*(#.*)?")


def guess_format(content: Content) -> Format | None:
    """Guess by content, then by name; None if neither tells."""
    suffixes = [s[1:].lower() for s in Path(content.name).suffixes]
    while suffixes and suffixes[-1] in ("gz", "bz2", "xz", "zst"):
        suffixes.pop()
    by_name = FORMATS.get(suffixes[-1]) if suffixes else None
    if by_name in TABLES:
        return by_name
    possible = _possible_formats(content)
    if by_name in possible or not possible:
        return by_name
    # two tabs don't make a table of what is named as RDF: its parser shall say what is wrong
    return by_name if by_name and possible == ["tsv"] else possible[0]


def _possible_formats(content: Content) -> list[Format]:
    """What the first line that isn't a comment can be, the likeliest first."""
    head = content.data[:65536].decode("utf-8", "ignore")
    first = next((s for line in head.splitlines() if (s := line.strip()) and s[0] != "#"), "")
    if re.match(r"<!DOCTYPE html|<html", first, re.IGNORECASE):
        raise DatabaseFormatError(
            content.name, "it is an HTML page", advice="Download the RDF file itself."
        )
    if _XML.match(first):
        return ["rdfxml"]
    if first.startswith("{"):
        return ["jsonld"] if re.match(r'\s*\{\s*["}]', head) else ["trig", "jsonld"]
    if first.startswith("["):
        return ["jsonld", "turtle", "trig", "n3"] if re.match(r"\s*\[\s*[{\]]", head) else [
            "turtle", "trig", "n3", "jsonld",
        ]  # fmt: skip
    if _DIRECTIVE.match(first):
        # TriG is Turtle with graphs
        graphs = re.search(r"^[ \t]*(GRAPH\b|[^#\n]*\{)", head, re.M)
        return ["trig" if graphs else "turtle", "turtle", "trig", "n3"]
    if first.startswith(("<", "_:")):
        # N-Quads holds N-Triples, and TriG holds Turtle
        line_format: list[Format] = ["nquads", "ntriples"]
        other: list[Format] = ["trig", "turtle", "n3"]
        return line_format + other if _N_STATEMENT.fullmatch(first) else other + line_format
    return ["tsv"] if first.count("\t") == 2 else []
