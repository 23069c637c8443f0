"""JSON records: tables whose rows are objects, in a list, or one a line (JSON Lines).

The columns are the keys, in the order in which they first occur. Values are text, or numbers and
truth values as they are written; ``null``, or a key that an object lacks, is a missing cell. What
has a key of JSON-LD is no table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.formats import FileHead, Format, register_format
from capacity.database.io.reading import Reading
from capacity.database.io.tables.cells import read_rows
from capacity.database.io.tables.folders import columns_of_folders, names_with_folders
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.table import Table, within
from capacity.database.policy import MultiPolicy
from capacity.errors import DatabaseFormatError

_BLANK = re.compile(r"[ \t\r\n]*")
# an object whose values are neither lists nor objects; nothing is given back
_FLAT = re.compile(r'\{(?:[^{}\[\]"]|"(?:[^"\\]|\\.)*+")*+\}', re.DOTALL)
# characters of an object that isn't flat, so that the message says what is wrong with it
_SHOWN = 10_000
_BEGINNING = re.compile(r"\s*+\[?\s*+(?=\{)")


class _UnwantedError(ValueError):
    """A key that an object has twice, or a number that JSON hasn't."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1)
        raise _UnwantedError(f"an object has the key {shown(twice)} twice")
    return made


def _word(text: str) -> str:
    """Refuse NaN and infinities, which JSON hasn't."""
    raise _UnwantedError(f"JSON has no number {text}")


# numbers stay as they are written
_DECODER = json.JSONDecoder(
    object_pairs_hook=_once, parse_int=str, parse_float=str, parse_constant=_word
)


def records_of(name: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    r"""Yield the objects of a list, or one after the other, with the lines on which they begin.

    Raises
    ------
    DatabaseFormatError
        For broken JSON, what isn't an object, a key that an object has twice, and numbers that JSON
        hasn't.

    Examples
    --------
    >>> list(records_of("t.jsonl", '{"s": "a", "n": 1.50}\n{"s": null}'))
    [(1, {'s': 'a', 'n': '1.50'}), (2, {'s': None})]
    """
    at = _BLANK.match(text).end()  # type: ignore[union-attr]
    listed = text.startswith("[", at)
    at += listed
    line, counted, first = 1, 0, True
    while True:
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
        line += text.count("\n", counted, at)
        counted = at
        if (at == len(text) and not listed) or (listed and first and text.startswith("]", at)):
            break
        flat = _FLAT.match(text, at)
        if flat is None and len(text) - at > _SHOWN:
            # a value in a value may take a hundred times the memory of its text
            raise _broken(name, "an object is nested or broken", line)
        try:
            value, end = _DECODER.raw_decode(text, at)
        except _UnwantedError as error:
            raise _broken(name, str(error), line) from None
        except json.JSONDecodeError as error:
            raise _broken(name, f"broken JSON ({error.msg})", line) from None
        except RecursionError:
            raise _broken(name, "its values are nested too deeply", line) from None
        if not isinstance(value, dict):
            raise _broken(name, f"each row must be an object; got {shown(value)}", line)
        yield line, value
        first = False
        at = end
        if not listed:
            continue
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith("]", at):
            break
        if not text.startswith(",", at):
            raise _broken(name, "broken JSON (no comma after an object)", line)
        at += 1
    if listed and text[at + 1 :].strip():
        raise _broken(name, "after the end of the list there is more", line)


def _broken(name: str, reason: str, line: int | None) -> DatabaseFormatError:
    return DatabaseFormatError(name, reason, format="records", line=line, advice="Fix the file.")


def _cell(name: str, line: int, key: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    raise DatabaseFormatError(
        name,
        f"a value must be text, a number, true, false or null; {key!r:.60} is {shown(value)}",
        format="records",
        line=line,
        advice="Put each of several values in a row of its own, with pandas.DataFrame.explode, or "
        "all in one text that `split` divides.",
    )


def parse_records(
    content: Content, format: Format, reading: Reading, *, multi: MultiPolicy | None = None
) -> Database:
    """Parse checked content as JSON records.

    Options and errors are those of `capacity.database.read_table`.
    """
    name = content.name
    lines: list[int] = []
    columns: dict[str, list[str | None]] = {}
    for line, record in records_of(name, content.data.decode("utf-8")):
        for key, value in record.items():
            if key.startswith("@"):
                raise _broken(name, f"the key {key!r:.60} is of JSON-LD", line)
            column = columns.setdefault(key, [])
            column.extend([None] * (len(lines) - len(column)))
            column.append(_cell(name, line, key, value))
        lines.append(line)
        excess = content.limits.excess(rows=len(lines), cells=len(lines) * len(columns))
        refuse_excess(name, format.name, excess)
    for column in columns.values():
        column.extend([None] * (len(lines) - len(column)))
    names, of_folders = tuple(columns), columns_of_folders(name)
    if columns:
        names = names_with_folders(name, format.name, names, reading.of_table)
    for added in names[len(columns) :]:
        columns[added] = [of_folders[added]] * len(lines)
    at, options = narrowed(Table(name, format.name, [], names), reading.of_table)
    cells = zip(*(columns[names[i]] for i in at), strict=True)
    given: Iterator[Row] = zip(lines, cells, strict=True)  # type: ignore[assignment]
    rows = list(within(name, format.name, given, content.limits))
    return read_rows(
        Table(name, format.name, rows, tuple(names[i] for i in at)),
        options,
        multi=multi,
        source=content.source(format.name),
        allow_empty=reading.allow_empty,
    )


def is_records(head: FileHead) -> bool:
    """Return whether a text begins with an object that is a row: no key of JSON-LD, and no IRI.

    Examples
    --------
    >>> [is_records(FileHead(text, text)) for text in ('[{"s": "a"}]', '{"@id": "x:a"}')]
    [True, False]
    """
    begins = _BEGINNING.match(head.text)
    if begins is None:
        return False
    try:
        value, end = json.JSONDecoder().raw_decode(head.text, begins.end())
    except (ValueError, RecursionError):
        return False
    plain = all(not key.startswith("@") and ":" not in key for key in value)
    flat = not any(isinstance(one, list | dict) for one in value.values())
    # a single object that isn't in a list may be anything
    several = head.text.lstrip().startswith("[") or head.text[end:].lstrip().startswith("{")
    return bool(value) and plain and flat and several


def _likelihood(head: FileHead) -> int:
    # before JSON-LD, which has no facts of such a text
    return 9 * is_records(head)


register_format(
    Format(
        "records", ("records", "jsonl", "ndjson", "application/jsonl"), None, "table",
        _likelihood, parse=parse_records,
    )
)  # fmt: skip
