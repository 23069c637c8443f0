"""Keys of plain lines of N-Triples and N-Quads, by compiled code; of other lines by the parser.

`capacity.database.io.rdf.lines.scanning` defines what is plain. A text that the parser must see as
a whole, because of an error or a statement of several lines, is left to it (`UnsuitedError`).
"""

from __future__ import annotations

import codecs
import re
import uuid
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.database.io.files.pieces import UnsuitedError
from capacity.database.io.rdf.lines.columns import rewritten
from capacity.database.io.rdf.lines.scanning import Tails, scan
from capacity.database.io.rdf.quads import SYNTAXES
from capacity.database.terms.columns import compute
from capacity.database.terms.grammar import XSD_STRING
from capacity.stores.lines.key_columns import key_column
from capacity.stores.scratch.keys import keys_of_quads

_FEED = ord("\n")
# characters, as U+007F, that the parser's texts have escapes for, and scanned lines as they are
_ESCAPED = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_LANGUAGES = re.compile(r"rdf-syntax-ns#(langString|dirLangString)>")
_WIDTHS = {"ntriples": 3, "nquads": 4}


def plain_batches(
    chunks: Iterable[bytes], format: str, file: int | None, max_term_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the keys of facts, of each chunk of whole lines a batch or two.

    Parameters
    ----------
    chunks : iterable of bytes
        The text, in pieces of whole lines.
    format : {'ntriples', 'nquads'}
        Its format.
    file : int or None
        Number of the file, if there are several: blank nodes of two files are two.
    max_term_bytes : int
        Most bytes of a term.

    Raises
    ------
    UnsuitedError
        If the parser must see the text as a whole.
    """
    reader = _Scanner(format, file, max_term_bytes)
    between = f"<x:{uuid.uuid4().hex}>"
    for lines in chunks:
        _refuse(lines)
        batch, others = reader.scanned(lines, trusted=False)
        if batch.num_rows:
            yield batch
        if len(others):
            again = rewritten(lines, others, SYNTAXES[format], between)
            batch, left = reader.scanned(again, trusted=True)
            yield batch.filter(compute().not_equal(batch["s"], between))
            if len(left):
                yield _parsed(again, left, format, file)


class _Scanner:
    """Reader of the keys of plain lines."""

    def __init__(self, format: str, file: int | None, max_term_bytes: int) -> None:
        self._width, self._tails, self._most = _WIDTHS[format], Tails(), max_term_bytes
        self._prefix = np.frombuffer(b"" if file is None else b"f%d." % file, np.uint8)

    def scanned(self, lines: bytes, *, trusted: bool) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """Return the keys of plain lines, and where the others are, as `scan` has them.

        Raises
        ------
        UnsuitedError
            For a term that is too long, and a datatype that the parser must see.
        """
        width, tails = self._width, self._tails
        # as `scan` is compiled for, though nothing is overwritten here
        data = np.array(np.frombuffer(lines, np.uint8))
        most = int(np.count_nonzero(data == _FEED)) + 1
        begins, ends, codes = (np.empty(most * width, np.int32) for _ in range(3))
        hashes, others = np.empty(most * width, np.uint64), np.empty((most, 3), np.int64)
        plain, strange = scan(data, width, trusted, True, begins, ends, codes, hashes, others,
                              tails.slots, tails.starts, tails.pool, tails.counts)  # fmt: skip
        n = plain * width
        if n and (ends[:n] - begins[:n]).max() > self._most:
            # the parser refuses it
            raise UnsuitedError
        texts, tail_starts = _key_tails(tails)
        columns = [
            key_column(
                data, begins, ends, codes, column, width, texts, tail_starts, self._prefix, plain
            )
            for column in range(3)
        ]
        return pa.RecordBatch.from_arrays(columns, [*"spo"]), others[:strange]


def _refuse(lines: bytes) -> None:
    """Raise UnsuitedError for what isn't scanned as it is."""
    try:
        codecs.utf_8_decode(lines, "strict", True)
    except UnicodeDecodeError as error:
        raise UnsuitedError from error
    # a search for one byte takes a tenth of the time of one for three
    if b"\x7f" in lines or (b"\xef" in lines and any(one in lines for one in _ESCAPED)):
        raise UnsuitedError


def _key_tails(tails: Tails) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the tails of literals as keys have them, and where each begins."""
    texts = tails.texts()
    if any(map(_LANGUAGES.search, texts)):
        raise UnsuitedError
    keys = [
        "" if text == f"^^<{XSD_STRING}>" else text.lower() if text.startswith("@") else text
        for text in texts
    ]
    written = [key.encode() for key in keys]
    return (
        np.frombuffer(b"".join(written), np.uint8),
        np.concatenate([[0], np.cumsum(list(map(len, written)))]).astype(np.int64),
    )


def _parsed(
    lines: bytes, others: NDArray[np.int64], format: str, file: int | None
) -> pa.RecordBatch:
    """Parse lines of the parser's own, which hold triple terms."""
    text = b"".join(lines[begin:end] for begin, end, _ in others.tolist())
    columns = keys_of_quads(ox.parse(text, format=SYNTAXES[format]), file)
    keys = [pa.array(column, pa.large_string()) for column in columns]
    return pa.RecordBatch.from_arrays(keys, [*"spo"])
