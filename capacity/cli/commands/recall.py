"""The command ``capacity recall``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from capacity.checks import require_integer
from capacity.cli.output import (
    ANALYSIS,
    COMPUTE,
    MODEL,
    MODELS,
    OUTPUT,
    Json,
    new_folder,
    print_json,
    require_table,
    seed_option,
    write_table,
)
from capacity.cli.selecting import ALL, Chosen, load_chosen_with_all, selection_json, with_selection
from capacity.cli.selection_options import FormatOption, MultiOption
from capacity.cli.sources.files import Files, one_or_several
from capacity.optional import PACKAGES_OF_LAYERS, require_packages
from capacity.progress import spinner
from capacity.visible import visible

if TYPE_CHECKING:
    import pandas as pd

    from capacity.recall.result import Recall

PANEL = MODELS
EXAMPLES = (
    "capacity recall language-model examples/figure-1.ttl --templates templates.toml",
    "capacity recall language-model examples/figure-1.ttl --answers best --out answers.csv",
    "capacity recall language-model examples/figure-1.ttl --random-parts 20",
)


@with_selection
def recall(
    model_folder: Annotated[
        Path,
        typer.Argument(
            help="Folder that save_pretrained wrote: a language model with its head, and its "
            "tokenizer.",
            show_default=False,
        ),
    ],
    files: Files,
    format: FormatOption = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    templates: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of sentences: one line per predicate, such as "
            '"ex:capital" = "The capital of {subject} is {object}." By default sentences are made '
            "from the names of the predicates.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the labels that come first, such as fr.", rich_help_panel=MODEL
        ),
    ] = None,
    label_predicate: Annotated[
        list[str] | None,
        typer.Option(
            help="Predicate of labels that comes before rdfs:label and skos:prefLabel; repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    candidates: Annotated[
        Literal["predicate", "all"],
        typer.Option(
            help="Objects that are compared: those of the predicate, or of all predicates that "
            "are asked for.",
            rich_help_panel=ANALYSIS,
        ),
    ] = "predicate",
    answers: Annotated[
        Literal["all", "best"],
        typer.Option(
            help="Score all candidates, or find the best alone, which is quicker.",
            rich_help_panel=ANALYSIS,
        ),
    ] = "all",
    pseudo_likelihood: Annotated[
        Literal["one_token", "left_to_right"],
        typer.Option(
            help="What a masked model doesn't see while it predicts a token of the object: this "
            "token, or the rest of the object, too.",
            rich_help_panel=ANALYSIS,
        ),
    ] = "one_token",
    random_parts: Annotated[
        int,
        typer.Option(
            help="Compare what is known with this number of random parts of the facts of the same "
            "size: the rank, the description length and the dimension. By default with none.",
            rich_help_panel=ANALYSIS,
        ),
    ] = 0,
    seed: Annotated[int, seed_option(ANALYSIS)] = 0,
    batch_size: Annotated[
        int,
        typer.Option(help="Number of sentences that are run together.", rich_help_panel=COMPUTE),
    ] = 32,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="File of answers (JSON Lines), also of an interrupted run. The same command "
            "continues from it.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write one row per fact and template to this .csv or .parquet file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure which facts a pretrained language model knows."""
    require_packages("Asking a model", (*PACKAGES_OF_LAYERS, "transformers"), "transformers")
    from capacity.recall.asking import recall as asked
    from capacity.transformer.activations.models.pretrained import load_pretrained

    if out is not None:
        # before the work, which would be lost
        require_table(out, "--out")
    if random_parts:
        # before the work, too
        require_integer("--random-parts", random_parts, least=2)
    given = one_or_several(files)
    # a pair with several objects has several right answers
    policy = multi or "keep"
    # labels may be among the facts that aren't selected
    db, whole = load_chosen_with_all(given, chosen, format=format, multi=policy)
    with spinner(f"reading {model_folder.name}"):
        model, tokenizer = load_pretrained(model_folder, head=True)
    found = asked(
        model,
        tokenizer,
        db,
        templates,
        candidates=candidates,
        answers=answers,
        labels=whole,
        language=language,
        label_predicates=label_predicate or (),
        pseudo_likelihood=pseudo_likelihood,
        batch_size=batch_size,
        keep=keep,
    )
    known = found.known()
    beside = None
    if random_parts and known.n_facts:
        from capacity.recall.random_parts import beside_random_parts

        beside = beside_random_parts(known, found.facts, draws=random_parts, seed=seed)
    made = "" if out is None else new_folder(out)
    if out is not None:
        write_table(found.table, out)
    if as_json:
        _print_json(found, beside, selection_json(db, chosen))
        return
    _print(found, model_folder.name)
    if random_parts:
        _print_beside(beside, random_parts)
    if out is not None:
        print(visible(f"table: {out}{made}"))


def _print_json(found: Recall, beside: pd.DataFrame | None, selection: object) -> None:
    rows, predicates, random_parts = (
        table
        if table is None
        else table.astype(object).where(table.notna(), None).to_dict("records")
        for table in (found.table, found.by_predicate(), beside)
    )
    print_json({"model": found.model, "method": found.method, "notes": list(found.notes),
                "continuations": found.n_continuations, "scored": found.n_scored,
                "facts": found.facts.n_facts, "known": len(found.known()),
                "predicates": predicates, "random_parts": random_parts, "rows": rows,
                "selection": selection})  # fmt: skip


def _print(found: Recall, name: str) -> None:
    about = (f"{name}: {found.model} knows {len(found.known())} of {found.facts.n_facts} facts; "
             f"{found.method}")  # fmt: skip
    print(visible(about))
    table = found.by_predicate()
    table["predicate"] = table["predicate"].map(visible)
    print(table.to_string(index=False, float_format=lambda x: f"{x:.3g}"))
    print("known: the object is the best candidate for at least half of the templates "
          "(known_best: one, known_worst: all)")  # fmt: skip
    for note in found.notes:
        print(visible(note))


def _print_beside(beside: pd.DataFrame | None, draws: int) -> None:
    if beside is None:
        print("nothing is known, and there are no random parts of that size")
        return
    print(f"beside {draws} random parts of the same size, matched by the frequency of their "
          "answers, by predicate alone, or not")  # fmt: skip
    print(beside.to_string(index=False, float_format=lambda x: f"{x:.3g}"))
    print("low and high: ends of the interval of 95 % of the random parts; n_open: facts that a "
          "random part can do without")  # fmt: skip
