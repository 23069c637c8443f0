"""Accuracy grids as pictures: a cell for each bin of both rank bounds, with its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capacity.evaluator.laws.grid import DATABASE_BIN, LAYER_BIN
from capacity.report.drawing.colours import hexadecimal, ink, sequential

if TYPE_CHECKING:
    import pandas as pd

WIDTH, HEIGHT = 48, 36
# of the labels at the left, above and below
LEFT, ABOVE, BELOW = 44, 28, 40
# what a page draws; more are drawn by `capacity grid`
MOST_CELLS = 2500


@dataclass(frozen=True)
class GridCell:
    """A cell: its bins by their upper ends, its numbers, its place in pixels, and its colours."""

    layer_bin: int
    database_bin: int
    accuracy: float | None
    n_runs: int
    n_diverged: int
    x: int
    y: int
    fill: str
    ink: str
    lines: tuple[str, str]
    says: str


@dataclass(frozen=True)
class GridPicture:
    """A grid of cells, with ticks at the edges of bins and the line of equal bounds.

    Attributes
    ----------
    title : str
        What counts as recalled.
    width, height : int
        Its size in pixels, with labels.
    cells : tuple of GridCell
        Those that have runs.
    columns, rows : tuple of (int, int)
        Position in pixels and rank of each edge, from left to right and from the top down.
    equal : tuple of int
        Ends of the line where the two bounds are equal: x1, y1, x2, y2.
    """

    title: str
    width: int
    height: int
    cells: tuple[GridCell, ...]
    columns: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, int], ...]
    equal: tuple[int, int, int, int]


def grid_pictures(grids: Mapping[str, pd.DataFrame]) -> tuple[GridPicture, ...]:
    """Draw accuracy grids side by side, on the same axes.

    Parameters
    ----------
    grids : mapping of str to DataFrame
        Grids of `capacity.evaluator.accuracy_grid`, by title.

    Returns
    -------
    tuple of GridPicture
        In the same order, as long as all of them have at most `MOST_CELLS` cells.
    """
    n_columns = max(int(grid["layer_rank_bin"].max()) for grid in grids.values()) // LAYER_BIN
    n_rows = max(int(grid["database_rank_bin"].max()) for grid in grids.values()) // DATABASE_BIN
    found: list[GridPicture] = []
    left = MOST_CELLS
    for title, grid in grids.items():
        left -= len(grid)
        if left < 0:
            break
        found.append(_picture(title, grid, n_columns, n_rows))
    return tuple(found)


def _picture(title: str, grid: pd.DataFrame, n_columns: int, n_rows: int) -> GridPicture:
    base = ABOVE + n_rows * HEIGHT
    # the line goes as far as both axes do
    top = min(n_columns * LAYER_BIN, n_rows * DATABASE_BIN)
    return GridPicture(
        title,
        LEFT + n_columns * WIDTH + 16,
        base + BELOW,
        tuple(_cell(row, base) for row in grid.to_dict("records")),
        tuple((LEFT + i * WIDTH, i * LAYER_BIN) for i in range(n_columns + 1)),
        tuple((base - j * HEIGHT, j * DATABASE_BIN) for j in range(n_rows, -1, -1)),
        (LEFT, base, LEFT + round(top / LAYER_BIN * WIDTH),
         base - round(top / DATABASE_BIN * HEIGHT)),
    )  # fmt: skip


def _cell(row: Mapping[Any, Any], base: int) -> GridCell:
    i, j = int(row["layer_rank_bin"]), int(row["database_rank_bin"])
    n, diverged = int(row["n_runs"]), int(row["n_diverged"])
    mean = row["accuracy"]
    # a cell where all runs diverged has no mean
    known = mean == mean
    colour = sequential(mean) if known else (255, 255, 255)
    crossed = f" x{diverged}" if diverged else ""
    what = f"mean accuracy {mean:.3f} of {n}" if known else "no mean: all"
    return GridCell(
        i, j, float(mean) if known else None, n, diverged,
        LEFT + (i // LAYER_BIN - 1) * WIDTH, base - j // DATABASE_BIN * HEIGHT,
        hexadecimal(colour), ink(colour),
        (f"{mean:.2f}" if known else "-", f"{n}{crossed}"),
        f"Layer rank bound {i - LAYER_BIN + 1} to {i}, database rank bound "
        f"{j - DATABASE_BIN + 1} to {j}: {what} runs"
        + (f"; {diverged} diverged." if diverged else "."),
    )  # fmt: skip
