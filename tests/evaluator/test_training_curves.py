"""The figure of a training shows the numbers of its history."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer import History, Training
from capacity.plots import plot_training

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
