"""Cells of tables as keys: read in a stream, and recognised as labels or as terms, as `load` does.

The cells are staged as they are, in the table ``cells`` (s, p, o) of the temporary database, for
what they are follows from all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from capacity.database.io.table_options import TableOptions
from capacity.database.io.tables.cells import (
    in_full,
    literal_predicate,
    no_term,
    reason_against,
    recognised,
    uncertain,
)
from capacity.database.io.tables.layout import Layout, layout_of
from capacity.database.io.tables.table import Table, missing_cell, refuse_empty_rows, refuse_quoting
from capacity.database.terms.nodes import parse_n3
from capacity.stores.scratch.keys import is_key, key_of
from capacity.stores.scratch.scratch import Scratch

if TYPE_CHECKING:
    import pyarrow as pa

# cells that are parsed at once
_CELLS = 2**16


@dataclass(frozen=True)
class TableFile:
    """A table that is read as often as it is needed.

    Attributes
    ----------
    table : Table
        Its rows, which aren't held, and its names.
    options : TableOptions
        The options of the caller, and of the file itself.
    batches : callable
        Function of a `Layout` that yields batches of the cells of its facts.
    tell : callable
        Function of the number of rows so far, which reports progress.
    own : Table, optional
        The table without the columns that its folders name.
    doubtful : bool
        Whether rows that other programs mean in another way are to be refused (`table`).
    quoted : bool
        Whether cells with quotes may be quoted as those of CSV.
    """

    table: Table
    options: TableOptions
    batches: Callable[[Layout], Iterable[pa.RecordBatch]]
    tell: Callable[[int], object]
    own: Table | None = None
    doubtful: bool = False
    quoted: bool = False


def stage_table(db: Scratch, of: TableFile, file: int | None) -> None:
    """Append the facts of a table to the table ``keyed``.

    Parameters
    ----------
    db : Scratch
        The temporary database.
    of : TableFile
        The table.
    file : int or None
        Number of the file, if there are several: blank nodes of two files are two.

    Raises
    ------
    DatabaseFormatError
        If it can't be read as three columns of facts, or in two ways.
    """
    if of.doubtful:
        refuse_empty_rows(of.own or of.table)
        if of.quoted:
            refuse_quoting(of.own or of.table)
    layout = layout_of(of.table, of.options)
    if next(layout.facts(of.table), None) is None:
        raise of.table.error("the table has no rows")
    db.run("create table cells (s varchar, p varchar, o varchar)")
    db.append("cells", of.batches(layout), of.tell)
    _check_cells(db, of, layout)
    form = of.options.terms or ("n3" if layout.variables else _recognised(db, of, layout))
    if form == "label":
        keys = ", ".join(f"'=' || {role}" for role in "spo")
        db.run(f"insert into keyed select {keys} from cells")
    else:
        _key_terms(db, of, layout, file)
    db.run("drop table cells")


def _check_cells(db: Scratch, of: TableFile, layout: Layout) -> None:
    """Refuse missing cells, and a table that may be wide after all."""
    if db.one("select count(*) from cells where s is null or p is null or o is null"):
        # the first of them raises it
        for _ in layout.facts(of.table):
            pass
        raise missing_cell(of.table, None)
    if layout.doubt is None:
        return
    # as `looks_wide` has it, of the rows but the first where that isn't the columns' names
    first = int(of.table.names is None)
    named = " or ".join(f"list_contains(?, {role})" for role in "spo")
    sql = f"select count(*) from cells where {named}"
    if (
        db.one(sql, [list(layout.names)] * 3) == first
        and not db.run("select s from cells group by s having count(*) > 1 limit 1")
        and len(db.run(f"select distinct p from cells limit {2 + first}")) > 1 + first
    ):
        raise layout.doubt


def _different(db: Scratch) -> Iterator[list[str]]:
    """Yield the different cells, some at a time."""
    every = " union all ".join(f"select {role} x from cells" for role in "spo")
    db.run(f"create or replace table texts as select distinct x from ({every})")
    for start in range(0, db.one("select count(*) from texts"), _CELLS):
        # a whole result would be held
        rows = db.run(
            "select x from texts where rowid between ? and ?", [start, start + _CELLS - 1]
        )
        yield [cell for (cell,) in rows]
    db.run("drop table texts")


def _recognised(db: Scratch, of: TableFile, layout: Layout) -> str:
    """Return the form of the cells, or raise if they may be terms and may be labels."""
    form = recognised(chain.from_iterable(_different(db)))
    if form is not None:
        return form
    cells = chain.from_iterable(_different(db))
    raise uncertain(of.table.name, of.table.format, cells, layout.facts(of.table))


def _key_terms(db: Scratch, of: TableFile, layout: Layout, file: int | None) -> None:
    """Append facts whose cells are N-Triples terms, which may have several forms each."""
    import pyarrow as pa

    db.run("create or replace table forms (x varchar, key varchar)")
    for cells in _different(db):
        full = {
            cell: in_full(cell) if layout.variables else cell for cell in cells if not is_key(cell)
        }
        try:
            terms = parse_n3(dict.fromkeys(full.values()))
        except ValueError:
            raise wrong_cell(of, layout, full) from None
        keys = {cell: key_of(terms[text], file) for cell, text in full.items()}
        others = [(cell, key) for cell, key in keys.items() if cell != key]
        columns = [pa.array(list(one), pa.string()) for one in zip(*others, strict=True)]
        if columns:
            db.append("forms", [pa.RecordBatch.from_arrays(columns, ["x", "key"])], lambda _: None)
    before = db.one("select coalesce(max(rowid), -1) + 1 from keyed")
    db.run(
        "insert into keyed select coalesce(a.key, s), coalesce(b.key, p), coalesce(c.key, o) "
        "from cells left join forms a on a.x = s left join forms b on b.x = p "
        "left join forms c on c.x = o"
        if db.one("select count(*) from forms")
        else "insert into keyed select * from cells"
    )
    db.run("drop table forms")
    if db.one("select count(*) from keyed where rowid >= ? and p[1] = '\"'", [before]):
        raise wrong_predicate(of, layout)


def wrong_predicate(of: TableFile, layout: Layout) -> Exception:
    """Make the error for the first fact whose predicate is a literal."""
    full = in_full if layout.variables else str
    line, row = next(
        (line, row) for line, row in layout.facts(of.table) if full(row[1]).startswith('"')
    )
    return literal_predicate(of.table.name, of.table.format, line, row)


def wrong_cell(of: TableFile, layout: Layout, full: dict[str, str]) -> Exception:
    """Make the error for the first cell that is no term."""
    wrong = ((cell, reason_against(text)) for cell, text in full.items())
    cell, reason = next((cell, reason) for cell, reason in wrong if reason)
    return no_term(of.table.name, of.table.format, cell, reason, layout.facts(of.table))
