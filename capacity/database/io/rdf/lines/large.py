"""Read large RDF as columns: N-Triples and N-Quads at once, other formats through these.

The parser writes other formats as N-Triples or N-Quads, which takes less time than its triples one
by one do. What isn't plain, and every error, is left to `capacity.database.io.rdf.parsing`, which
reads any RDF in the same way, and more slowly.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.from_columns import from_columns
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.formats import Format
from capacity.database.io.files.pieces import PIECE, UnsuitedError, compiled_pays, pieces_of
from capacity.database.io.rdf.annotations import REIFICATIONS
from capacity.database.io.rdf.graphs import DEFAULT, find_graph
from capacity.database.io.rdf.labels import has_digits
from capacity.database.io.rdf.lines.columns import Found, LineReader
from capacity.database.io.rdf.quads import (
    FREE_EXPANSION,
    MAX_EXPANSION,
    SYNTAXES,
    base_of,
    checked_text,
)
from capacity.database.io.rdf.rdfxml.reading import RdfXmlLines
from capacity.database.io.reading import Reading
from capacity.database.policy import MultiPolicy
from capacity.database.terms.columns import CODES, NO_GRAPH, compute
from capacity.database.terms.term import ANONYMOUS, OF_JSON
from capacity.errors import DatabaseFormatError
from capacity.progress import Bar, bar

_WIDTHS = {"ntriples": 3, "turtle": 3, "rdfxml": 3, "nquads": 4, "trig": 4, "jsonld": 4}


def read_large(
    content: Content,
    format: Format,
    reading: Reading,
    *,
    graph: str | None,
    multi: MultiPolicy | None,
) -> Database | None:
    """Read a checked text as columns, if it can be read so.

    Parameters
    ----------
    content : Content
        The file.
    format : Format
        A format of RDF.
    reading : Reading
        The caller's options for it.
    graph : str or None
        Name of the graph to read, or None for all.
    multi : MultiPolicy or None
        Policy for multi-valued pairs.

    Returns
    -------
    Database or None
        The same as `parse_rdf_content` makes; None if it must read the text.

    Raises
    ------
    InvalidArgumentError
        If `base` isn't an absolute IRI.
    DatabaseFormatError
        If there is no such graph, the text would harm the parser, or has too many facts.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    width = _WIDTHS.get(format.name)
    if width is None or (graph is not None and width == 3):
        return None
    base_of(content.name, reading.base)
    try:
        with bar() as progress:
            if format.name in ("ntriples", "nquads"):
                found, prefixes = _lines(content, format.name, width, progress), {}
            else:
                where, data = checked_text(content, format, reading.base, reading.contexts)
                if has_digits(content.data, data):
                    # literals may hold what names are written as
                    return None
                found, prefixes = _written(content, data, width, format, where, progress)
        _refuse_annotations(found)
        found.terms.texts = _stable(found)
        rows, other = found.rows, 0
        if graph is not None:
            n = sum(map(len, rows))
            rows = _of_graph(graph, found, rows, prefixes, content.name, format.name)
            other = n - sum(map(len, rows))
        if not any(map(len, rows)):
            return None
    except UnsuitedError:
        return None
    source = content.source(format.name, (), other)
    content.drop_text()
    return from_columns(found.terms, rows, multi=multi, prefixes=prefixes, source=source)


def _lines(content: Content, format: str, width: int, progress: Bar) -> Found:
    reader = LineReader(width, compiled=_compiled(content))
    for piece in pieces_of(content.data, partial(progress, "reading")):
        reader.feed(piece)
        refuse_excess(content.name, format, content.limits.excess(rows=reader.n_rows))
    return reader.found()


def _compiled(content: Content) -> bool:
    return compiled_pays(len(content.data), Path(__file__).with_name("scanning.py"), "scan")


class _Sink:
    """Writer of lines that feeds them to a reader, and ends where they are too long or too many."""

    def __init__(
        self, reader: LineReader, most: int, most_rows: int, tell: Callable[[], object]
    ) -> None:
        self._reader, self._left, self._most_rows, self._tell = reader, most, most_rows, tell
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, piece: bytes) -> int:
        self._parts.append(bytes(piece))
        self._size += len(piece)
        # within a long term there is no line to feed, however many pieces it has
        if self._size > PIECE and b"\n" in piece:
            self._feed()
        return len(piece)

    def flush(self) -> None:
        """Do nothing; `end` feeds the rest."""

    def end(self) -> None:
        self._feed()
        if self._size:
            raise UnsuitedError

    def _feed(self) -> None:
        lines = b"".join(self._parts)
        end = lines.rfind(b"\n") + 1
        self._left -= end
        if self._left < 0:
            raise UnsuitedError
        self._reader.feed(memoryview(lines)[:end])
        if self._reader.n_rows > self._most_rows:
            raise UnsuitedError
        self._parts, self._size = [lines[end:]], len(lines) - end
        self._tell()


def _written(
    content: Content, data: bytes, width: int, format: Format, base: str, progress: Bar
) -> tuple[Found, Mapping[str, str]]:
    """Have the parser write a text as lines, and read these."""
    syntax, reader = (
        SYNTAXES[format.name],
        LineReader(width, trusted=True, compiled=_compiled(content)),
    )
    # the parser reads some 2 kB at once, for which a function of Python would take too long
    text, xml = io.BytesIO(data), RdfXmlLines(content, base)
    most = max(FREE_EXPANSION, MAX_EXPANSION * len(data))
    is_xml = syntax == ox.RdfFormat.RDF_XML
    sink = _Sink(
        reader,
        most,
        content.limits.rows,
        lambda: progress("reading", xml.position if is_xml else text.tell(), len(data)),
    )
    lines = ox.RdfFormat.N_TRIPLES if width == 3 else ox.RdfFormat.N_QUADS
    try:
        parser = xml if is_xml else ox.parse(text, format=syntax, base_iri=base)
        if isinstance(parser, RdfXmlLines):
            for piece in parser:
                sink.write(piece)
        else:
            ox.serialize(parser, cast("IO[bytes]", sink), format=lines)
        sink.end()
    except DatabaseFormatError:
        # of `RdfXmlLines`, with its line
        raise
    except (SyntaxError, ValueError, MemoryError, UnsuitedError) as error:
        refuse_excess(content.name, format.name, content.limits.excess(rows=reader.n_rows))
        raise UnsuitedError from error
    return reader.found(), parser.prefixes


def _refuse_annotations(found: Found) -> None:
    """Raise UnsuitedError if facts may be about others."""
    predicate = np.zeros(len(found.terms.kinds), bool)
    for rows in found.rows:
        predicate[rows[:, 1]] = True
    pc = compute()
    iris = found.terms.texts.take(np.flatnonzero(predicate))
    for parts in REIFICATIONS:
        if pc.sum(pc.is_in(pa.array(parts, iris.type), iris)).as_py() == len(parts):
            raise UnsuitedError


def _of_graph(
    graph: str,
    found: Found,
    rows: list[NDArray[np.int32]],
    prefixes: Mapping[str, str],
    source: str,
    format: str,
) -> list[NDArray[np.int32]]:
    """Keep the facts of a graph."""
    counts: dict[int, int] = {}
    for graphs in found.graphs:
        for i, n in zip(*(a.tolist() for a in np.unique(graphs, return_counts=True)), strict=True):
            counts[i] = counts.get(i, 0) + n
    names: dict[int, str] = {}
    for i in counts:
        kind = found.terms.kinds[i]
        if kind == CODES["blank"]:
            # whether the file names it so, the text must tell
            raise UnsuitedError
        names[i] = DEFAULT if kind == NO_GRAPH else found.terms.texts[i].as_py()
    by_name: dict[str, int] = {}
    for i, name in names.items():
        by_name[name] = by_name.get(name, 0) + counts[i]
    name = find_graph(graph, by_name, prefixes, source, format)
    kept = [i for i, one in names.items() if one == name]
    return [piece[np.isin(graphs, kept)] for piece, graphs in zip(rows, found.graphs, strict=True)]


def _stable(found: Found) -> pa.LargeStringArray:
    """Name all blank nodes by their order in the file, as `with_stable_names` does."""
    pc, blank = compute(), np.zeros(len(found.terms.kinds), bool)
    for rows in found.rows:
        blank[rows] = True
    blank &= found.terms.kinds == CODES["blank"]
    names = found.terms.texts.filter(pa.array(blank)).dictionary_encode()
    if not pc.any(pc.match_substring_regex(names.dictionary, f"^{ANONYMOUS}$|{OF_JSON}")).as_py():
        return found.terms.texts
    name = np.full(len(blank), -1)
    name[blank] = names.indices
    order, known = np.full(len(names.dictionary), -1), 0
    for rows in found.rows:
        ids = name[rows.ravel()]
        ids = ids[ids >= 0]
        new, first = np.unique(ids[order[ids] < 0], return_index=True)
        order[new[np.argsort(first)]] = known + np.arange(len(new))
        known += len(new)
    fresh = pa.array([f"b{i}" for i in order[name[blank]].tolist()], found.terms.texts.type)
    return pc.replace_with_mask(found.terms.texts, pa.array(blank), fresh)
