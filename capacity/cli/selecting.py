"""The options that choose a part of a file of facts, for every command that reads one."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

import typer

from capacity.cli.output import CHOOSING, READING, one_of
from capacity.database.arity import LEAST, MOST
from capacity.database.choosing.folding.fold import FOLDS
from capacity.database.choosing.selection import KeepOrDrop, Selection, SelectionOptions
from capacity.database.facts import Database
from capacity.database.io.files.several import Sources
from capacity.database.io.table_options import TableForm
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidArgumentError
from capacity.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class _Option:
    """An option of the command line, for a keyword of `load`.

    Attributes
    ----------
    keyword, flag : str
        Name of the keyword, and of the option.
    type : type
        Type of its value on the command line.
    help, panel : str
        Its line of help, and the panel that it is in.
    default : object
        Value where it isn't given.
    completed : callable, optional
        Function that returns the values that a shell completes.
    convert : callable
        Function of what is given that returns the keyword's value.
    least, most : int, optional
        Least and largest value of a number.
    """

    keyword: str
    flag: str
    type: Any
    help: str
    panel: str = READING
    default: Any = None
    completed: Callable[[], tuple[str, ...]] | None = None
    convert: Callable[[Any], Any] = lambda value: value
    least: int | None = None
    most: int | None = None

    def parameter(self) -> inspect.Parameter:
        """Make the parameter of a command, as typer reads it."""
        option = typer.Option(
            f"--{self.flag}",
            help=self.help,
            rich_help_panel=self.panel,
            autocompletion=one_of(self.completed) if self.completed is not None else None,
            min=self.least,
            max=self.most,
        )
        return inspect.Parameter(
            self.keyword,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=Annotated[self.type, option],
            default=self.default,
        )


def _positions(columns: list[str]) -> list[str | int]:
    return [int(one) if one.isdecimal() else one for one in columns]


def _by_iri(contexts: list[str]) -> dict[str, str]:
    from capacity.database.io.rdf.contexts import contexts_of_file

    found: dict[str, str] = {}
    for one in contexts:
        iri, equals, path = one.rpartition("=")
        if not path or (equals and not iri):
            raise InvalidArgumentError(
                "`--context` must be the IRI of a context, =, and the file with a copy of it, or a "
                f"JSON file of IRIs and files; got {one:.200}."
            )
        found |= {iri: path} if equals else contexts_of_file(path)
    return found


def _limit(keyword: str, flag: str, what: str, default: str) -> _Option:
    return _Option(keyword, flag, int | None, f"{what}; default: {default}.", least=1)


def _kind(keyword: str, flag: str, what: str) -> _Option:
    return _Option(keyword, flag, KeepOrDrop, f"Keep or drop {what}.", CHOOSING, "keep")


def _names(keyword: str, flag: str, what: str) -> _Option:
    return _Option(keyword, flag, list[str] | None, f"{what}; repeatable.", CHOOSING)


_OPTIONS = (
    _Option(
        "graph", "graph", str | None,
        "Graph of an RDF dataset: its IRI, its prefixed or blank name, or the word default. "
        "Without it, the union of all graphs.",
        CHOOSING, completed=lambda: ("default", "union"),
    ),
    _Option(
        "annotations_of_facts", "annotations-of-facts", str | None,
        "What becomes of triples about facts (RDF 1.2): keep, drop, order-4, order-5, or the name "
        "of one annotation.",
        CHOOSING, completed=lambda: ("keep", "drop", "order-4", "order-5"),
    ),
    _Option("base", "base", str | None, "IRI that relative IRIs of RDF are resolved against."),
    _Option(
        "contexts", "context", list[str] | None,
        "IRI=FILE: the IRI of a JSON-LD context, and a file with a copy of it. Or a JSON file of "
        "IRIs and files. Repeatable.",
        convert=_by_iri,
    ),
    _Option(
        "table", "table", str | None,
        "Form of a table: long has one row per fact; n3 is the same with N-Triples terms in the "
        "cells; wide has one column per property. By default the form is recognised, or the table "
        "is refused. For a DuckDB file, the name of a table.",
        completed=lambda: get_args(TableForm),
    ),
    _Option(
        "arity", "arity", int | None, "Number of columns of a table of facts; by default 3.",
        least=LEAST, most=MOST,
    ),
    _Option(
        "columns", "column", list[str] | None,
        "Column of a table, by its name or its position from 0, object last; repeatable.",
        convert=_positions,
    ),
    _Option(
        "comment", "comment", str | None,
        "Beginning of the lines that are comments and no rows, such as #.",
    ),
    _Option(
        "split", "split", str | None,
        "Separator of the values of a cell that contains several, such as a comma. Each value is "
        "a fact.",
    ),
    _Option(
        "skip_errors", "skip-errors", int | None,
        "Largest number of broken lines of N-Triples, N-Quads, TSV or CSV to omit, with a "
        "warning.",
        least=0,
    ),
    _limit("max_bytes", "max-file-bytes", "Largest size of a file, also decompressed, in bytes",
           "4 GiB"),
    _limit("max_growth", "max-growth",
           "Largest ratio of decompressed to stored size of a file; 64 MiB are free", "250"),
    _limit("max_rows", "max-rows", "Largest number of rows, triples or entries of a file",
           "one for each stored byte, and at least 250,000"),
    _limit("max_cells", "max-cells", "Largest number of cells of a table, or of places of an array",
           "one for each stored byte, and at least 5,000,000"),
    _limit("max_term_bytes", "max-term-bytes", "Longest term to read, in bytes", "16 MiB"),
    _kind("schema", "schema", "rdf:type, RDFS, OWL and SHACL, and the lists that hang on them"),
    _kind("literals", "literals", "facts whose object is a literal"),
    _kind("annotations", "annotations", "labels, comments and other annotations"),
    _kind("blank_nodes", "blank-nodes", "facts with blank nodes"),
    _names("predicates", "predicate",
           "Keep only this predicate, by its IRI, prefixed name, local name or label"),
    _names("exclude", "exclude", "Drop this predicate, which is named in the same ways"),
    _names("namespaces", "namespace", "Keep the predicates of this namespace, by IRI or prefix"),
    _names("types", "type", "Keep the subjects of this class, by rdf:type"),
    _Option(
        "fold", "fold", list[str] | None,
        "First convert syntax to facts: lists, restrictions (of OWL), statements (nodes with "
        "qualifiers), statements:order-5, or statements:QUALIFIER. Separate several by commas. "
        "Repeatable.",
        CHOOSING, completed=lambda: (*FOLDS, "statements:order-4", "statements:order-5"),
    ),
)  # fmt: skip
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
        flags = {option.keyword: option.flag for option in _OPTIONS}
        given = self.options().items()
        return {flags[keyword]: value for keyword, value in given if keyword not in omitted}


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
            [own] if own.name != "chosen" else [option.parameter() for option in _OPTIONS]
        )
    ]

    @functools.wraps(command)
    def called(**values: Any) -> Any:
        given = {option: values.pop(option.keyword) for option in _OPTIONS}
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
    said: dict[str, Any] = {"options": {}, "of": None, "kept": None, "omitted": {}}
    if db.selected is not None:
        said = db.selected.to_dict()
    if "graph" in given and db.source is not None:
        said["omitted"] = {"graph": db.source.in_other_graphs, **said["omitted"]}
    if "skip_errors" in given and db.source is not None:
        skipped = [one for part in (db.source, *db.source.parts) for one in part.skipped]
        said["omitted"] = {**said["omitted"], "skip_errors": len(skipped)}
        said["skipped"] = [{"line": line, "reason": reason} for line, reason in skipped[:_FIRST]]
    return {**said, "options": {**given, **said["options"]}}
