"""The command ``capacity describe``."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from capacity.cli.output import (
    FACTS,
    OUTPUT,
    Json,
    new_folder,
    print_json,
    require_table,
    write_table,
)
from capacity.cli.selecting import ALL, Chosen, load_chosen, selection_json, with_selection
from capacity.cli.selection_options import FormatOption, MultiOption
from capacity.cli.sources.counted import print_description
from capacity.cli.sources.files import FilesOrEndpoint, Timeout, one_or_several
from capacity.cli.sources.stores import Dask, MemoryLimit, OutOfCore, Views, counts_of
from capacity.database.describing import Sorting
from capacity.errors import InvalidArgumentError
from capacity.optional import require_packages
from capacity.progress import spinner
from capacity.visible import visible

PANEL = FACTS
EXAMPLES = (
    "capacity describe examples/countries.ttl",
    "capacity describe examples/countries.ttl --exclude iso3 --as turtle",
    "capacity describe examples/countries.ttl --sort facts --out predicates.csv",
    "capacity describe examples/figure-1.ttl examples/countries.ttl",
    "capacity describe https://example.org/sparql --timeout 60",
)


@with_selection
def describe(
    files: FilesOrEndpoint,
    format: FormatOption = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    form: Annotated[
        Literal["table", "turtle"],
        typer.Option(
            "--as",
            help="Form of the output: a table, or RDF (VoID and DCAT).",
            rich_help_panel=OUTPUT,
        ),
    ] = "table",
    sort: Annotated[
        Sorting,
        typer.Option(
            help="Column by which the rows are sorted: numbers from the largest, names by letter.",
            rich_help_panel=OUTPUT,
        ),
    ] = "rank",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write one row per predicate to this .csv or .parquet file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    out_of_core: OutOfCore = False,
    memory_limit: MemoryLimit = None,
    dask: Dask = None,
    views: Views = False,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Describe a graph: one row per predicate, what carries its size, and advice."""
    if out is not None:
        # before the work, which would be lost
        require_table(out, "--out")
        require_packages("A table of predicates", ("pandas",), "layers")
    if as_json and form == "turtle":
        raise InvalidArgumentError("--json and --as turtle are two forms: omit one of them.")
    given = one_or_several(files)
    counts = counts_of(
        given,
        out_of_core=out_of_core,
        memory_limit=memory_limit,
        dask=dask,
        views=views,
        timeout=timeout,
        format=format,
        chosen=chosen,
        refused={
            "multi": None if multi == "keep" else multi,
            "as": None if form == "table" else form,
            "sort": None if sort == "rank" else sort,
            "out": out,
        },
    )
    if counts is not None:
        print_description(counts, chosen, as_json)
        return
    from capacity.database.describing.dataset import describe as described
    from capacity.database.describing.writing import as_text

    db = load_chosen(given, chosen, format=format, multi=multi)
    with spinner(f"describing {db.n_facts} facts"):
        found = described(db)
    if sort != "rank":
        found = replace(found, predicates=found.sorted_by(sort))
    made = ""
    if out is not None:
        made = new_folder(out)
        write_table(found.to_pandas(), out)
    if as_json:
        of_file = {"source": db.source and db.source.name, "sha256": db.source and db.source.sha256,
                   "facts_sha256": db.facts_sha256, "multi": db.multi,
                   "selection": selection_json(db, chosen)}  # fmt: skip
        print_json({**of_file, **found.to_dict()})
    elif form == "turtle":
        print(found.to_turtle(), end="")
    else:
        # in a pipe the table is whole
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(as_text(found, width))
        if out is not None:
            print(visible(f"  table written to  {out}{made}"))
