"""The command ``capacity dimension``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from capacity.cli.output import (
    ANALYSIS,
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
from capacity.cli.selecting import ALL, Chosen, load_chosen, selection_json, with_selection
from capacity.cli.selection_options import FormatOption, MultiOption
from capacity.cli.sources.files import Files, one_or_several
from capacity.embedding.queries import Task
from capacity.progress import spinner
from capacity.rank.options import Effort
from capacity.visible import visible


def _models() -> list[str]:
    from capacity.embedding.families import MODELS

    return [*MODELS]


PANEL = FACTS
EXAMPLES = (
    "capacity dimension examples/figure-1.ttl --certificate dimension.json",
    "capacity dimension examples/countries.ttl --model CP --model TuckER --json",
)


@with_selection
def dimension(
    files: Files,
    format: FormatOption = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Family of models; by default all families. Repeatable.",
            autocompletion=one_of(_models),
            show_default=False,
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    task: Annotated[
        Task, typer.Option(help="Condition on the scores of the facts.", rich_help_panel=ANALYSIS)
    ] = "ranking",
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared/--separate",
            help="Whether an entity has the same vectors as subject and as object; by default if "
            "some entity is both.",
            show_default=False,
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    effort: Annotated[Effort, EFFORT_OPTION] = "quick",
    witness: Annotated[
        bool,
        typer.Option(
            "--witness/--no-witness", help="Whether to train witnesses.", rich_help_panel=SEARCH
        ),
    ] = True,
    tau: Annotated[
        float | None,
        typer.Option(
            help="Also bound the scale of scores at this threshold of the softmax, above 1/2.",
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    seed: Annotated[int, seed_option(SEARCH)] = 0,
    cited: Cited = True,
    certificate: Annotated[Path | None, CERTIFICATE_OPTION] = None,
    as_json: Json = False,
) -> None:
    """Bound the dimension that an embedding of a graph needs: proofs, witnesses, an estimate.

    The bounds are about fitting the facts of the graph, and not about predicting new facts.
    """
    if certificate is not None:
        from capacity.rank.verifier.serialization import require_plain_name

        # before the work, which would be lost
        require_plain_name(certificate)
    from capacity.embedding.families import dimensions
    from capacity.embedding.queries import QueryGraph
    from capacity.embedding.results.page import in_words, to_dict
    from capacity.embedding.softmax_scale import margins_of

    db = load_chosen(one_or_several(files), chosen, format=format, multi=multi)
    # a wrong tau is told before the work
    scales = () if tau is None else margins_of(QueryGraph.of(db, shared), tau)
    with spinner(f"bounding dimensions for {db.n_facts} facts") as say:
        options: Any = {"shared": shared, "effort": effort, "seed": seed, "cited": cited}
        found = dimensions(
            db, model or None, task, witness=witness, progress=lambda what, *_: say(what), **options
        )
        exact = () if task == "exact" else dimensions(db, model or None, "exact", **options)
    made = ""
    if certificate is not None:
        from capacity.embedding.results.serialization import save_dimensions

        made = new_folder(certificate)
        save_dimensions((*found, *exact), certificate)
    if as_json:
        of_file = {"source": db.source and db.source.name, "sha256": db.source and db.source.sha256,
                   "facts_sha256": db.facts_sha256, "multi": db.multi,
                   "selection": selection_json(db, chosen)}  # fmt: skip
        margins = {} if tau is None else {"margins": [asdict(one) for one in scales]}
        models = [to_dict(one, db) for one in (*found, *exact)]
        print_json({**of_file, "models": models, **margins})
    else:
        print(in_words(found, db, exact=exact, tau=tau))
        if certificate is not None:
            print(visible(f"certificates written to {certificate}{made}"))
