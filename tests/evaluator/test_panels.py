"""Figures are drawn into panels of the user's own, and in the size that is asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.errors import CapacityError
from capacity.evaluator import accuracy_grid, circuit_tables
from capacity.layer import AttentionLayer, History, LayerConfig, Training
from capacity.plots import (
    draw_matrix,
    plot_accuracy_grid,
    plot_accuracy_grids,
    plot_attention,
    plot_circuits,
    plot_database,
    plot_logit_lens,
    plot_matrices,
    plot_pair,
    plot_training,
    scale_of,
)
from tests.oracles import figure_1

RUNS = pd.DataFrame({"layer_rank_bound": [4, 8], "database_rank_bound": 10, "status": "completed",
                     "accuracy_p95": [0.5, 1.0]})  # fmt: skip
PATTERN = pd.DataFrame([[1.0, 0.0], [0.3, 0.7]], index=["a", "b"], columns=["a", "b"])
LENS = pd.DataFrame({"sentence": 0, "stage": [0, 0, 1, 1], "position": [0, 1, 0, 1],
                     "token": [4, 5, 5, 4], "probability": [0.2, 0.9, 0.5, 0.4]})  # fmt: skip
TRAINING = Training("memorised", 2, 0.1, "fused", History((0, 1), (2.3, 0.9), (0.0, 0.5)))
DB = figure_1()
LAYER = AttentionLayer(LayerConfig(4, 2), DB.n_tokens, seed=1)
ONE_PANEL: dict[str, Callable[..., Figure]] = {
    "grid": lambda **options: plot_accuracy_grid(RUNS, **options),
    "attention": lambda **options: plot_attention({"head 0": PATTERN}, **options),
    "matrices": lambda **options: plot_matrices({"head 0": PATTERN}, **options),
    "lens": lambda **options: plot_logit_lens(LENS, ["a", "b"], str, **options),
}
SIZED = {
    **ONE_PANEL,
    "grids": lambda **options: plot_accuracy_grids(
        {"one": accuracy_grid(RUNS, 0.95), "two": accuracy_grid(RUNS, 0.95)}, **options
    ),
    "training": lambda **options: plot_training(TRAINING, **options),
    "circuits": lambda **options: plot_circuits(LAYER, DB, **options),
    "pair": lambda **options: plot_pair(LAYER, DB, "Bernard", "lives_in", **options),
    "database": lambda **options: plot_database(DB, **options),
}


@pytest.mark.parametrize("name", ONE_PANEL)
def test_a_figure_of_one_panel_is_drawn_into_the_users_own(name: str) -> None:
    mine = Figure(figsize=(7, 3))
    left, right = mine.subplots(1, 2)
    left.plot([0, 1], [0, 1])
    mine.suptitle("mine")
    assert ONE_PANEL[name](ax=right) is mine
    # a map with as many cells as it has alone, and nothing in the other panel
    alone = ONE_PANEL[name]().axes[0]
    cells = [np.ma.getdata(one.collections[0].get_array()) for one in (right, alone)]  # pyright: ignore
    np.testing.assert_array_equal(*cells)
    assert not left.collections
    assert mine.get_suptitle() == "mine"
    assert mine.get_size_inches().tolist() == [7, 3]
    # the user's panels, and a bar of colours
    assert len(mine.axes) == 3


def test_a_training_is_drawn_into_two_panels_of_the_users_own() -> None:
    mine = Figure()
    panels = mine.subplots(2, 2)
    assert plot_training(TRAINING, axes=(panels[0, 1], panels[1, 1])) is mine
    assert [len(one.lines) for one in panels.ravel()] == [0, 1, 0, 1]
    for axes in ((panels[0, 0],), tuple(panels.ravel())):
        with pytest.raises(CapacityError, match="has 2 panels; got axes for"):
            plot_training(TRAINING, axes=axes)


@pytest.mark.parametrize("name", SIZED)
def test_a_figure_has_the_size_that_is_asked_for(name: str) -> None:
    assert SIZED[name](figsize=(6.5, 4)).get_size_inches().tolist() == [6.5, 4]
    for wrong in ((1,), (0, 3), (3, float("nan")), "73", (10**9, 1)):
        with pytest.raises(CapacityError, match="width and a height in inches"):
            SIZED[name](figsize=wrong)


@pytest.mark.parametrize("name", ONE_PANEL)
def test_what_is_no_panel_is_refused(name: str) -> None:
    ax = Figure().subplots()
    with pytest.raises(CapacityError, match="must be an Axes of matplotlib"):
        ONE_PANEL[name](ax="left")
    with pytest.raises(CapacityError, match="Choose one of them"):
        ONE_PANEL[name](ax=ax, figsize=(3, 3))


def test_one_panel_takes_one_pattern() -> None:
    ax = Figure().subplots()
    two: dict[str, Any] = {"head 0": PATTERN, "head 1": PATTERN}
    for plot in (plot_attention, plot_matrices):
        with pytest.raises(CapacityError, match="has 2 panels; got axes for 1"):
            plot(two, ax=ax)


def limits(axes: Axes) -> tuple[float, float]:
    return axes.collections[0].get_clim()  # type: ignore[return-value]


def test_weights_that_are_never_negative_have_the_whole_scale() -> None:
    assert limits(plot_attention({"a": PATTERN}).axes[0]) == (0, 1)
    # one negative weight makes 0 the middle, for all patterns of the figure
    negative = PATTERN - 0.5
    both = plot_attention({"a": PATTERN, "b": negative}).axes[:2]
    assert [limits(one) for one in both] == [(-1, 1), (-1, 1)]
    # attention of a pair lies between 0 and 1
    pair = plot_pair(LAYER, DB, "Bernard", "lives_in")
    assert limits(pair.axes[0]) == (0, 1)


def test_a_circuit_is_drawn_into_a_panel_with_the_scale_of_several() -> None:
    tables = circuit_tables(LAYER, DB)
    scale = scale_of([tables["W_VO 0"], tables["W_VO 1"]])
    # both have negative entries, so that the ends are the largest of both
    most = max(abs(tables[f"W_VO {h}"].to_numpy()).max() for h in (0, 1))
    panels = Figure().subplots(1, 2)
    for h, ax in enumerate(panels):
        bar = draw_matrix(ax, tables[f"W_VO {h}"], title=f"head {h}", scale=scale)
        assert bar.get_clim() == pytest.approx((-most, most))
        assert ax.get_title() == f"head {h}"
    with pytest.raises(CapacityError, match="at least one cell"):
        draw_matrix(panels[0], tables["W_EU"].iloc[:0])
