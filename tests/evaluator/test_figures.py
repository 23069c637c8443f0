"""Figures are files, whole or absent."""

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from capacity.errors import InvalidArgumentError, InvalidTypeError, StorageError
from capacity.layer import History, Training
from capacity.plots import plot_accuracy_grid, plot_accuracy_grids, plot_attention, plot_training
from tests.odd_places import KINDS, put

PATTERNS = {"attention": pd.DataFrame([[1.0, 0.0], [0.5, 0.5]])}


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_written_to_a_file_or_not_at_all(kind: str, tmp_path: Path) -> None:
    path = put(kind, tmp_path / "figure.png")
    with pytest.raises(StorageError, match=rf"figure\.png: can't be written, for it is {kind}"):
        plot_attention(PATTERNS, path=path)
    assert [p.name for p in tmp_path.iterdir()] == ["figure.png"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_full_disk_names_the_figure_and_leaves_no_part(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"figure.{suffix}"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=rf"figure\.{suffix}: can't be written \(No space left"):
        plot_attention(PATTERNS, path=path)
    assert not list(tmp_path.iterdir())


def test_a_name_without_a_kind_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must end in \.png, \.svg or \.pdf"):
        plot_attention(PATTERNS, path=tmp_path / "figure.txt")


def test_a_table_that_is_neither_runs_nor_a_grid_is_told_what_it_lacks() -> None:
    runs = pd.DataFrame({"layer_rank_bound": [4], "accuracy_p95": [1.0]})
    with pytest.raises(InvalidArgumentError, match=r"it lacks database_rank_bound, status"):
        plot_accuracy_grid(runs)
    with pytest.raises(InvalidArgumentError, match=r"accuracy_grid\(runs, tau\)"):
        plot_accuracy_grids({"all": runs})


def test_tokens_are_drawn_as_they_stand_though_they_look_like_formulas(tmp_path: Path) -> None:
    # a formula that matplotlib can't parse, and a text with two amounts
    tokens = [r"$\frac$", "$5 to $6"]
    pattern = pd.DataFrame([[1.0, 0.0], [0.5, 0.5]], index=tokens, columns=tokens)
    figure = plot_attention({"head 0": pattern}, title="$5 to $6", path=tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()
    # what matplotlib is given is escaped, and drawn as the token
    shown = [t.get_text().replace(r"\$", "$") for t in figure.axes[0].get_xticklabels()]
    assert shown == tokens


CURVE = History((0, 1, 2, 4), (2.5, 1.0, 0.5, 0.25), (0.0, 0.5, 0.5, 1.0))


def test_lines_are_the_history() -> None:
    figure = plot_training(Training("memorised", 4, 0.25, "fused", CURVE))
    upper, lower = figure.axes
    for axes, values in ((upper, CURVE.loss), (lower, CURVE.accuracy_p50)):
        (line,) = axes.lines
        assert np.asarray(line.get_xdata()).tolist() == list(CURVE.epochs)
        assert np.asarray(line.get_ydata()).tolist() == list(values)
    # a loss is read against 0
    assert upper.get_ylim()[0] == 0
    assert upper.get_title() == "memorised after 4 epochs"
    assert plot_training(Training("completed", 1, 0.5, "fused", CURVE), title="T").axes[
        0
    ].get_title() == "T"  # fmt: skip


def test_a_training_that_diverged_is_drawn_up_to_its_end() -> None:
    curve = History((0, 1, 2), (2.5, 9.0, float("nan")), (0.0, 0.0, 0.0))
    figure = plot_training(Training("diverged", 2, float("nan"), "fused", curve))
    assert figure.axes[0].get_title() == "diverged after 2 epochs"
    assert figure.axes[0].get_ylim()[1] > 9


def test_what_has_no_curve_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="the engine toy recorded none"):
        plot_training(Training("completed", 3, 0.5, "toy"))
    with pytest.raises(InvalidTypeError, match=r"`training` must be what .* returns"):
        plot_training(cast(Any, CURVE))
    with pytest.raises(InvalidArgumentError, match=r"must end in \.png"):
        plot_training(Training("completed", 4, 0.25, "fused", CURVE), path=tmp_path / "a.txt")
