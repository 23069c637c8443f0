"""Tables in text: TSV and CSV.

TSV has no quoting; CSV follows RFC 4180. Cells are text: a quote, ``NA``, ``null`` or an empty cell
is a label like any other. A row of nothing but empty cells, and a TSV that was quoted as CSV is,
are refused unless the user says what the table is (`doubts`). What else a table may be, `headers`
and `cells` recognise where it is certain: a header, and N-Triples terms in the cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.files import pieces
from capacity.database.io.files.content import Content, check, refuse_excess
from capacity.database.io.files.formats import FileHead, Format, register_format
from capacity.database.io.tables.cells import cells_of, refuse_labels_like_terms
from capacity.database.io.tables.doubts import (
    is_empty,
    quoted_cell,
    refuse_empty_rows,
    refuse_quoting,
)
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import Columns, TableForm, TableTerms, table_options
from capacity.database.io.tables.rows import read_rows
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.database.terms.n3 import is_term
from capacity.errors import DatabaseFormatError, InvalidArgumentError


def parse_table_content(
    content: Content,
    format: Format,
    *,
    multi: MultiPolicy | None = None,
    table: TableForm | None = None,
    terms: TableTerms | None = None,
    arity: int | None = None,
    columns: Columns | None = None,
    allow_empty: bool = False,
) -> Database:
    """Parse checked content as TSV or CSV.

    Options and errors are those of `capacity.database.read_table`.
    """
    options = table_options(table, terms, arity, columns)
    _refuse_many(content, format.name)
    source = content.source(format.name)
    if len(content.data) >= pieces.LARGE:
        from capacity.database.io.tables.large.reading import read_large_table

        db = read_large_table(content, format.name, options, multi=multi, source=source)
        if db is not None:
            return db
    text = content.data.decode("utf-8")
    rows = list(_split_csv(content, text) if format.name == "csv" else _split_tsv(text))
    _refuse_long(content, format.name, rows)
    read = Table(content.name, format.name, rows)
    if table is None:
        refuse_empty_rows(read)
        if format.name != "csv" and '"' in text:
            refuse_quoting(read)
    return read_rows(read, options, multi=multi, source=source, allow_empty=allow_empty)


def _refuse_many(content: Content, format: str) -> None:
    """Refuse too many rows or cells before one is made.

    Those of CSV are at most as many as its lines and commas, some of which cells may hold. They are
    no more than the bytes, of which one at least is of a cell, so that a file that isn't
    compressed needs no counting.
    """
    most = len(content.data)
    if content.limits.excess(rows=most, cells=most) is None:
        return
    rows = content.data.count(b"\n") + 1
    cells = rows + content.data.count(b"\t" if format == "tsv" else b",")
    refuse_excess(content.name, format, content.limits.excess(rows=rows, cells=cells))


def _refuse_long(content: Content, format: str, rows: list[Row]) -> None:
    """Refuse a cell that is too long, before all that cells are looked at for."""
    most = content.limits.max_term_bytes
    if len(content.data) <= most:
        return
    for _, row in rows:
        if 4 * sum(map(len, row)) > most:
            longest = max(len(cell.encode()) for cell in row)
            refuse_excess(content.name, format, content.limits.excess(term=longest))


def _split_tsv(text: str) -> Iterator[Row]:
    # only \n ends a row: str.splitlines would also cut labels at U+2028 and others
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.removesuffix("\r")
        if bare:
            yield number, tuple(bare.split("\t"))


def _split_csv(content: Content, text: str) -> Iterator[Row]:
    name, most = content.name, content.limits.max_term_bytes
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    # a longer cell would take eight bytes for each of its characters before it is refused
    csv.field_size_limit(most + 1)
    try:
        for row in reader:
            if row:
                yield reader.line_num, tuple(row)
    except csv.Error as error:
        if "field limit" in str(error):
            refuse_excess(name, "csv", content.limits.excess(term=most + 1))
        raise DatabaseFormatError(
            name, str(error), format="csv", line=reader.line_num, advice="Quote as RFC 4180 says."
        ) from None


def write_table(db: Database, format: Format, *, terms: TableTerms | None = None) -> bytes:
    """Write facts as TSV or CSV with a header; options and errors are those of `write`.

    A header of variables, ``?subject ?predicate ?object``, says that the cells are terms, as in
    SPARQL results.
    """
    form, cells = cells_of(db, terms)
    rows = list(cells)
    names = role_names(db.arity)
    if form == "label" and terms is None:
        refuse_labels_like_terms(db)
        _refuse_doubtful(rows, format)
    header = list(names) if form == "label" else [f"?{name}" for name in names]
    text = _joined_by_commas([header, *rows]) if format.name == "csv" else _joined([header, *rows])
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"A label must have a form in UTF-8; one holds {error.object[error.start]!r}, half of "
            "a character. Make a database of other labels first."
        ) from None
    if b"\0" in data:
        try:
            check("it", data)
        except DatabaseFormatError:
            raise InvalidArgumentError(
                "A table of text must not be full of NUL characters, for a file of them is taken "
                "for binary. Write .parquet, or make a database of other labels first."
            ) from None
    return data


def _refuse_doubtful(rows: list[list[str]], format: Format) -> None:
    """Refuse facts that would be refused when they are read."""
    doubt = "a fact of empty labels alone" if any(map(is_empty, rows)) else None
    quoted = quoted_cell((0, tuple(row)) for row in rows) if format.name != "csv" else None
    if quoted is not None:
        doubt = f"the label {quoted[1][0]!r:.60}, which looks quoted as in CSV,"
    if doubt is not None:
        raise InvalidArgumentError(
            f"In a table {doubt} would be refused. Say terms='label', and read the table with "
            'table="long"; or write .parquet.'
        )


def _joined(rows: list[list[str]]) -> str:
    for row in rows:
        for cell in row:
            if any(c in cell for c in "\t\n\r"):
                raise InvalidArgumentError(
                    f"TSV has no quoting, and {cell!r:.60} holds a tab or a line break. Write .csv "
                    "or .parquet."
                )
    return "".join("\t".join(row) + "\n" for row in rows)


def _joined_by_commas(rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    # the line ends of RFC 4180; cells with either of their characters are quoted
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _likelihood(head: FileHead) -> int:
    cells = head.first.split("\t")
    if len(cells) != 3:
        return 0
    # a line of N-Triples ends in a full stop, which no term ends in
    return 9 if all(map(is_term, cells)) else 1


register_format(
    Format("tsv", ("tsv", "tab", "text/tab-separated-values"), "table", parse_table_content,
           _likelihood, write_table)
)  # fmt: skip
register_format(Format("csv", ("csv", "text/csv"), "table", parse_table_content, write=write_table))
