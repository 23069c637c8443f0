"""The command ``capacity train``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.cli.output import (
    LAYER,
    LAYERS,
    OUTPUT,
    TABLES,
    TRAINING,
    DeviceOption,
    Json,
    plain,
    print_json,
    require_output,
    require_table,
    seed_option,
    write_table,
    write_text,
)
from capacity.cli.selecting import ALL, Chosen, load_chosen, selection_json, with_selection
from capacity.cli.selection_options import FormatOption, MultiOption
from capacity.cli.sources.files import Files, one_or_several
from capacity.optional import PACKAGES_OF_LAYERS, require_packages
from capacity.progress import bar
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.layer.run.recipe import Training

PANEL = LAYERS
EXAMPLES = (
    "capacity train examples/figure-1.ttl --d-model 4 --out layer",
    "capacity train examples/figure-1.ttl --learning-rate 0.03 --starts 8",
    "capacity train examples/figure-1.ttl --curve loss.png --facts facts.csv",
    "capacity train examples/figure-1.ttl --d-model 8 --mlp 32 --norm rms --n-layers 2",
)


def _option(panel: str, text: str, *flags: str) -> Any:
    """Make an option in a panel of the help."""
    return typer.Option(*flags, help=text, rich_help_panel=panel)


_layer, _training, _output = (partial(_option, panel) for panel in (LAYER, TRAINING, OUTPUT))


@with_selection
def train(
    files: Files,
    d_model: Annotated[int, _layer("Dimension of the embeddings.")] = 4,
    n_heads: Annotated[int, _layer("Number of heads.")] = 2,
    d_head_qk: Annotated[
        int | None, _layer("Inner dimension of queries and keys; d_model / n_heads if omitted.")
    ] = None,
    d_head_vo: Annotated[
        int | None, _layer("Inner dimension of values and outputs; d_model / n_heads if omitted.")
    ] = None,
    n_layers: Annotated[int, _layer("Number of layers.")] = 1,
    mlp: Annotated[int, _layer("Number of hidden units of each layer's MLP; 0: no MLP.")] = 0,
    activation: Annotated[
        str, _layer("Activation function of the MLP: gelu, relu or silu.")
    ] = "gelu",
    gated: Annotated[bool, _layer("Multiply hidden units by a linear gate.", "--gated")] = False,
    norm: Annotated[str, _layer("Norm: none, layer or rms.")] = "none",
    norm_place: Annotated[
        str, _layer("Place of the norms: before attention and the MLP, or after.")
    ] = "before",
    positions: Annotated[str, _layer("Positions: none, learned or rotary.")] = "none",
    bias: Annotated[bool, _layer("Add biases to heads, MLPs and logits.", "--bias")] = False,
    scale: Annotated[
        bool, _layer("Divide the attention logits by sqrt(d_head_qk).", "--scale")
    ] = False,
    tie_embeddings: Annotated[
        bool, _layer("Unembed by the transpose of the embedding.", "--tie-embeddings")
    ] = False,
    format: FormatOption = None,
    multi: MultiOption = None,
    chosen: Chosen = ALL,
    epochs: Annotated[int, _training("Maximum number of epochs.")] = 2000,
    learning_rate: Annotated[float, _training("Learning rate of Adam.")] = 1e-3,
    seed: Annotated[int, seed_option(TRAINING)] = 0,
    starts: Annotated[
        int,
        _training(
            "Largest number of random starts: train again from other weights until every fact "
            "has a probability of 0.95."
        ),
    ] = 1,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None,
        _output("Write the layer (safetensors) and its row of results to this folder."),
    ] = None,
    curve: Annotated[
        Path | None,
        _output(
            "Write the loss by epoch to this file: a figure (.png, .svg, .pdf) or a table "
            "(.csv, .parquet)."
        ),
    ] = None,
    facts: Annotated[
        Path | None,
        _output(
            "Write a table of the facts to this file (.csv, .parquet): the probability of "
            "each object, and the object that the layer predicts."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train one attention layer, or a small decoder, on a database, and score it.

    For a first try, choose several heads, a learning rate of 0.03 and `--starts 8`, and sizes with
    d_model + n_heads * d_head_vo as large as the paper's count that `capacity rank` prints. With
    few heads training often fails from one start and succeeds from another.

    Without further options the layer is the paper's. With several layers, an MLP, a norm,
    positions, biases or tied embeddings it is a decoder.
    """
    require_packages("Training", PACKAGES_OF_LAYERS, "layers")
    from capacity.evaluator.accuracy import fact_table
    from capacity.layer.decoder.config import DecoderConfig
    from capacity.layer.engines.registry import Compute, resolve_device
    from capacity.layer.model.config import LayerConfig
    from capacity.layer.model.storage import require_place
    from capacity.layer.run.recipe import Recipe, Starts
    from capacity.sweep.plan import Run
    from capacity.sweep.training.one_run import train_and_tell

    recipe = Recipe(epochs=epochs, learning_rate=learning_rate)
    heads = {"d_head_qk": d_head_qk, "d_head_vo": d_head_vo}
    given: dict[str, Any] = {name: size for name, size in heads.items() if size is not None}
    config: LayerConfig | DecoderConfig = LayerConfig(d_model, n_heads, scale=scale, **given)
    # words are checked there
    words: Any = {"activation": activation, "norm": norm, "norm_place": norm_place,
                  "positions": positions}  # fmt: skip
    asked = DecoderConfig(
        d_model, n_heads, n_layers=n_layers, mlp=mlp, gated=gated, bias=bias, scale=scale,
        tie_embeddings=tie_embeddings, **words, **given,
    )  # fmt: skip
    if asked != config.as_decoder():
        config = asked
    # a layer needs a function: without a policy a multi-valued file is an error, not a warning
    db = load_chosen(one_or_several(files), chosen, format=format, multi=multi or "error")
    run = Run(
        f"{_stem(files)}-{db.facts_sha256[:8]}",
        db,
        config,
        seed,
        recipe,
        Compute(device=resolve_device(device)),
        starts=Starts(starts, "held"),
    )
    # what is made before the training goes if nothing comes of it
    made = [one for one in (out, *out.parents) if not one.exists()] if out is not None else []
    if out is not None:
        # before the training, which would be lost if the layer couldn't be written
        require_place(out, "run.json")
    if curve is not None:
        require_output(curve, "--curve", "A figure of the loss")
    if facts is not None:
        require_table(facts, "--facts")
    try:
        with bar() as progress:
            row, layer, training = train_and_tell(
                run,
                progress=progress,
                watch=lambda _epoch, loss: progress.note(f"loss {loss:.4f}"),
            )
    except BaseException as error:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, KeyboardInterrupt):
            print("capacity: interrupted; no results were written.", file=sys.stderr)
        raise
    if out is not None:
        layer.save(out)
        write_text(out / "run.json", json.dumps(plain(row), indent=2) + "\n")
    if curve is not None:
        _write_curve(training, curve)
    if facts is not None:
        write_table(fact_table(layer, db), facts)
    if as_json:
        # the columns of the runs table, unless a part of the file was chosen
        told = selection_json(db, chosen)
        print_json([row if told is None else {**row, "selection": told}])
        return
    print(visible(f"{db.source.name if db.source else 'facts'}: {db!r}"))
    for line in _summary(config.name, row):
        print(f"  {line}")
    for written in (out, curve, facts):
        if written is not None:
            print(visible(f"  written to     {written}"))


def _summary(layer: str, row: dict[str, Any]) -> Iterator[str]:
    """Yield lines about the layer, its training and its accuracies."""
    from capacity.evaluator.accuracy import TAUS
    from capacity.evaluator.columns import accuracy_column

    yield (f"layer          {layer}, {row['n_parameters']} parameters and "
           f"{row['n_embedding_parameters']} in embeddings")  # fmt: skip
    yield f"training       {row['status']} after {row['epochs']} epochs, loss {row['loss']:.4f}"
    if row["starts"] > 1:
        held = "the last" if row["held_by_any"] else "none"
        yield (f"starts         {row['starts_tried']} of {row['starts']} tried, {held} holds all "
               f"facts at 0.95; these are the results of start {row['start'] + 1}")  # fmt: skip
    for tau in ("argmax", 0.5, *TAUS):
        title = tau if isinstance(tau, str) else f"p {'> ' if tau == 0.5 else '>='} {tau:.2f}"
        yield f"{title:<14} {row[accuracy_column(tau)]:.3f}"


def _stem(files: list[Path]) -> str:
    """Name a database by its files."""
    return "+".join(file.name.split(".")[0] for file in files)[:60]


def _write_curve(training: Training, path: Path) -> None:
    if path.suffix.lower() in TABLES:
        write_table(training.history.to_pandas(), path)
        return
    from capacity.plots import plot_training

    plot_training(training, path=path)
