"""The options that choose a part of a file of facts, for every command that reads one."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from capacity.cli.selection_options import OPTIONS
from capacity.database.choosing.selection import Selection, SelectionOptions
from capacity.database.facts import Database
from capacity.database.io.files.several import Sources
from capacity.database.policy import MultiPolicy
from capacity.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])


# the options of reading that choose facts
_CHOOSING = ("graph", "annotations_of_facts", "skip_errors")


@dataclass(frozen=True)
class Chosen:
    """The part of a file that a command is about.

    Attributes
    ----------
    reading : mapping of str to object
        Options of `load` for reading the file, where they are given.
    selection : Selection
        Criteria that the facts are selected by.
    """

    reading: Mapping[str, Any]
    selection: Selection

    def options(self) -> dict[str, Any]:
        """Return what differs from the defaults, as keywords of `load`."""
        return {**self.reading, **self.selection.options()}

    def flags(self, omitted: Container[str] = ()) -> dict[str, Any]:
        """Return what is given, by the names that it has on the command line.

        Parameters
        ----------
        omitted : container of str
            Keywords to omit.
        """
        flags = {option.keyword: option.flag for option in OPTIONS}
        given = self.options().items()
        return {flags[keyword]: value for keyword, value in given if keyword not in omitted}


def as_typed(options: Mapping[str, object]) -> list[str]:
    """Return options as they are typed; each of several values has its flag."""
    words: list[str] = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            # contexts of JSON-LD
            value = [f"{key}={at}" for key, at in value.items()]
        several = value if isinstance(value, list | tuple) else [] if value is None else [value]
        for single in several:
            words += [f"--{name}", str(single)]
    return words


# broken lines that JSON lists
_FIRST = 10
# the whole file
ALL = Chosen({}, Selection())


def with_selection(command: _Command) -> _Command:
    """Add the options of reading and selecting to a command, in place of its parameter `chosen`."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        parameter
        for own in signature.parameters.values()
        for parameter in (
            [own] if own.name != "chosen" else [option.parameter() for option in OPTIONS]
        )
    ]

    @functools.wraps(command)
    def called(**values: Any) -> Any:
        given = {option: values.pop(option.keyword) for option in OPTIONS}
        options = {
            option.keyword: option.convert(value)
            for option, value in given.items()
            if value not in (None, [], "")
        }
        criteria = {
            name: options.pop(name) for name in SelectionOptions.__annotations__ if name in options
        }
        return command(**values, chosen=Chosen(options, Selection(**criteria)))

    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called  # type: ignore[return-value]


def load_chosen(
    files: Sources,
    chosen: Chosen,
    *,
    format: str | None,
    multi: MultiPolicy | None,
) -> Database:
    """Read the chosen part of one file or several, and print on standard error what was omitted."""
    return load_chosen_with_all(files, chosen, format=format, multi=multi)[0]


def load_chosen_with_all(
    files: Sources,
    chosen: Chosen,
    *,
    format: str | None,
    multi: MultiPolicy | None,
) -> tuple[Database, Database]:
    """Read the chosen part as `load_chosen` does, and return beside it all facts that were read."""
    from capacity.database.io.readers import load_with_all

    db, every = load_with_all(files, format=format, multi=multi, **chosen.options())
    source = db.source
    if source is not None and "graph" in chosen.reading:
        n = source.in_other_graphs
        print(f"capacity: {n:,} triples in other graphs are omitted", file=sys.stderr)
    # those about annotations of facts a warning has said, unless one chooses
    is_table = source is not None and source.format in ("tsv", "csv")
    if source is not None and (
        source.parts or is_table or "annotations_of_facts" in chosen.reading
    ):
        for note in source.notes:
            print(f"capacity: {visible(note)}", file=sys.stderr)
    if db.selected is not None:
        print(f"capacity: {visible(str(db.selected))}", file=sys.stderr)
    return db, every


def selection_json(db: Database, chosen: Chosen) -> dict[str, Any] | None:
    """Return what was chosen, and the numbers of it, for JSON; None if nothing was chosen.

    Without criteria, where a graph alone is chosen, facts aren't counted: ``of`` and ``kept`` are
    None.
    """
    given = {name: chosen.reading[name] for name in _CHOOSING if name in chosen.reading}
    if not given and not chosen.selection.options():
        return None
    row: dict[str, Any] = {"options": {}, "of": None, "kept": None, "omitted": {}}
    if db.selected is not None:
        row = db.selected.to_dict()
    if "graph" in given and db.source is not None:
        row["omitted"] = {"graph": db.source.in_other_graphs, **row["omitted"]}
    if "skip_errors" in given and db.source is not None:
        skipped = [one for part in (db.source, *db.source.parts) for one in part.skipped]
        row["omitted"] = {**row["omitted"], "skip_errors": len(skipped)}
        row["skipped"] = [{"line": line, "reason": reason} for line, reason in skipped[:_FIRST]]
    return {**row, "options": {**given, **row["options"]}}
