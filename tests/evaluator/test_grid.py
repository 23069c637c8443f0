import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capacity.errors import InvalidArgumentError
from capacity.evaluator import accuracy_column, accuracy_grid
from capacity.plots import plot_accuracy_grid, plot_accuracy_grids
from capacity.sweep import load
from tests.oracles import ROOT

TABLE = pd.DataFrame(
    [
        # layer, database, status, accuracy
        (5, 10, "completed", 1.0),  # (0, 5] x (0, 10]
        (1, 1, "completed", 0.5),  # the same cell
        (6, 11, "memorised", 1.0),  # (5, 10] x (10, 20]
        (10, 20, "diverged", float("nan")),  # the same cell
        (12, 3, "diverged", float("nan")),  # a cell of its own
    ],
    columns=["layer_rank_bound", "database_rank_bound", "status", "accuracy_p95"],
)


def test_cells_are_half_open_and_diverged_runs_are_counted_apart() -> None:
    grid = accuracy_grid(TABLE, 0.95)
    rows = [tuple(row) for row in grid.itertuples(index=False)]
    assert rows[0] == (5, 10, 0.75, 2, 0)
    assert rows[1] == (10, 20, 1.0, 1, 1)
    assert rows[2][:2] + rows[2][3:] == (15, 10, 0, 1)
    assert pd.isna(rows[2][2])


def test_columns_are_named_by_tau() -> None:
    assert accuracy_column(0.5) == "accuracy_p50"
    assert accuracy_column("argmax") == "accuracy_argmax"
    with pytest.raises(ValueError, match="strictly between"):
        accuracy_column(0.3)
    with pytest.raises(ValueError, match="'argmax' or 'argmax_paper'"):
        accuracy_column("max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"scored at: 0\.95; got 0\.97"):
        accuracy_grid(TABLE, 0.97)


@pytest.mark.slow
def test_figures_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    grid = accuracy_grid(TABLE, 0.95)
    for kind in ("png", "svg", "pdf"):
        digests = set()
        for i in range(2):
            path = tmp_path / f"{i}.{kind}"
            plot_accuracy_grid(grid, title="a title", path=path)
            digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
        assert len(digests) == 1, kind


def test_the_figure_shows_every_cell_and_the_line_of_equal_ranks() -> None:
    figure = plot_accuracy_grid(accuracy_grid(TABLE, 0.95))
    axes = figure.axes[0]
    texts = {t.get_text() for t in axes.texts}
    assert {"0.75\n2", "1.00\n1 x1"} <= texts
    # three layer bins and two database bins: from (0, 0) to rank 15, at 3 cells right, 1.5 up
    (line,) = axes.lines
    assert np.asarray(line.get_xdata()).tolist() == [0, 3]
    assert np.asarray(line.get_ydata()).tolist() == [2, 0.5]


def test_the_runs_of_a_folder_are_drawn_as_they_are_loaded() -> None:
    runs = load(ROOT / "tests" / "sweep" / "schema-2")
    figure = plot_accuracy_grid(runs, tau=0.75)
    drawn = plot_accuracy_grid(accuracy_grid(runs, 0.75))
    title = f"accuracy by p >= 0.75: {len(runs)} runs"
    assert figure.axes[0].get_title() == title
    assert {t.get_text() for t in figure.axes[0].texts} == {
        t.get_text() for t in drawn.axes[0].texts
    }
    # an argmax isn't a probability, and one half has to be exceeded
    assert plot_accuracy_grid(runs, tau="argmax").axes[0].get_title()[:18] == "accuracy by argmax"
    with pytest.raises(InvalidArgumentError, match=r"`tau` must be a threshold that the runs"):
        plot_accuracy_grid(runs, tau=0.6)


def test_an_empty_grid_is_not_drawn() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        plot_accuracy_grid(accuracy_grid(TABLE, 0.95).iloc[:0])


def test_grids_side_by_side_share_their_axes() -> None:
    grid = accuracy_grid(TABLE, 0.95)
    figure = plot_accuracy_grids({"all": grid, "first cell": grid.iloc[:1]})
    left, right = figure.axes[:2]
    assert (left.get_title(), right.get_title()) == ("all", "first cell")
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()
    with pytest.raises(ValueError, match="at least one cell"):
        plot_accuracy_grids({})
