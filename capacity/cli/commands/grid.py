"""The command ``capacity grid``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from capacity.cli.output import (
    ANALYSIS,
    LAYERS,
    OUTPUT,
    TABLES,
    Json,
    one_of,
    print_json,
    require_output,
    write_table,
)
from capacity.optional import require_packages
from capacity.visible import visible

# of every sweep
THRESHOLDS = ("0.5", "0.75", "0.95", "0.99", "argmax", "argmax_paper")
PANEL = LAYERS
EXAMPLES = (
    "capacity grid demo",
    "capacity grid demo --tau 0.99 --out grid.png",
    "capacity grid demo --out grid.csv",
)


def grid(
    folder: Annotated[Path, typer.Argument(help="Folder of a sweep.", show_default=False)],
    tau: Annotated[
        str,
        typer.Option(
            help="Threshold: 0.5 (p > 0.5), 0.75, 0.95, 0.99, another tau of the plan, argmax or "
            "argmax_paper.",
            autocompletion=one_of(lambda: THRESHOLDS),
            rich_help_panel=ANALYSIS,
        ),
    ] = "0.95",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the grid to this file: a figure (.png, .svg, .pdf) or a table (.csv, "
            ".parquet).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Average the accuracies of a sweep over bins of ranks."""
    require_packages("A grid", ("pandas",), "layers")
    from capacity.evaluator.laws.grid import accuracy_grid
    from capacity.sweep.storage.runs_table import load

    try:
        threshold: Any = float(tau)
    except ValueError:
        threshold = tau
    as_table = out is not None and out.suffix.lower() in TABLES
    if out is not None:
        require_output(out, "--out", "A figure of a grid")
    table = load(folder)
    cells = accuracy_grid(table, threshold)
    if out is not None and as_table:
        write_table(cells, out)
    elif out is not None:
        from capacity.plots import plot_accuracy_grid

        plot_accuracy_grid(table, tau=threshold, path=out)
    if as_json:
        print_json(cells.to_dict("records"))
        return
    print("bins by their upper ends")
    print(cells.to_string(index=False, float_format=lambda x: f"{x:.3f}"))
    if out is not None:
        print(visible(f"{'table' if as_table else 'figure'}: {out}"))
