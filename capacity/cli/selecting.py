"""The options that choose a part of a file of facts, for every command that reads one."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from capacity.cli.help import CHOOSING, READING, one_of
from capacity.database.choosing.selection import KeepOrDrop, Selection
from capacity.database.facts import Database
from capacity.database.io.tables.options import TableForm
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidArgumentError
from capacity.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _kind(what: str, flag: str) -> Any:
    return Annotated[
        KeepOrDrop, typer.Option(flag, help=f"Keep or drop {what}.", rich_help_panel=CHOOSING)
    ]


def _names(flag: str, what: str, panel: str = CHOOSING) -> Any:
    return Annotated[
        list[str] | None, typer.Option(flag, help=f"{what}; repeatable.", rich_help_panel=panel)
    ]


def _bytes(flag: str, what: str, default: str) -> Any:
    return _limit(flag, f"{what}, in bytes", default)


def _limit(flag: str, what: str, default: str) -> Any:
    said = f"{what}; default: {default}."
    return Annotated[int | None, typer.Option(flag, help=said, min=1, rich_help_panel=READING)]


# of each parameter, its option and its default
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "graph": (
        Annotated[
            str | None,
            typer.Option(
                help="Graph of an RDF dataset: its IRI, prefixed or blank name, or default; by "
                "default the union of all.",
                autocompletion=one_of(lambda: ("default", "union")),
                rich_help_panel=CHOOSING,
            ),
        ],
        None,
    ),
    "annotations_of_facts": (
        Annotated[
            str | None,
            typer.Option(
                help="Triples about facts (RDF 1.2): keep, drop, order-4, order-5, or one's name.",
                autocompletion=one_of(lambda: ("keep", "drop", "order-4", "order-5")),
                rich_help_panel=CHOOSING,
            ),
        ],
        None,
    ),
    "base": (
        Annotated[
            str | None,
            typer.Option(
                help="IRI that relative IRIs of RDF are resolved against.", rich_help_panel=READING
            ),
        ],
        None,
    ),
    "contexts": (
        _names(
            "--context", "IRI=FILE: a context of JSON-LD, and a file with a copy of it", READING
        ),
        None,
    ),
    "table": (
        Annotated[
            str | None,
            typer.Option(
                help="Form of a table: long, a row a fact; n3, the same with N-Triples terms in "
                "the cells; wide, a column a property; by default recognised, or refused. Of a "
                "DuckDB file the name of a table.",
                autocompletion=one_of(lambda: get_args(TableForm)),
                rich_help_panel=READING,
            ),
        ],
        None,
    ),
    "columns": (
        _names(
            "--column",
            "Column of a table, by its name or its position from 0, object last",
            READING,
        ),
        None,
    ),
    "max_bytes": (
        _bytes("--max-file-bytes", "Largest file to read, also as it decompresses", "4 GiB"),
        None,
    ),
    "max_growth": (
        _limit(
            "--max-growth",
            "How many times its stored size a file may take, decompressed; 64 MiB are free",
            "250",
        ),
        None,
    ),
    "max_rows": (
        _limit(
            "--max-rows",
            "Most rows, triples or entries of a file",
            "one for each stored byte, and at least 250,000",
        ),
        None,
    ),
    "max_cells": (
        _limit(
            "--max-cells",
            "Most cells of a table, or places of an array",
            "one for each stored byte, and at least 5,000,000",
        ),
        None,
    ),
    "max_term_bytes": (_bytes("--max-term-bytes", "Longest term to read", "16 MiB"), None),
    "schema": (_kind("rdf:type and the predicates of RDFS, OWL and SHACL", "--schema"), "keep"),
    "literals": (_kind("facts whose object is a literal", "--literals"), "keep"),
    "annotations": (_kind("labels, comments and other annotations", "--annotations"), "keep"),
    "blank_nodes": (_kind("facts with blank nodes", "--blank-nodes"), "keep"),
    "predicates": (
        _names("--predicate", "Keep this predicate alone: IRI, prefixed name, local name or label"),
        None,
    ),
    "exclude": (_names("--exclude", "Drop this predicate, named in the same ways"), None),
    "namespaces": (_names("--namespace", "Keep predicates in this namespace, or prefix"), None),
    "types": (_names("--type", "Keep subjects of this class, by rdf:type"), None),
}


# of the options above, those of reading a file; and of these, those that choose facts
_READING = ("graph", "annotations_of_facts", "base", "contexts", "table", "columns", "max_bytes",
            "max_growth", "max_rows", "max_cells", "max_term_bytes")  # fmt: skip
_CHOOSING = ("graph", "annotations_of_facts")


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

    def flags(self) -> dict[str, Any]:
        """Return the options that are given, by the names that they have on the command line."""
        flags = {"predicates": "predicate", "namespaces": "namespace", "types": "type",
                 "columns": "column", "contexts": "context",
                 "max_bytes": "max-file-bytes"}  # fmt: skip
        given = {flags.get(name, name): value for name, value in self.options().items()}
        return {name.replace("_", "-"): value for name, value in given.items()}


# the whole file
ALL = Chosen({}, Selection())


def with_selection(command: _Command) -> _Command:
    """Give a command the options of a selection in place of its parameter `chosen`."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name != "chosen":
            parameters.append(parameter)
            continue
        parameters += [
            inspect.Parameter(name, parameter.kind, annotation=option, default=default)
            for name, (option, default) in _OPTIONS.items()
        ]

    @functools.wraps(command)
    def called(**values: Any) -> Any:
        given = {name: values.pop(name) for name in _OPTIONS}
        criteria: dict[str, Any] = {each.name: given.pop(each.name) for each in fields(Selection)}
        made = Selection(**{name: v for name, v in criteria.items() if v is not None})
        return command(**values, chosen=Chosen(_reading(given), made))

    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called  # type: ignore[return-value]


def _reading(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `load` that are given, with columns by position and contexts by IRI."""
    found = {name: given[name] for name in _READING if given[name]}
    if "columns" in found:
        found["columns"] = [int(one) if one.isdecimal() else one for one in found["columns"]]
    if "contexts" in found:
        pairs = [one.rpartition("=") for one in found["contexts"]]
        if not all(iri and path for iri, _, path in pairs):
            raise InvalidArgumentError(
                "`--context` must be the IRI of a context, =, and the file with a copy of it; got "
                f"{', '.join(found['contexts']):.200}."
            )
        found["contexts"] = {iri: path for iri, _, path in pairs}
    return found


def load_chosen(
    file: Path,
    chosen: Chosen,
    *,
    format: str | None,
    multi: MultiPolicy | None,
    arity: int | None = None,
) -> Database:
    """Read the chosen part of a file, and say on standard error what was omitted."""
    from capacity.database.io.readers import load

    db = load(file, format=format, arity=arity, multi=multi, **chosen.options())
    source = db.source
    if source is not None and "graph" in chosen.reading:
        n = source.in_other_graphs
        print(f"capacity: {n:,} triples in other graphs are omitted", file=sys.stderr)
    # else a warning has said them
    if source is not None and (source.parts or "annotations_of_facts" in chosen.reading):
        for note in source.notes:
            print(f"capacity: {visible(note)}", file=sys.stderr)
    if db.selected is not None:
        print(f"capacity: {visible(str(db.selected))}", file=sys.stderr)
    return db


def selection_json(db: Database, chosen: Chosen) -> dict[str, Any] | None:
    """Return what was chosen, and the numbers of it, for JSON; None if nothing was chosen.

    Without criteria, where a graph alone is chosen, facts aren't counted: ``of`` and ``kept`` are
    None.
    """
    given = {name: chosen.reading[name] for name in _CHOOSING if name in chosen.reading}
    if not given and not chosen.selection.options():
        return None
    said: dict[str, Any] = {"options": {}, "of": None, "kept": None, "omitted": {}}
    if db.selected is not None:
        said = db.selected.to_dict()
    if "graph" in given and db.source is not None:
        said["omitted"] = {"graph": db.source.in_other_graphs, **said["omitted"]}
    return {**said, "options": {**given, **said["options"]}}
