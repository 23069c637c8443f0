"""N-Triples and N-Quads in a stream: whole lines go to the parser, and keys come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox

from capacity.database.io.files.content import refuse_excess
from capacity.database.io.files.pieces import LARGE
from capacity.database.io.rdf.guards.texts import refuse_hostile_turtle
from capacity.database.io.rdf.quads import SYNTAXES, VERSION
from capacity.errors import DatabaseFormatError
from capacity.kept_code import pays
from capacity.reading_limits import Limits
from capacity.stores.scratch.keys import keys_of_nodes
from capacity.stores.scratch.scratch import HELD, ROWS, Scratch
from capacity.stores.scratch.streams import opened

if TYPE_CHECKING:
    import pyarrow as pa

    from capacity.stores.scratch.streams import Stream

LINES = ("ntriples", "nquads")
# bytes from which compiled code pays if it is kept, and if it isn't: numba is imported in a second,
# which the parser takes longer for 15 MB, and compiles in seven, for 100 MB
KEPT, UNKEPT = 2**24, 3 * 2**25
# quads that are parsed before their size is looked at, and that are held as objects of Python
_AT_ONCE = 64
_HELD = ROWS // 12


class _Checked:
    """Reader of whole lines, without directives and nests that the parser doesn't take."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.rest, self.lines = stream, b"", 0
        self.ready, self.given = b"", 0

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes, for the parser has room for no more."""
        if self.given == len(self.ready):
            self.ready, self.given = self._checked(self._whole_lines()), 0
        piece = self.ready[self.given : self.given + size] if size >= 0 else self.ready
        self.given += len(piece)
        return piece

    def chunks(self) -> Iterator[bytes]:
        """Yield all lines, some at a time."""
        while lines := self._checked(self._whole_lines()):
            yield lines

    def _whole_lines(self) -> bytes:
        while piece := self.stream.read():
            whole = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if whole:
                lines, self.rest = self.rest + piece[:whole], piece[whole:]
                return lines
            self.rest += piece
        lines, self.rest = self.rest, b""
        return lines

    def _checked(self, lines: bytes) -> bytes:
        if b"<<" in lines:
            try:
                refuse_hostile_turtle(self.stream.where, lines)
            except DatabaseFormatError as error:
                line = None if error.line is None else error.line + self.lines
                raise DatabaseFormatError(
                    error.source, error.reason, line=line, advice=error.advice
                ) from None
        self.lines += lines.count(b"\n")
        return VERSION.sub(b"", lines) if b"VERSION" in lines else lines


def stage_lines(db: Scratch, where: str, format: str, file: int | None, limits: Limits) -> None:
    """Append the facts of a file of N-Triples or N-Quads to the table ``keyed``.

    Parameters
    ----------
    db : Scratch
        The temporary database.
    where : str
        Path of the file, which may be compressed.
    format : {'ntriples', 'nquads'}
        Its format.
    file : int or None
        Number of the file, if there are several: blank nodes of two files are two.
    limits : Limits
        What it is held to.

    Raises
    ------
    DatabaseFormatError
        For a broken file, with the line, one without facts, or one that passes a limit.
    """
    n_rows = _stage_plain(db, where, format, file, limits)
    if n_rows is None:
        with opened(where, limits) as stream:
            quads = ox.parse(_Checked(stream), format=SYNTAXES[format])  # type: ignore[arg-type]
            batches = _batches(quads, stream, format, file, limits)
            batches = _within(batches, stream, format, limits)
            n_rows = db.append("keyed", batches, _teller(db, stream))
    if not n_rows:
        raise DatabaseFormatError(
            where, "no triples were found", format=format, advice="Check the file and its format."
        )


def _stage_plain(
    db: Scratch, where: str, format: str, file: int | None, limits: Limits
) -> int | None:
    """Append the facts by compiled code, and return their number; None if the parser must."""
    with opened(where, limits) as stream:
        source = Path(__file__).with_name("key_columns.py")
        if stream.size < LARGE or not pays(
            stream.size, source, "_copied", kept=KEPT, unkept=UNKEPT
        ):
            return None
        # numba takes longer to import than a small file to parse
        from capacity.database.io.rdf.lines.columns import UnsuitedError
        from capacity.stores.lines.plain_lines import plain_batches

        chunks = _Checked(stream).chunks()
        batches = plain_batches(chunks, format, file, limits.max_term_bytes)
        batches = _within(batches, stream, format, limits)
        return db.append_all("keyed", batches, _teller(db, stream), UnsuitedError)


def _within(
    batches: Iterator[pa.RecordBatch], stream: Stream, format: str, limits: Limits
) -> Iterator[pa.RecordBatch]:
    """Yield batches as long as there are no more facts than the file may have."""
    limits, rows = limits.of(stream.size), 0
    for batch in batches:
        rows += batch.num_rows
        refuse_excess(stream.where, format, limits.excess(rows=rows))
        yield batch


def _teller(db: Scratch, stream: Stream) -> Callable[[int], object]:
    return lambda _: db.tell(f"bytes of {stream.where}", stream.done, stream.size)


def _batches(
    quads: Iterator[ox.Quad], stream: Stream, format: str, file: int | None, limits: Limits
) -> Iterator[pa.RecordBatch]:
    """Parse batches of keys, each of some thousand facts, or fewer if these are long."""
    import pyarrow as pa

    more = True
    while more:
        held: list[ox.Quad] = []
        start = stream.passed
        while len(held) < _HELD and stream.passed - start < HELD // 2:
            some = _some(quads, stream.where, format)
            held += some
            if not some:
                more = False
                break
        roles = (
            [quad.subject for quad in held],
            [quad.predicate for quad in held],
            [quad.object for quad in held],
        )
        keys = [keys_of_nodes(nodes, file) for nodes in roles]
        # a key is longer than its term, and a character takes four bytes at most
        if any(4 * len(key) > limits.max_term_bytes for column in keys for key in column):
            nodes = [node for role in roles for node in role]
            longest = max(len(getattr(node, "value", "").encode()) for node in nodes)
            refuse_excess(stream.where, format, limits.excess(term=longest))
        columns = [pa.array(column, pa.string()) for column in keys]
        yield pa.RecordBatch.from_arrays(columns, ["s", "p", "o"])


def _some(quads: Iterator[ox.Quad], where: str, format: str) -> list[ox.Quad]:
    try:
        return list(islice(quads, _AT_ONCE))
    except SyntaxError as error:
        reason, line, advice = str(error.msg), error.lineno, "Mend the file from that line on."
    except MemoryError:
        reason, line = "a term is longer than 16 MiB, the most that the parser reads", None
        advice = "Shorten it, or store it elsewhere and give its IRI."
    except ValueError as error:
        # errors of the stream are ValueErrors as well, and complete
        if isinstance(error, DatabaseFormatError):
            raise
        reason, line, advice = str(error), None, "Mend the file."
    raise DatabaseFormatError(where, f"{reason:.400}", format=format, line=line, advice=advice)
