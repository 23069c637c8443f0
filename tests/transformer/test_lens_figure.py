"""A figure of a logit lens has the words and probabilities of its table, and refuses others."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from capacity.errors import CapacityError
from capacity.plots import plot_logit_lens

WORDS = ["the", "$x$", "Tokyo", "a name of far too many letters"]
LENS = pd.DataFrame({
    "sentence": [0] * 6 + [1], "stage": [0, 0, 1, 1, 2, 2, 0], "position": [0, 2, 0, 2, 0, 2, 0],
    "token": [0, 1, 2, 3, 2, 2, 0], "probability": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
})  # fmt: skip


def drawn(figure: Figure) -> tuple[list[str], list[float]]:
    panel = figure.axes[0]
    values = panel.collections[0].get_array()
    assert values is not None
    return [text.get_text() for text in panel.texts], values.ravel().tolist()


def test_the_last_stage_is_on_top_with_words_in_place_of_ids() -> None:
    figure = plot_logit_lens(LENS, ["Japan", "pad", "is"], WORDS.__getitem__, title="$ lens")
    words, shares = drawn(figure)
    assert words == ["Tokyo", "Tokyo", "Tokyo", "a name of far too…", "the", r"\$x\$"]
    assert shares == [0.5, 0.6, 0.3, 0.4, 0.1, 0.2]
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["2", "1", "0"]
    # the columns are those of the positions that the table has
    assert [label.get_text() for label in panel.get_xticklabels()] == ["Japan", "is"]


def test_of_several_tokens_the_first_is_drawn_and_any_sentence() -> None:
    second = LENS.assign(token=3, probability=0.01)
    both = pd.concat([LENS, second]).sort_values(["sentence", "stage", "position"], kind="stable")
    figure = plot_logit_lens(both, ["a", "b", "c"], WORDS.__getitem__)
    assert drawn(figure)[1] == [0.5, 0.6, 0.3, 0.4, 0.1, 0.2]
    assert drawn(plot_logit_lens(LENS, ["a"], WORDS.__getitem__, sentence=1)) == (["the"], [0.7])
    # a position that isn't in every stage is empty there
    fewer = LENS.drop(index=1)
    assert drawn(plot_logit_lens(fewer, ["a", "b", "c"], WORDS.__getitem__))[0][-1] == "the"


def test_other_sentences_too_few_tokens_and_too_many_rows_are_refused() -> None:
    for table, said in (
        (LENS[LENS["sentence"] == 1], "none is of 0"),
        (pd.concat([LENS.assign(stage=i) for i in range(50)]), "at most 40 rows"),
    ):
        with pytest.raises(CapacityError, match=said):
            plot_logit_lens(table, ["a", "b", "c"], WORDS.__getitem__)
    with pytest.raises(CapacityError, match="each position up to 2; got 2"):
        plot_logit_lens(LENS, ["a", "b"], WORDS.__getitem__)
