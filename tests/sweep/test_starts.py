"""Runs of several starts: one row each, the same on any number of workers, killed and resumed."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from capacity.errors import SweepError
from capacity.layer import AttentionLayer, Recipe, train
from capacity.layer.run import snapshots
from capacity.sweep import RUNS_SCHEMA, load, make_plan, run_sweep, train_run
from capacity.sweep.grammar.plan_file import MOST_RUNS
from capacity.sweep.plan import Plan, Run
from capacity.sweep.storage.layout import starts_name
from capacity.sweep.storage.records import stamped
from capacity.sweep.training import tried
from capacity.sweep.training.tried import tried_runs

SCHEMA_3 = Path(__file__).parent / "schema-3"
CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 3, "seed": 4, "max_triples": 30}},
    "layers": {
        "d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [1, 2],
        "scale": [False, True],
    },
    "runs": {"starts": 4, "until": "held", "held_at": "argmax"},
    "recipe": [
        {"epochs": 200, "learning_rate": 0.1},
        {"epochs": 200, "learning_rate": 0.1, "frozen": ["W_K", "W_Q"]},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(CONFIG)


def with_starts(run: Run, **options: Any) -> Run:
    return replace(run, starts=replace(run.starts, **options))


def table_bytes(folder: Path) -> bytes:
    return (folder / "runs.parquet").read_bytes()


@pytest.mark.slow
def test_a_row_describes_the_first_start_that_holds_or_else_the_best(
    plan: Plan, done: Path
) -> None:
    table = load(done)
    rows = {row["run_key"]: row for row in table.to_dict("records")}
    n_later = 0
    for run in plan.runs:
        row = rows[run.key]
        shares = []
        for most in range(1, 5):
            # as many starts as that, whatever holds
            one, _ = train_run(with_starts(run, most=most, until="all"), ranks={})
            shares.append(one["accuracy_argmax"])
            assert (one["starts_tried"], one["starts"]) == (most, most)
        # the best so far, so that the first of the largest is the first that was so good
        assert shares == sorted(shares)
        n_tried = shares.index(1.0) + 1 if 1.0 in shares else 4
        assert row["starts_tried"] == n_tried
        assert row["held_by_any"] == (1.0 in shares)
        assert row["share_of_starts"] == (1 / n_tried if 1.0 in shares else 0)
        assert row["accuracy_argmax"] == shares[-1]
        assert row["start"] == shares.index(shares[-1])
        n_later += row["start"] > 0
    assert n_later > 3
    assert table["held_by_any"].nunique() == 2


def test_the_first_start_is_that_of_a_run_of_one(plan: Plan) -> None:
    run = plan.runs[0]
    one, first = (train_run(with_starts(run, most=n), ranks={}) for n in (1, 2))
    assert run.draw == with_starts(run, most=1).draw
    layers = {row["start"]: layer for row, layer in (first, one)}
    alone = AttentionLayer(
        run.layer, run.database.n_tokens,
        seed=np.random.default_rng(int(run.draw, 16)).spawn(2)[0],
    )  # fmt: skip
    train(alone, run.database, run.recipe)
    assert all(a.equal(b) for a, b in zip(layers[0].parameters(), alone.parameters(), strict=True))


def test_the_share_of_all_starts_is_counted(plan: Plan) -> None:
    run = with_starts(plan.runs[8], most=6, until="all")
    row, _ = train_run(run, ranks={})
    assert row["starts_tried"] == 6
    assert 0 < row["share_of_starts"] < 1
    assert row["share_of_starts"] * 6 % 1 == 0


@pytest.mark.slow
def test_the_table_is_the_same_on_two_workers(plan: Plan, done: Path, tmp_path: Path) -> None:
    run_sweep(plan, tmp_path / "out", workers=2)
    assert table_bytes(tmp_path / "out") == table_bytes(done)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Keys and starts that are trained from here on; each of them is due to be recorded."""
    monkeypatch.setattr(snapshots, "SECONDS", 0.0)
    seen: list[tuple[str, int]] = []
    trained_runs = tried.trained_runs

    def counted(runs: Sequence[Run], start: int, *rest: Any) -> Any:
        seen.extend((run.key, start) for run in runs)
        return trained_runs(runs, start, *rest)

    monkeypatch.setattr(tried, "trained_runs", counted)
    return seen


def interrupted_at(start: int, plan: Plan, out: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Interrupt a sweep where a run comes to a start, and return the run."""
    under_way: list[Run] = []
    trained_runs = tried.trained_runs

    def interrupted(runs: Sequence[Run], number: int, *rest: Any) -> Any:
        if number == start:
            under_way.extend(runs)
            raise KeyboardInterrupt
        return trained_runs(runs, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(tried, "trained_runs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(plan, out)
    (run,) = under_way
    return run


@pytest.mark.slow
def test_starts_that_are_done_are_not_trained_again(
    plan: Plan, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    trained: list[tuple[str, int]],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    run = interrupted_at(3, plan, out, monkeypatch)
    assert (out / "unfinished" / starts_name(run.key)).exists()
    before, trained[:] = list(trained), []
    assert {start for key, start in before if key == run.key} == {0, 1, 2}
    run_sweep(plan, out)
    assert not set(before) & set(trained)
    assert [start for key, start in trained if key == run.key] == [3]
    assert table_bytes(out) == table_bytes(done)
    assert not (out / "unfinished").exists()


def change(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda held: b"{",
        lambda held: json.dumps({**held, "tried": {**held["tried"], "held": 1}}).encode(),
        lambda held: stamped({"run_key": held["run_key"]}),
        lambda held: stamped({**_content(held), "run_key": "0" * 64}),
        lambda held: stamped({**_content(held), "tried": {"tried": 3}}),
        lambda held: stamped({**_content(held), "scores": 3}),
    ],
)
def test_a_record_of_starts_that_does_not_fit_costs_these_starts_alone(
    damage: Callable[[dict[str, Any]], bytes], plan: Plan, done: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, trained: list[tuple[str, int]],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    run = interrupted_at(2, plan, out, monkeypatch)
    path = out / "unfinished" / starts_name(run.key)
    path.write_bytes(damage(json.loads(path.read_text())))
    trained.clear()
    run_sweep(plan, out)
    assert [start for key, start in trained if key == run.key][:3] == [0, 1, 2]
    assert table_bytes(out) == table_bytes(done)


def _content(held: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in held.items() if name != "sha256"}


@pytest.mark.slow
def test_runs_that_are_trained_together_have_starts_too(together: str, tmp_path: Path) -> None:
    config = {**CONFIG, "compute": {"engine": together}, "recipe": CONFIG["recipe"][0]}
    plan = make_plan(config)
    run_sweep(plan, tmp_path / "one")
    run_sweep(plan, tmp_path / "two", workers=2)
    assert table_bytes(tmp_path / "one") == table_bytes(tmp_path / "two")
    table = load(tmp_path / "one")
    assert set(table["engine"]) == {together}
    assert table["held_by_any"].nunique() == 2
    assert table["starts_tried"].nunique() > 2
    # each as if it were alone
    for run in plan.runs[:3]:
        ((_, kept),) = tried_runs([run], None)
        (row,) = table[table["run_key"] == run.key].to_dict("records")
        assert (kept.tried.tried, kept.tried.start) == (row["starts_tried"], row["start"])


def test_frozen_weights_are_those_of_the_start(plan: Plan) -> None:
    run = next(run for run in plan.runs if run.recipe.frozen)
    assert run.recipe.frozen == ("W_Q", "W_K")
    row, layer = train_run(with_starts(run, most=1), ranks={})
    drawn = AttentionLayer(
        run.layer, run.database.n_tokens,
        seed=np.random.default_rng(int(run.draw, 16)).spawn(2)[0],
    )  # fmt: skip
    assert layer.W_Q.equal(drawn.W_Q)
    assert layer.W_K.equal(drawn.W_K)
    assert not layer.W_V.equal(drawn.W_V)
    assert row["recipe_frozen"] == "W_Q W_K"
    assert row["engine"] == "fused"


def test_starts_are_part_of_a_key_and_one_start_changes_none() -> None:
    base = {key: value for key, value in CONFIG.items() if key != "runs"}
    (one, *_), (again, *_) = (
        make_plan({**base, "runs": runs}).runs for runs in ({}, {"starts": 1, "until": "all"})
    )
    assert one.key == again.key
    others = [
        {"starts": 2},
        {"starts": 2, "until": "held"},
        {"starts": 2, "held_at": 0.99},
        {"starts": 3},
    ]
    keys = {make_plan({**base, "runs": runs}).runs[0].key for runs in others}
    assert len(keys | {one.key}) == 5
    # written by the code of schema 3
    held = json.loads((SCHEMA_3 / "manifest.json").read_text())
    assert make_plan(held["config"]).question == held["question"]


def test_a_threshold_at_which_a_database_is_held_is_scored() -> None:
    plan = make_plan({**CONFIG, "runs": {"starts": 2, "held_at": 0.97}})
    row, _ = train_run(plan.runs[0], ranks={})
    assert row["held_at"] == "0.97"
    assert row["held_by_any"] == (row["accuracy_p97"] == 1)


def test_the_estimate_is_of_all_starts(plan: Plan) -> None:
    run = plan.runs[0]
    assert with_starts(run, most=3).seconds == pytest.approx(3 * with_starts(run, most=1).seconds)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"starts": 0}, r"`starts` in \[runs\] must be an integer of at least 1"),
        ({"starts": 20_000}, "at most 10,000"),
        ({"until": "hold"}, "Did you mean `held`"),
        ({"held_at": 0.2}, r"in \[runs\]: `tau` must lie strictly between 0.5 and 1"),
        ({"held_at": [0.9]}, r"in \[runs\]"),
        ({"held_at": True}, r"in \[runs\]"),
        ({"start": 3}, "Did you mean `starts`"),
        ({"seeds": list(range(1000)), "starts": 10_000}, f"at most {MOST_RUNS:,} starts of runs"),
    ],
)
def test_a_file_is_refused_for_starts_that_cannot_be(runs: dict[str, Any], message: str) -> None:
    with pytest.raises(SweepError, match=message):
        make_plan({**CONFIG, "runs": runs})


def test_recipes_that_cannot_freeze_are_refused() -> None:
    with pytest.raises(SweepError, match=r"in \[recipe\]: .*Did you mean `W_Q`"):
        make_plan({**CONFIG, "recipe": {"frozen": ["W_q"]}})


def test_a_table_of_schema_3_is_read_as_one_of_single_starts() -> None:
    table, theirs = load(SCHEMA_3), pq.read_table(SCHEMA_3 / "runs.parquet").to_pandas()
    assert {*RUNS_SCHEMA.names, "accuracy_p999", "scale_p999"} == set(table)
    for name in theirs.columns.difference(["recipe"]):
        assert table[name].equals(theirs[name])
    assert (table["held_by_any"] == (table["accuracy_p95"] == 1)).all()
    assert table["held_by_any"].nunique() == 2
    assert (table["share_of_starts"] == table["held_by_any"]).all()
    assert set(table["starts_tried"]) == {1}
    (text,) = set(table["recipe"])
    assert Recipe(**json.loads(text)) == Recipe(epochs=200, learning_rate=0.1, schedule="cosine")
    assert Recipe(**json.loads(text)).to_dict() == json.loads(text)
