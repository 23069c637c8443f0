"""The page about a sweep: grids, curves, law and failures are those of the evaluator."""

from __future__ import annotations

import json
import math
import platform
import re
from pathlib import Path

import pandas as pd
import pytest

from capacity.errors import InvalidArgumentError, SweepError
from capacity.evaluator import accuracy_grid, capacity_factor, fit_size_law, mean_interval
from capacity.report import sweep_page, sweep_report
from capacity.report.drawing.line_charts import Point, Scale, chart
from capacity.report.drawing.pictures import contrast, ink, sequential, signed
from capacity.report.sweep_numbers import N_RESAMPLES, named_thresholds
from capacity.sweep import load
from tests.report.conftest import HOSTILE
from tests.report.parsed import assert_one_file, facts_of, rows_of, soup_of, text_of


@pytest.fixture
def mixed(sweep_folder: Path, mixed_runs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sweep_page, "load", lambda _: mixed_runs)
    return sweep_report(sweep_folder)


def test_the_page_is_one_file_that_loads_nothing(sweep_folder: Path, mixed: str) -> None:
    for page in (sweep_report(sweep_folder), mixed):
        assert_one_file(page)


def test_a_sweep_in_which_nothing_memorises_says_so(sweep_folder: Path) -> None:
    # five epochs teach nothing
    page = sweep_report(sweep_folder)
    assert facts_of(page)["memorised"] == {"0"}
    assert "No law can be fitted. Some runs must memorise" in text_of(page, "main")


@pytest.mark.slow
def test_every_cell_of_every_grid_is_that_of_accuracy_grid(
    mixed: str, mixed_runs: pd.DataFrame
) -> None:
    figures = {
        str(svg["aria-label"]).removeprefix("Accuracy grid, "): svg
        for svg in soup_of(mixed).select("#grids ~ .grids svg[aria-label^='Accuracy grid']")
    }
    named = named_thresholds(mixed_runs)
    assert list(figures) == list(named)
    assert {"p > 0.5", "p >= 0.95", "argmax", "argmax, ties count"} <= named.keys()
    for name, tau in named.items():
        told = [str(cell["data-cell"]).split() for cell in figures[name].select(".mark")]
        known = accuracy_grid(mixed_runs, tau).to_dict("records")
        assert len(told) == len(known)
        for cell, row in zip(told, known, strict=True):
            assert [int(cell[i]) for i in (0, 1, 3, 4)] == [
                row[key] for key in ("layer_rank_bin", "database_rank_bin", "n_runs", "n_diverged")
            ]
            missing = math.isnan(row["accuracy"])
            assert cell[2] == ("None" if missing else repr(row["accuracy"]))
        # a mean and the number of runs are in each cell
        texts = [
            cell.select("text")[0].get_text(" ").split() for cell in figures[name].select(".mark")
        ]
        for text, row in zip(texts, known, strict=True):
            shown = "-" if math.isnan(row["accuracy"]) else f"{row['accuracy']:.2f}"
            assert shown in " ".join(text)
            assert str(row["n_runs"]) in " ".join(text)


def test_there_is_one_scale_of_colours(mixed: str) -> None:
    assert len(soup_of(mixed).select("#scale rect")) == 21
    filled = {str(rect["fill"]) for rect in soup_of(mixed).select("#scale rect")}
    assert {"#440154", "#fde725"} <= filled


def test_points_over_rank_are_means_with_intervals(mixed: str, mixed_runs: pd.DataFrame) -> None:
    done = mixed_runs[mixed_runs["status"] != "diverged"]
    bins = -(-done["layer_rank_bound"] // 5) * 5
    said = " ".join(str(mark["data-says"]) for mark in soup_of(mixed).select(".grids .mark"))
    for end, part in done.groupby(bins):
        low, high = mean_interval(
            part["accuracy_p95"], part[["database_id", "layer_id"]], n_resamples=N_RESAMPLES
        )
        assert (
            f"p >= 0.95, bounds {end - 4} to {end}: mean accuracy {part['accuracy_p95'].mean():.3f}"
            f" [{low:.3f}, {high:.3f}] of {len(part)} runs." in said
        )


@pytest.mark.slow
def test_the_law_is_that_of_capacity_factor(mixed: str, mixed_runs: pd.DataFrame) -> None:
    law, got = capacity_factor(mixed_runs, n_resamples=N_RESAMPLES), facts_of(mixed)
    assert got["factor"] == got["law.factor"] == {repr(law.factor)}
    assert got["factor.low"] == {repr(law.factor_interval[0])}
    assert got["factor.high"] == {repr(law.factor_interval[1])}
    assert got["exponent"] == {repr(law.exponent)}
    assert got["exponent.low"] == {repr(law.exponent_interval[0])}
    # a band is drawn, and a line
    band = soup_of(mixed).select_one("polygon.law-band")
    assert band is not None
    assert len(str(band["points"]).split()) >= 4
    size_law = fit_size_law(mixed_runs, ["d_model", "n_heads"], n_resamples=N_RESAMPLES)
    told = {row["size"]: float(row["exponent"]) for row in rows_of(mixed, "exponents")}
    assert told == pytest.approx(size_law.law.exponents)


@pytest.mark.slow
def test_failures_are_counted_and_listed(mixed: str, mixed_runs: pd.DataFrame) -> None:
    got = facts_of(mixed)
    assert (got["diverged"], got["tied"]) == ({"2"}, {"1"})
    (row,) = rows_of(mixed, "statuses")
    assert [row[key] for key in ("runs", "memorised", "completed", "diverged", "with ties")] == [
        "48", "0", "46", "2", "1"
    ]  # fmt: skip
    listed = rows_of(mixed, "failures")
    assert [row["status"] for row in listed] == ["diverged", "diverged", "completed"]
    assert listed[2]["run"] == mixed_runs["run_key"][8][:12]
    assert listed[2]["tied"] == "0.5"


@pytest.mark.slow
def test_an_unfinished_sweep_says_what_is_left(
    sweep_folder: Path, mixed_runs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_page, "load", lambda _: mixed_runs.head(40))
    page = sweep_report(sweep_folder)
    assert (facts_of(page)["runs"], facts_of(page)["planned"]) == ({"40"}, {"48"})
    assert "8 runs aren't done" in text_of(page, "#first")


@pytest.mark.slow
def test_provenance_has_versions_plan_and_seeds_and_no_computer(
    sweep_folder: Path, mixed: str
) -> None:
    manifest = json.loads((sweep_folder / "manifest.json").read_text())
    told = {row["what"]: row["value"] for row in rows_of(mixed, "provenance")}
    text = text_of(mixed, "#provenance")
    for key, value in manifest["computed_by"].items():
        assert told[key] == str(value)
    assert manifest["plan_key"] in text
    assert told["seeds of weights"] == "0"
    assert json.loads(text_of(mixed, "pre.plan")) == manifest["config"]
    host = platform.node()
    assert not re.search(rf"\b{re.escape(host)}\b", mixed)


@pytest.mark.slow
def test_hostile_names_are_text(mixed: str) -> None:
    assert HOSTILE not in mixed
    assert HOSTILE in text_of(mixed, "#failures")


def test_another_threshold_and_a_folder_without_a_sweep_are_refused(
    sweep_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError, match="scored at"):
        sweep_report(sweep_folder, tau=0.9)
    with pytest.raises(InvalidArgumentError, match="strictly between"):
        sweep_report(sweep_folder, tau=0.4)
    with pytest.raises(SweepError, match="manifest"):
        sweep_report(tmp_path)


def test_a_sweep_in_which_all_diverged_has_no_curves(
    sweep_folder: Path, mixed_runs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = load(sweep_folder).assign(status="diverged")
    for name in bad.columns[bad.columns.str.startswith("accuracy_")]:
        bad[name] = math.nan
    monkeypatch.setattr(sweep_page, "load", lambda _: bad)
    page = sweep_report(sweep_folder)
    assert_one_file(page)
    assert "All runs diverged" in text_of(page, "main")
    assert ">nan<" not in page


def test_the_same_sweep_gives_the_same_page(sweep_folder: Path) -> None:
    assert sweep_report(sweep_folder) == sweep_report(sweep_folder)


def test_ink_can_be_read_on_every_colour() -> None:
    for scale in (sequential, lambda x: signed(2 * x - 1)):
        for i in range(101):
            ground = scale(i / 100)
            inked = (0, 0, 0) if ink(ground) == "#000000" else (255, 255, 255)
            assert contrast(inked, ground) >= 4.5


def test_what_lies_above_a_chart_is_no_mark_and_infinity_is_followed_upwards() -> None:
    points = [Point(1, 5, 4, 6, "in"), Point(2, math.inf, 7, math.inf, "out")]
    drawn = chart("", "", "", [("law", points)], Scale(2, 10), banded="law")
    (curve,) = drawn.curves
    assert [dot.says for dot in curve.dots] == ["in"]
    # x = 1 of 2 is in the middle of 56 to 544; y = 5 of 10 in that of 256 to 12
    assert (curve.dots[0].x, curve.dots[0].y) == (300, 134)
    assert "inf" not in curve.line + curve.band
    assert float(curve.line.split()[1].split(",")[1]) < 12
