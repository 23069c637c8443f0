"""Tables in text: TSV and CSV.

TSV has no quoting; CSV follows RFC 4180. Cells are text: a quote, ``NA``, ``null`` or an empty cell
is a label like any other. A row of nothing but empty cells, and a TSV that was quoted as CSV is,
are refused unless the caller specifies what the table is (`table`). What else a table may be,
`headers` and `cells` recognise where it is certain: a header, and N-Triples terms in the cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from capacity.checks import shown
from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.files import pieces
from capacity.database.io.files.content import Content, Text, check, refuse_excess
from capacity.database.io.files.formats import FileHead, Format, register_format
from capacity.database.io.reading import Reading
from capacity.database.io.table_options import TableTerms
from capacity.database.io.tables.cells import cells_of, read_rows, refuse_labels_like_terms
from capacity.database.io.tables.comments import Uncommented, comments_before
from capacity.database.io.tables.folders import has_folders_of_roles, with_folders
from capacity.database.io.tables.headers import Row, sssom_order
from capacity.database.io.tables.table import (
    SEPARATORS,
    Table,
    is_empty,
    quoted_cell,
    refuse_empty_rows,
    refuse_quoting,
    within,
)
from capacity.database.policy import MultiPolicy
from capacity.database.terms.grammar import is_term
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.reading_limits import FREE_CELLS


def parse_table_content(
    content: Content, format: Format, reading: Reading, *, multi: MultiPolicy | None = None
) -> Database:
    """Parse checked content as a table whose rows the format's `split` yields.

    Options and errors are those of `capacity.database.read_table`.
    """
    # cells of folders are added to rows alone
    is_whole = format.name in SEPARATORS and not has_folders_of_roles(content.name)
    if len(content.data) >= pieces.LARGE and is_whole:
        from capacity.database.io.tables.plain import read_plain

        db = read_plain(content, format.name, reading, multi=multi)
        if db is not None:
            return db
    text = uncommented(content, format, reading)
    table = Table(content.name, format.name, list(rows_of_text(text, format, reading)))
    if reading.table is None:
        refuse_empty_rows(table)
        if format.name == "tsv" and b'"' in content.data:
            refuse_quoting(table)
    source = content.source(format.name, text.notes)
    table, options = with_folders(table, reading.of_table)
    return read_rows(table, options, multi=multi, source=source, allow_empty=reading.allow_empty)


def uncommented(text: Text, format: Format, reading: Reading) -> Uncommented:
    """Take the lines of comments for no rows, those that are recognised or that the user marks."""
    separator = comments_before(format.name, reading)
    return Uncommented(text, separator, reading.comment, has_quotes=format.name == "csv")


def rows_of_text(text: Text, format: Format, reading: Reading) -> Iterator[Row]:
    """Yield the rows of a table of text, within the limits of its file.

    Raises
    ------
    DatabaseFormatError
        As `split` of the format does, and for too many or too long rows and cells.
    """
    rows = () if format.split is None else format.split(text, reading)
    if format.name not in SEPARATORS:
        rows = _of_texts(text.name, format.name, rows)
    return within(text.name, format.name, rows, text.limits)


def _of_texts(name: str, format: str, rows: Iterable[tuple[int, Any]]) -> Iterator[Row]:
    """Refuse cells of a format from outside that aren't texts."""
    for line, cells in rows:
        if not all(isinstance(cell, str) for cell in cells):
            raise DatabaseFormatError(
                name, f"each cell must be a str; got {shown(cells)}", format=format, line=line
            )
        yield line, tuple(cells)


def _split_tsv(text: Text, _: Reading) -> Iterator[Row]:
    # only \n ends a row: str.splitlines would also cut labels at U+2028 and others
    for number, line in enumerate(_narrow(text, "tsv", text.lines("\n"), "\t"), start=1):
        bare = line.removesuffix("\n").removesuffix("\r")
        if bare:
            yield number, tuple(bare.split("\t"))


def _split_csv(text: Text, _: Reading) -> Iterator[Row]:
    most = text.limits.max_term_bytes
    reader = csv.reader(_narrow(text, "csv", text.lines(""), ","), strict=True)
    # a longer cell would take eight bytes for each of its characters before it is refused
    csv.field_size_limit(most + 1)
    try:
        for row in reader:
            if row:
                yield reader.line_num, tuple(row)
    except csv.Error as error:
        if "field limit" in str(error):
            refuse_excess(text.name, "csv", text.limits.excess(term=most + 1))
        raise DatabaseFormatError(
            text.name, str(error), format="csv", line=reader.line_num,
            advice="Quote as RFC 4180 requires.",
        ) from None  # fmt: skip


def _narrow(text: Text, format: str, lines: Iterable[str], separator: str) -> Iterator[str]:
    """Refuse a line of more cells than a file may have, before it is divided into them."""
    long = min(FREE_CELLS, text.limits.cells)
    for line in lines:
        if len(line) >= long:
            excess = text.limits.excess(cells=line.count(separator))
            refuse_excess(text.name, format, excess)
        yield line


def write_table(db: Database, format: Format, *, terms: TableTerms | None = None) -> bytes:
    """Write facts as TSV or CSV with a header; options and errors are those of `write`.

    A header of variables, ``?subject ?predicate ?object``, means that the cells are terms, as in
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
    data = text.encode()
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
            f"In a table {doubt} would be refused. Pass terms='label', and read the table with "
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


# of genes: GAF and GPAD
_ANNOTATIONS = ("!gaf-version", "!gpa-version", "!gpad-version")


def _likelihood(head: FileHead) -> int:
    if head.text.startswith(_ANNOTATIONS):
        return 9
    cells = head.first.split("\t")
    if sssom_order(cells) is not None:
        return 9
    if len(cells) != 3:
        # edges after lines of comments, as of SNAP: the reader asks for the number of columns
        return int(len(cells) == 2 and head.text.startswith("#"))
    # a line of N-Triples ends in a full stop, which no term ends in
    return 9 if all(map(is_term, cells)) else 1


register_format(
    Format("tsv", ("tsv", "tab", "text/tab-separated-values"), _split_tsv, "table",
           _likelihood, write_table)
)  # fmt: skip
register_format(Format("csv", ("csv", "text/csv"), _split_csv, "table", write=write_table))
