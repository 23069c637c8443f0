"""Facts that a command counts where they are, in place of loading them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.cli.output import COUNTING
from capacity.cli.selecting import Chosen
from capacity.cli.sources.files import (
    Address,
    Given,
    count_address,
    each,
    in_words,
    refuse_timeout,
    require_alone,
)
from capacity.errors import InvalidArgumentError
from capacity.progress import bar
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.stores.counts import StoreCounts

# files that are always counted
STORED = (".duckdb", ".ddb")
# what loading facts and bounding their rank takes at its peak, as measured at 10^6 facts
BYTES_A_FACT = 700

OutOfCore = Annotated[
    bool,
    typer.Option(
        "--out-of-core",
        help="Count facts in a stream, in little memory, and bound the rank by the counts alone. "
        "DuckDB files are always counted so; --table and --column name their table and columns.",
        rich_help_panel=COUNTING,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        help="Memory for counting out of core, such as 4GB; by default 1GB.",
        rich_help_panel=COUNTING,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786: its workers count the "
        "files where they are.",
        rich_help_panel=COUNTING,
    ),
]


Views = Annotated[
    bool,
    typer.Option(
        "--views",
        help="Also read a view of a DuckDB file, which is a program, for at most --timeout "
        "seconds; by default 60.",
        rich_help_panel=COUNTING,
    ),
]


@dataclass(frozen=True)
class SourceOptions:
    """Options of a command about facts to count.

    Attributes
    ----------
    format : str or None
        Format of a file.
    reading : mapping of str to object
        Options of reading it (`CountingOptions`).
    memory_limit : str or None
        Memory to count in.
    dask : str or None
        Address of a scheduler whose workers count.
    views : bool
        Whether a view may be read.
    timeout : float or None
        Seconds for it.
    """

    format: str | None
    reading: Mapping[str, Any]
    memory_limit: str | None
    dask: str | None
    views: bool = False
    timeout: float | None = None


def count_source(given: Given, options: SourceOptions) -> StoreCounts:
    """Count the facts of files, or another source, where they are.

    Raises
    ------
    CapacityError
        As the function that counts this kind of source does.
    """
    from capacity.stores.duckdb import MEMORY_LIMIT, TIMEOUT, count_duckdb

    with bar() as progress:
        if options.dask is not None:
            from capacity.stores.cluster.dask import count_dask

            return count_dask(
                given, options.dask, format=options.format, progress=progress, **options.reading
            )
        return count_duckdb(
            given,
            format=options.format,
            memory_limit=options.memory_limit or MEMORY_LIMIT,
            views=options.views,
            timeout=options.timeout or TIMEOUT,
            progress=progress,
            **options.reading,
        )


def counts_of(
    sources: Given,
    *,
    out_of_core: bool,
    memory_limit: str | None,
    dask: str | None,
    views: bool,
    timeout: float | None,
    format: str | None,
    chosen: Chosen,
    refused: Mapping[str, object],
) -> StoreCounts | None:
    """Count facts if they are to be counted; None if they are to be loaded.

    Parameters
    ----------
    sources : Path, Address, or list of these
        The files, or an endpoint, whose facts are always counted.
    out_of_core : bool
        Whether the user asks for it.
    memory_limit, dask, format : str or None
        Options of counting.
    views : bool
        Whether a view of a DuckDB file may be read.
    timeout : float or None
        Seconds that an endpoint may be silent, or a view take.
    chosen : Chosen
        The user's options for the file, and the selection.
    refused : mapping of str to object
        By their names, options that need the facts in memory; None or False where not given.

    Raises
    ------
    CapacityError
        For an option that can't be honoured, or as `count_source` does.
    """
    if chosen.reading.get("arity") == 3:
        # as all facts that are counted
        reading = {name: value for name, value in chosen.reading.items() if name != "arity"}
        chosen = replace(chosen, reading=reading)
    stored = False
    for file in each(sources):
        if isinstance(file, Address):
            require_alone(sources, file, "an endpoint")
            others = {"format": format, "out-of-core": out_of_core, "memory-limit": memory_limit,
                      "dask": dask, "views": views}  # fmt: skip
            counts = count_address(file, chosen, timeout, {**refused, **others})
            _say_notes(counts)
            return counts
        if file.suffix.lower() in STORED:
            require_alone(sources, file, "a DuckDB file")
            stored = True
    where = in_words(sources)
    if views and not (stored or (out_of_core and format == "duckdb")):
        raise InvalidArgumentError(
            f"{where}: --views is an option of DuckDB files, whose names end in "
            f"{' or '.join(STORED)}. Omit it."
        )
    if not views:
        refuse_timeout(timeout)
    if dask is not None and memory_limit is not None:
        raise InvalidArgumentError(
            "--dask counts in the memory that its workers have: omit --memory-limit, or --dask."
        )
    if not (out_of_core or dask is not None or stored):
        if memory_limit is not None:
            raise InvalidArgumentError(
                "--memory-limit is an option of counting: add --out-of-core, or omit it."
            )
        return None
    from capacity.stores.staging import CountingOptions

    asked = {**chosen.flags(omitted=CountingOptions.__annotations__), **refused}
    given = [name for name, value in asked.items() if value not in (None, False)]
    if given and given[0] == "max-file-bytes":
        raise InvalidArgumentError(
            f"{where}: --{given[0]} is a limit of loading, and facts of any number are counted. "
            f"Omit --{given[0]}."
        )
    if given:
        raise InvalidArgumentError(
            f"{where}: --{given[0]} needs the facts in memory, and these are counted where they "
            f"are. Omit --{given[0]}, or load a part of them that memory holds."
        )
    options = SourceOptions(format, chosen.reading, memory_limit, dask, views, timeout)
    counts = count_source(sources, options)
    _say_notes(counts)
    return counts


def _say_notes(counts: StoreCounts) -> None:
    for note in counts.notes:
        print(f"capacity: {visible(note)}", file=sys.stderr)
