"""The command ``capacity rank``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from capacity.cli.output import (
    CERTIFICATE_OPTION,
    EFFORT_OPTION,
    FACTS,
    SEARCH,
    Cited,
    Json,
    new_folder,
    one_of,
    print_json,
    seed_option,
)
from capacity.cli.results import bounds_json, print_result, sizes_json
from capacity.cli.schemes import start_of
from capacity.cli.selecting import ALL, Chosen, selection_json, with_selection
from capacity.cli.selection_options import MultiOption
from capacity.cli.sources.counted import print_rank
from capacity.cli.sources.files import FilesTensorOrEndpoint, Timeout, one_or_several
from capacity.cli.sources.input import FactsOrTensorFormat, read_input
from capacity.cli.sources.stores import Dask, MemoryLimit, OutOfCore, Views, counts_of
from capacity.database.facts import Database
from capacity.progress import spinner
from capacity.rank.options import Effort, Field
from capacity.visible import visible


def _methods() -> list[str]:
    from capacity.rank.search.methods import METHODS

    return [method.name for method in METHODS]


PANEL = FACTS
EXAMPLES = (
    "capacity rank examples/countries.ttl --effective",
    "capacity rank examples/figure-1.ttl --certificate rank.json",
    "capacity rank tensor.npy --json",
    "capacity rank matrices:2x2x3",
    "capacity rank wikidata.nt.gz --out-of-core --memory-limit 4GB",
    "capacity rank https://example.org/sparql --graph default",
)


@with_selection
def rank(
    files: FilesTensorOrEndpoint,
    format: FactsOrTensorFormat = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    effort: Annotated[Effort, EFFORT_OPTION] = "quick",
    seed: Annotated[int, seed_option(SEARCH)] = 0,
    effective: Annotated[
        bool,
        typer.Option(
            "--effective",
            help="Also bound the effective rank (Wong 2025, section 2.1).",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Also estimate the rank by CP decompositions (dense, slower).",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="Search only by this method, by its name in explanations. Repeatable.",
            autocompletion=one_of(_methods),
            rich_help_panel=SEARCH,
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="Start from this scheme: .json, _L.sms, .exp, .m, .mpl, .npy or .npz.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    field: Annotated[
        Field,
        typer.Option(
            help="Field of the rank: the rational (Q), real (R) or complex (C) numbers.",
            rich_help_panel=SEARCH,
        ),
    ] = "R",
    border: Annotated[
        bool,
        typer.Option(
            "--border",
            help="Bound the border rank: the least rank of tensors arbitrarily near this one.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    cited: Cited = True,
    certificate: Annotated[Path | None, CERTIFICATE_OPTION] = None,
    out_of_core: OutOfCore = False,
    memory_limit: MemoryLimit = None,
    dask: Dask = None,
    views: Views = False,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Bound the rank of a database, or of a tensor of integers, from both sides."""
    if certificate is not None:
        from capacity.rank.verifier.serialization import require_plain_name

        # before the search, which would be lost
        require_plain_name(certificate)
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
            "effort": None if effort == "quick" else effort,
            "seed": seed or None,
            "effective": effective,
            "estimate": estimate,
            "method": methods,
            "start": start,
            "field": None if field == "R" else field,
            "border": border,
            "no_cited": not cited,
            "certificate": certificate,
        },
    )
    if counts is not None:
        print_rank(counts, chosen, as_json)
        return
    from capacity.rank.search.methods import chosen as known_methods

    # a wrong name is told before the file is read
    known_methods(methods)
    from capacity.rank.analysis import RankAnalysis
    from capacity.rank.search.scheduler import PLAN

    read = read_input(given, format=format, multi=multi, chosen=chosen)
    of = read.of
    begin = start_of(start, of)
    n = f"{of.n_facts} facts" if isinstance(of, Database) else f"{of.n_entries} entries"
    with spinner(f"bounding the rank of {n}") as say:

        def tell(what: str, *_: object) -> None:
            say(what)
            # what may take long is said where it stays
            if PLAN in what and effort != "quick" and not as_json:
                print(what, file=sys.stderr)

        analysis = RankAnalysis(
            of, effort=effort, seed=seed, methods=methods, start=begin, field=field,
            border=border, cited=cited, progress=tell,
        )  # fmt: skip
        bounds, intervals = analysis.bounds, {"rank": analysis.rank}
        if effective:
            found = analysis.effective_rank
            # a lower bound of the effective rank may have raised that of the rank
            intervals = {"rank": analysis.rank, "effective_rank": found}
    interrupted = any(interval.interrupted for interval in intervals.values())
    fit = None
    if estimate and not interrupted:
        from capacity.rank.cp.estimate import cp_estimate

        with spinner("fitting CP decompositions"):
            fit = cp_estimate(of, seed=seed)
    made = ""
    if certificate is not None:
        from capacity.rank.verifier.serialization import save_certificates

        made = new_folder(certificate)
        save_certificates((end for i in intervals.values() for end in i.certificates), certificate)
    result: dict[str, Any] = {
        "source": read.source,
        "sha256": read.sha256,
        **sizes_json(read),
        **({"selection": selection_json(of, chosen)} if isinstance(of, Database) else {}),
        "bounds": bounds_json(read, bounds),
        "rank": intervals["rank"].to_dict(),
        "effective_rank": intervals["effective_rank"].to_dict() if effective else None,
        "estimate": fit.to_dict() if fit else None,
    }
    if as_json:
        print_json(result)
    else:
        print_result(result, read, bounds, intervals)
        if certificate is not None:
            print(visible(f"  certificates written to  {certificate}{made}"))
    if interrupted:
        print("interrupted; the intervals hold, but may be wider", file=sys.stderr)
        raise typer.Exit(code=130)
