"""Options of all readers of files of facts, once.

A `Reading` is made of the keywords of `load`, `read_rdf`, `read_table` and `count_duckdb`, and of
the options of a command. `with_options` shows them in the signature of a function that takes them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias, TypedDict, TypeVar

from capacity.checks import nearest, require_integer, shown
from capacity.database.choosing.selection import Selection, SelectionOptions
from capacity.database.io.skipping import FORMATS
from capacity.database.io.table_options import (
    Columns,
    TableForm,
    TableOptions,
    TableTerms,
    table_options,
)
from capacity.display import briefly_shown
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.reading_limits import MAX_BYTES, MAX_GROWTH, MAX_TERM_BYTES, Limits

# IRI of a context of JSON-LD -> a file, or the parsed document
Contexts: TypeAlias = Mapping[str, str | os.PathLike[str] | Mapping[str, Any]]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class GrowthOptions(TypedDict, total=False):
    """Limits of a file of any number of bytes."""

    max_growth: int
    max_rows: int | None
    max_cells: int | None
    max_term_bytes: int
    skip_errors: int


class LimitOptions(GrowthOptions, total=False):
    """Limits of a file, as `Limits` has them."""

    max_bytes: int


class GraphOptions(TypedDict, total=False):
    """Keywords about the graphs of RDF."""

    graph: str | None
    base: str | None
    contexts: Contexts | str | os.PathLike[str] | None


class ColumnOptions(TypedDict, total=False):
    """Keywords about the cells of a table."""

    comment: str | None
    terms: TableTerms | None
    columns: Columns | None
    split: str | None


class RdfTextOptions(LimitOptions, GraphOptions, total=False):
    """Keywords of reading RDF in a known format."""

    annotations_of_facts: str | None
    allow_empty: bool


class RdfOptions(RdfTextOptions, total=False):
    """Keywords of reading RDF."""

    format: str | None


class TableFileOptions(LimitOptions, ColumnOptions, total=False):
    """Keywords of reading tables."""

    format: str | None
    table: TableForm | None
    arity: int | None


class ReadingOptions(RdfOptions, TableFileOptions, total=False):
    """All keywords of `Reading`."""


class LoadOptions(ReadingOptions, SelectionOptions, total=False):
    """Keywords of reading a file, and of selecting from its facts."""


@briefly_shown
@dataclass(frozen=True)
class Reading:
    """A way of reading a file; by default that which is recognised.

    Attributes
    ----------
    format : str or None
        Name, extension or media type of a registered format; None if it is to be guessed.
    arity, table, terms, columns, comment, split
        Options of tables, as `read_table` has them.
    graph, base, contexts, annotations_of_facts
        Options of RDF, as `read_rdf` has them.
    allow_empty : bool
        Whether a file without facts is an empty database, and no error.
    max_bytes, max_growth, max_rows, max_cells, max_term_bytes
        Limits of the file, as `Limits` has them.
    skip_errors : int
        Most broken lines of a file of lines that are omitted, with a warning.

    Raises
    ------
    InvalidArgumentError
        For wrong options of a table, as `table_options`, a wrong limit, or a negative number.
    """

    format: str | None = None
    arity: int | None = None
    table: TableForm | None = None
    terms: TableTerms | None = None
    columns: Columns | None = None
    comment: str | None = None
    split: str | None = None
    graph: str | None = None
    base: str | None = None
    contexts: Contexts | str | os.PathLike[str] | None = None
    annotations_of_facts: str | None = None
    allow_empty: bool = False
    max_bytes: int = MAX_BYTES
    max_growth: int = MAX_GROWTH
    max_rows: int | None = None
    max_cells: int | None = None
    max_term_bytes: int = MAX_TERM_BYTES
    skip_errors: int = 0

    def __post_init__(self) -> None:
        require_integer("skip_errors", self.skip_errors, least=0)
        if not isinstance(self.format, str | None):
            raise InvalidTypeError(f"`format` must be a str; got {shown(self.format)}.")
        if self.comment is not None and (not isinstance(self.comment, str) or not self.comment):
            raise InvalidArgumentError(
                "`comment` must be what lines of comments begin with, such as '#'; got "
                f"{shown(self.comment)}."
            )
        # what they are made of is checked
        _ = self.of_table, self.limits

    @cached_property
    def of_table(self) -> TableOptions:
        """Options of a table."""
        return table_options(self.table, self.terms, self.arity, self.columns, self.split)

    @cached_property
    def limits(self) -> Limits:
        """Limits of a file."""
        return Limits(
            self.max_bytes, self.max_growth, self.max_rows, self.max_cells, self.max_term_bytes
        )

    def require_kind(self, name: str, format: str, kind: str) -> None:
        """Refuse options of RDF for a table, and options of tables for what isn't one.

        Parameters
        ----------
        name, format, kind : str
            Name of the file, and its format's name and kind.

        Raises
        ------
        DatabaseFormatError
            With the first such option.
        """
        for reason, advice in self._against(format, kind):
            raise DatabaseFormatError(name, reason, format=format, advice=advice)

    def _against(self, format: str, kind: str) -> Iterator[tuple[str, str]]:
        """Yield what options a format doesn't have, each with advice."""
        if kind != "rdf":
            for option in ("graph", "base", "contexts", "annotations_of_facts"):
                if getattr(self, option) is not None:
                    advice = "Omit it, or pass the file's format of RDF."
                    yield f"`{option}` is an option of RDF", advice
        if self.comment is not None and format in ("parquet", "duckdb"):
            yield "`comment` is an option of tables of text", "Omit it."
        if self.skip_errors and format not in FORMATS:
            known = f"They are {', '.join(FORMATS)}; omit it, or convert the file."
            yield "`skip_errors` is an option of formats with a fact in each line", known
        if kind == "rdf" and self.arity not in (None, 3):
            advice = "Omit `arity`, or pass the table's format: tsv or csv."
            yield f"only tables hold facts of {self.arity} columns", advice
        if kind != "table":
            for option in ("table", "terms", "columns", "comment", "split"):
                if getattr(self, option) is not None:
                    advice = f"Omit `{option}`, or pass the table's format: tsv or csv."
                    yield f"`{option}` is an option of tables", advice


def reading_of(call: str, kind: type, options: Mapping[str, Any]) -> tuple[Reading, Selection]:
    """Make a `Reading`, and a `Selection`, of the keywords of a call.

    Parameters
    ----------
    call : str
        Name of the function, for messages.
    kind : type
        The `TypedDict` of its keywords.
    options : mapping
        What the user has given.

    Raises
    ------
    InvalidTypeError
        For a keyword that it hasn't, with the nearest.
    InvalidArgumentError
        For a wrong option.
    """
    known = list(kind.__annotations__)
    for name in options:
        if name not in known:
            hint = nearest(name, known)
            if name in LoadOptions.__annotations__:
                hint = f" `load` has `{name}`, for facts that memory holds."
            raise InvalidTypeError(
                f"`{call}` has no option `{name:.60}`; it has {', '.join(known)}.{hint}"
            )
    criteria = SelectionOptions.__annotations__
    return (
        Reading(**{name: value for name, value in options.items() if name not in criteria}),
        Selection(**{name: value for name, value in options.items() if name in criteria}),
    )


def with_options(kind: type) -> Callable[[_Function], _Function]:
    """Show the keywords of a `TypedDict`, with their defaults, in a function's signature."""
    defaults = {each.name: each.default for each in (*fields(Reading), *fields(Selection))}

    def decorated(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        order = [each for each in defaults if each in kind.__annotations__]
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name],
                annotation=getattr(kind.__annotations__[name], "__forward_arg__", Any),
            )
            for name in order
        ]  # fmt: skip
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *added]
        )
        return function

    return decorated
