"""The command ``capacity report``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from capacity.cli.output import (
    ANALYSIS,
    EFFORT_OPTION,
    MODEL,
    OUTPUT,
    PAGES,
    SEARCH,
    TEXT_OPTION,
    Json,
    print_json,
    seed_option,
    write_text,
)
from capacity.cli.selecting import ALL, Chosen, as_typed, load_chosen, with_selection
from capacity.cli.selection_options import FormatOption, MultiOption
from capacity.cli.sources.files import (
    Address,
    FilesOrFolder,
    Given,
    each,
    in_words,
    one_or_several,
    require_alone,
)
from capacity.cli.sources.stores import STORED
from capacity.errors import InvalidArgumentError
from capacity.optional import PACKAGES_OF_LAYERS, require_packages
from capacity.progress import spinner
from capacity.rank.options import Effort
from capacity.safe_files import require_replaceable
from capacity.visible import visible

PANEL = PAGES
EXAMPLES = (
    "capacity report examples/countries.ttl --out countries.html",
    "capacity report demo --out sweep.html",
    'capacity report --attention model --text "the court said" --out heads.html',
)


@with_selection
def report(
    files: FilesOrFolder = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the page to this .html file.", show_default=False, rich_help_panel=OUTPUT
        ),
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option(
            help="Folder that save_pretrained wrote: the page is about that model, on --text.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    text: Annotated[str | None, TEXT_OPTION] = None,
    part: Annotated[
        Literal["encoder", "decoder"] | None,
        typer.Option(
            help="Part of an encoder-decoder that the page is about. The decoder reads --text, "
            "as the encoder does.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    format: FormatOption = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    effort: Annotated[Effort | None, EFFORT_OPTION] = None,
    tau: Annotated[
        float | None,
        typer.Option(
            help="Threshold at which runs of a sweep memorise; by default 0.95.",
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    seed: Annotated[int, seed_option(SEARCH)] = 0,
    as_json: Json = False,
) -> None:
    """Write a page to send to a colleague: about facts, a sweep, a model, or what it knows.

    The page is one HTML file that loads nothing.
    """
    if out is None or out.suffix.lower() not in (".html", ".htm"):
        raise InvalidArgumentError(
            f"--out must name the page, a file that ends in .html; got {out or 'none'!s:.200}."
        )
    require_packages("A report", ("jinja2",), "report")
    # before the work, which would be lost if the page couldn't be written
    require_replaceable(out)
    of_facts = {"format": format, "multi": multi, "effort": effort, **chosen.flags()}
    source = one_or_several(files) if files else None
    for one in files or ():
        for is_one, what in (
            (_is_model, "a model"), (_is_sweep, "a sweep"), (_is_recall, "what a model knows"),
        ):  # fmt: skip
            if not isinstance(one, Address) and is_one(one):
                require_alone(files or (), one, what)
    if attention is None and isinstance(source, Path) and _is_model(source):
        source, attention = None, source
    if attention is not None:
        _refuse("a model", {"tau": tau, **of_facts})
        page, about = _of_model(source, attention, text, part), "model"
    elif source is None:
        raise InvalidArgumentError(
            "A report must be about something: a file of facts, the folder of a sweep, a table of "
            "`capacity recall --out`, or a model by --attention FOLDER --text TEXT. Name one of "
            "them."
        )
    elif text is not None or part is not None:
        name = "--part" if text is None else "--text"
        raise InvalidArgumentError(f"{name} is about a model: add --attention FOLDER.")
    elif isinstance(source, Path) and _is_sweep(source):
        _refuse("a sweep", of_facts)
        page, about = _of_sweep(source, 0.95 if tau is None else tau, seed), "sweep"
    elif isinstance(source, Path) and _is_recall(source):
        _refuse("what a model knows", {"tau": tau, **of_facts})
        page, about = _of_recall(source), "recall"
    else:
        _refuse("facts", {"tau": tau})
        page, about = _of_facts(source, format, multi, chosen, effort or "quick", seed), "facts"
    write_text(out, page)
    if as_json:
        print_json({"page": str(out), "about": about, "bytes": len(page.encode())})
    else:
        print(visible(f"page: {out}, {len(page.encode()):,} bytes"))


def _refuse(about: str, options: Mapping[str, object]) -> None:
    """Raise an InvalidArgumentError for an option that the page has no use for."""
    for name, value in options.items():
        if value is not None:
            raise InvalidArgumentError(
                f"--{name} has no meaning for a page about {about}. Omit --{name}."
            )


def _is_sweep(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def _is_model(folder: Path) -> bool:
    """Return whether save_pretrained wrote a folder: config.json, and no manifest of a sweep."""
    try:
        return (folder / "config.json").is_file() and not _is_sweep(folder)
    except OSError:
        # reading it tells what is wrong
        return False


def _of_model(
    source: Given | None, folder: Path, text: str | None, part: Literal["encoder", "decoder"] | None
) -> str:
    if source is not None:
        raise InvalidArgumentError(
            f"A page must be about one thing: {in_words(source):.200}, or the model of "
            "--attention. Omit one of them."
        )
    if text is None:
        raise InvalidArgumentError(
            f"A page about the model {folder!s:.200} by --attention needs --text, the text that "
            "the model reads."
        )
    require_packages("Analysing a model", (*PACKAGES_OF_LAYERS, "transformers"), "transformers")
    from capacity.report import attention_report
    from capacity.transformer.activations.capturing import capture
    from capacity.transformer.activations.models.pretrained import inputs_of_text, load_pretrained

    with spinner(f"reading {folder.name}"):
        model, tokenizer = load_pretrained(folder)
    inputs = inputs_of_text(model, tokenizer, text, part)
    read = inputs["decoder_input_ids" if part == "decoder" else "input_ids"]
    tokens = tokenizer.convert_ids_to_tokens(read[0].tolist())
    with spinner(f"analysing {len(tokens)} tokens"):
        return attention_report(
            capture(model, inputs, part=part), tokens, title=folder.resolve().name
        )


def _of_sweep(folder: Path, tau: float, seed: int) -> str:
    require_packages("A report of a sweep", ("pandas",), "layers")
    from capacity.report import sweep_report

    with spinner(f"reading {folder.name}"):
        return sweep_report(folder, tau=tau, seed=seed)


def _is_recall(file: Path) -> bool:
    from capacity.report.recall_page import is_recall_table

    return is_recall_table(file)


def _of_recall(file: Path) -> str:
    require_packages("A report of a model", ("pandas",), "layers")
    from capacity.report import recall_report

    with spinner(f"reading {file.name}"):
        return recall_report(file)


def _of_facts(
    source: Given,
    format: str | None,
    multi: Any,
    chosen: Chosen,
    effort: Effort,
    seed: int,
) -> str:
    for one in each(source):
        if isinstance(one, Address) or one.suffix.lower() in STORED:
            raise InvalidArgumentError(
                f"{one!s:.200}: a report needs the facts, and those of an endpoint or of a DuckDB "
                "file are counted where they are. Pass a file of facts; `capacity describe` counts."
            )
    from capacity.report import database_report

    db = load_chosen(source, chosen, format=format, multi=multi)
    with spinner(f"measuring {db.n_facts} facts") as say:
        return database_report(
            db,
            effort=effort,
            seed=seed,
            options=as_typed({"format": format, "multi": multi, **chosen.flags()}),
            progress=lambda what, *_: say(what),
        )
