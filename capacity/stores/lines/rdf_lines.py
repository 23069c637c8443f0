"""Facts of RDF as keys: of plain lines by compiled code, and else of the parser's quads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox

from capacity.database.io.files.content import refuse_excess
from capacity.database.io.files.formats import Format
from capacity.database.io.files.pieces import LARGE, UnsuitedError
from capacity.database.io.rdf.graphs import check_graph, find_graph
from capacity.database.io.rdf.quads import base_of, refuse_formulas
from capacity.database.io.reading import Reading
from capacity.database.terms.term import Ids
from capacity.errors import DatabaseFormatError
from capacity.kept_code import pays
from capacity.reading_limits import Limits
from capacity.stores.lines.sources import LINES, CheckedLines, Lines, Omission, Source, WholeText
from capacity.stores.scratch.keys import keys_of_quads
from capacity.stores.scratch.scratch import HELD, ROWS, Scratch
from capacity.stores.scratch.streams import opened

if TYPE_CHECKING:
    import pyarrow as pa

    from capacity.stores.scratch.streams import Stream

# bytes from which compiled code pays if it is kept, and if it isn't: numba is imported in a second,
# which the parser takes longer for 15 MB, and compiles in seven, for 100 MB
KEPT, UNKEPT = 2**24, 3 * 2**25
# quads that are parsed before their size is looked at, and that are held as objects of Python
_AT_ONCE = 64
_HELD = ROWS // 12


def stage_rdf(
    db: Scratch, where: str, format: Format, reading: Reading, file: int | None
) -> tuple[str, ...]:
    """Append the facts of a file of RDF to the table ``keyed``.

    N-Triples and N-Quads are read in a stream. The text of any other format, which is checked as a
    whole, is held; its facts aren't.

    Parameters, what is returned and errors are those of `capacity.stores.staging.stage`; a graph
    that the file hasn't is a `DatabaseFormatError`.
    """
    graph, base = check_graph(reading.graph), base_of(where, reading.base)
    n_rows, notes = None, tuple[str, ...]()
    omission = Omission(format.name, reading.skip_errors) if reading.skip_errors else None
    if format.name in LINES and graph is None:
        n_rows = _stage_plain(db, where, format.name, file, reading.limits, omission)
    if n_rows is None:
        source: Source = Lines(where, format, reading.limits, omission)
        if format.name not in LINES:
            source = WholeText.read(where, format, reading, base, db.memory)
        keep = None
        if graph is not None:
            keep, n_others = _places_of(graph, source)
            notes = (f"{n_others:,} triples in other graphs are omitted.",)
        with source.opened() as (quads, progress):
            batches = _batches(quads, source, file, keep)
            n_rows = db.append("keyed", batches, lambda _: db.tell(*progress()))
    if not n_rows:
        raise DatabaseFormatError(
            where,
            "no triples were found" + (" in the default graph" if graph is not None else ""),
            format=format.name,
            advice="Check the file and its format.",
        )
    return notes if omission is None else (*notes, *omission.notes(where))


def _places_of(graph: str, source: Source) -> tuple[set[int], int]:
    """Find a graph, as `find_graph` does, by its places in the order of the graphs in the file.

    A graph without a name has another one each time that the file is parsed. The number of triples
    in other graphs is returned as well.
    """
    counts: Counter[object] = Counter()
    with source.opened() as (quads, _):
        while some := _some(quads, source):
            counts.update(quad.graph_name for quad in some)
        prefixes = getattr(quads, "prefixes", {})
    nodes = list(counts)
    names = source.names_of(nodes)
    by_name = {name: counts[node] for name, node in zip(names, nodes, strict=True)}
    found = find_graph(graph, by_name, prefixes, source.name, source.format.name)
    places = {i for i, name in enumerate(names) if name == found}
    return places, counts.total() - by_name.get(found or "", 0)


def _stage_plain(
    db: Scratch,
    where: str,
    format: str,
    file: int | None,
    limits: Limits,
    omission: Omission | None,
) -> int | None:
    """Append the facts by compiled code, and return their number; None if the parser must."""
    with opened(where, limits) as stream:
        source = Path(__file__).with_name("key_columns.py")
        if stream.size < LARGE or not pays(
            stream.size, source, "_copied", kept=KEPT, unkept=UNKEPT
        ):
            return None
        # numba takes longer to import than a small file to parse
        from capacity.stores.lines.plain_lines import plain_batches

        chunks = CheckedLines(stream, omission).chunks()
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
        refuse_excess(stream.name, format, limits.excess(rows=rows))
        yield batch


def _teller(db: Scratch, stream: Stream) -> Callable[[int], object]:
    return lambda _: db.tell(f"bytes of {stream.name}", stream.done, stream.size)


def _batches(
    quads: Iterator[ox.Quad],
    source: Source,
    file: int | None,
    keep: set[int] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of keys, each of some thousand facts, or fewer if these are long."""
    import pyarrow as pa

    limits = source.limits.of(Path(source.name).stat().st_size)
    more, n_rows, text, graphs = True, 0, 0, Ids()
    while more:
        held: list[ox.Quad] = []
        size = 0
        while more and len(held) < _HELD and size < HELD // 2:
            some = _some(quads, source)
            more = bool(some)
            n_rows += len(some)
            refuse_excess(source.name, source.format.name, limits.excess(rows=n_rows))
            refuse_formulas(source.name, source.format.name, (quad.graph_name for quad in some))
            if keep is not None:
                some = [quad for quad in some if graphs[quad.graph_name] in keep]
            held += some
            size += sum(len(getattr(quad.object, "value", "")) for quad in some)
        keys = keys_of_quads(held, file)
        # a key is longer than its term, and a character takes four bytes at most
        if any(4 * len(key) > limits.max_term_bytes for column in keys for key in column):
            nodes = [n for quad in held for n in (quad.subject, quad.predicate, quad.object)]
            longest = max(len(getattr(node, "value", "").encode()) for node in nodes)
            refuse_excess(source.name, source.format.name, limits.excess(term=longest))
        text += sum(len(key) for column in keys for key in column)
        refuse_excess(source.name, source.format.name, limits.excess(text=text))
        columns = [pa.array(column, pa.string()) for column in keys]
        yield pa.RecordBatch.from_arrays(columns, ["s", "p", "o"])


def _some(quads: Iterator[ox.Quad], source: Source) -> list[ox.Quad]:
    try:
        return list(islice(quads, _AT_ONCE))
    except (SyntaxError, MemoryError, ValueError) as error:
        # errors of the stream are ValueErrors as well, and complete
        if isinstance(error, DatabaseFormatError):
            raise
        raise source.error(error) from None
