"""Options of the commands that read facts: how a file is read, and which of its facts are taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import typer

from capacity.cli.output import CHOOSING, READING, one_of
from capacity.database.arity import LEAST, MOST
from capacity.database.choosing.folding.fold import FOLDS
from capacity.database.choosing.selection import KeepOrDrop
from capacity.database.io.files.formats import FORMATS
from capacity.database.io.table_options import TableForm
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidArgumentError

MultiOption = Annotated[
    MultiPolicy | None,
    typer.Option(
        help="What becomes of a (subject, predicate) pair with several objects.",
        rich_help_panel=CHOOSING,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"{', '.join(FORMATS)}; by default guessed.",
        autocompletion=one_of(lambda: FORMATS),
        rich_help_panel=READING,
    ),
]


@dataclass(frozen=True)
class Setting:
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


def _limit(keyword: str, flag: str, what: str, default: str) -> Setting:
    return Setting(keyword, flag, int | None, f"{what}; default: {default}.", least=1)


def _kind(keyword: str, flag: str, what: str) -> Setting:
    return Setting(keyword, flag, KeepOrDrop, f"Keep or drop {what}.", CHOOSING, "keep")


def _names(keyword: str, flag: str, what: str) -> Setting:
    return Setting(keyword, flag, list[str] | None, f"{what}; repeatable.", CHOOSING)


OPTIONS = (
    Setting(
        "graph", "graph", str | None,
        "Graph of an RDF dataset: its IRI, its prefixed or blank name, or the word default. "
        "Without it, the union of all graphs.",
        CHOOSING, completed=lambda: ("default", "union"),
    ),
    Setting(
        "annotations_of_facts", "annotations-of-facts", str | None,
        "What becomes of triples about facts (RDF 1.2): keep, drop, order-4, order-5, or the name "
        "of one annotation.",
        CHOOSING, completed=lambda: ("keep", "drop", "order-4", "order-5"),
    ),
    Setting("base", "base", str | None, "IRI that relative IRIs of RDF are resolved against."),
    Setting(
        "contexts", "context", list[str] | None,
        "IRI=FILE: the IRI of a JSON-LD context, and a file with a copy of it. Or a JSON file of "
        "IRIs and files. Repeatable.",
        convert=_by_iri,
    ),
    Setting(
        "table", "table", str | None,
        "Form of a table: long has one row per fact; n3 is the same with N-Triples terms in the "
        "cells; wide has one column per property. By default the form is recognised, or the table "
        "is refused. For a DuckDB file, the name of a table.",
        completed=lambda: get_args(TableForm),
    ),
    Setting(
        "arity", "arity", int | None, "Number of columns of a table of facts; by default 3.",
        least=LEAST, most=MOST,
    ),
    Setting(
        "columns", "column", list[str] | None,
        "Column of a table, by its name or its position from 0, object last; repeatable.",
        convert=_positions,
    ),
    Setting(
        "comment", "comment", str | None,
        "Beginning of the lines that are comments and no rows, such as #.",
    ),
    Setting(
        "split", "split", str | None,
        "Separator of the values of a cell that contains several, such as a comma. Each value is "
        "a fact.",
    ),
    Setting(
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
    Setting(
        "fold", "fold", list[str] | None,
        "First convert syntax to facts: lists, restrictions (of OWL), statements (nodes with "
        "qualifiers), statements:order-5, or statements:QUALIFIER. Separate several by commas. "
        "Repeatable.",
        CHOOSING, completed=lambda: (*FOLDS, "statements:order-4", "statements:order-5"),
    ),
)  # fmt: skip
