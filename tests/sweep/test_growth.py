"""A plan that grows in its folder: in the end the folder is as if it had been done from scratch."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from capacity import safe_files
from capacity.cli import application
from capacity.errors import SweepError
from capacity.sweep import Plan, load, make_plan, run_sweep
from capacity.sweep.storage.admission import keys_there
from capacity.sweep.storage.manifest import environment, manifests
from capacity.sweep.storage.store import Store
from tests.tiers import examples

CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "max_triples": 6}},
    "layers": {"d_model": [1, 2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [1]},
    "recipe": {"epochs": 3},
    "compute": {"engine": "reference"},
}


@pytest.fixture(scope="module", autouse=True)
def short_shards() -> Any:
    """Let shards have one or a few runs, as those of long runs have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity.sweep.plan.SHARD_SECONDS", 0.02)
        yield


@pytest.fixture(scope="module")
def whole(short_shards: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    plan = make_plan(CONFIG)
    assert len(plan.runs) == 8
    assert 2 < len(plan.shards) < 8
    folder = tmp_path_factory.mktemp("whole")
    run_sweep(plan, folder)
    return plan, folder


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder but those that tell times, and locks."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".", "log-"))
    }


def interrupted(after: int) -> Callable[..., None]:
    """A report of progress that ends the process's work after some runs."""

    def report(what: str, done: int, _total: int, _left: float | None) -> None:
        if what == "runs" and done >= after:
            raise KeyboardInterrupt

    return report


# two to four plans, each with all runs of the one before in any order, and where each is stopped
@st.composite
def growths(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    order = draw(st.permutations(range(8)))
    sizes = sorted(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    plans = [draw(st.permutations(order[:size])) for size in (*sizes, 8)]
    return [(plan, draw(st.integers(1, len(plan) + 1))) for plan in plans]


@pytest.mark.slow
@settings(max_examples=examples(60, part=12))
@given(growths())
def test_a_plan_that_grew_is_as_if_done_from_scratch(
    whole: tuple[Plan, Path], tmp_path_factory: pytest.TempPathFactory, grown: Any
) -> None:
    plan, done = whole
    folder = tmp_path_factory.mktemp("grown")
    for runs, after in grown:
        part = replace(plan, runs=tuple(plan.runs[i] for i in runs))
        try:
            run_sweep(part, folder, progress=interrupted(after))
        except KeyboardInterrupt:
            assert after <= len(runs)
    # the last one had all runs, in some order; the whole plan has them in its own
    run_sweep(plan, folder)
    assert files(folder) == files(done)


def test_what_was_done_is_not_done_again(
    whole: tuple[Plan, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, _ = whole
    # from the middle, so that no shard stays as it is
    run_sweep(replace(plan, runs=plan.runs[3:6]), tmp_path)
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr("capacity.sweep.driver.database_ranks", None)
    small = {run.database.facts_sha256 for run in plan.runs[3:6]}
    assert small == set(plan.databases)
    run_sweep(plan, tmp_path, progress=lambda _what, done, total, _left: seen.append((done, total)))
    # three of eight are there at the start, and no rank is bounded again
    assert seen[0] == (3, 8)
    assert seen[-1] == (8, 8)


class _KilledError(BaseException):
    """What no part of the library catches."""


@pytest.mark.slow
def test_a_growth_that_is_killed_at_any_step_loses_no_row(
    whole: tuple[Plan, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, done = whole
    small, old = replace(plan, runs=plan.runs[2:6][::-1]), tmp_path / "old"
    run_sweep(small, old)
    before = set(load(old)["run_key"])
    here, write, unlink = environment(), safe_files.write_whole, Path.unlink
    n_kills = 0
    for step in count():
        folder = tmp_path / f"killed-{step}"
        shutil.copytree(old, folder)
        left = step

        def or_die(function: Any) -> Any:
            def step_of(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if left == 0:
                    raise _KilledError
                left -= 1
                return function(*arguments, **options)

            return step_of

        with monkeypatch.context() as patch:
            patch.setattr(safe_files, "write_whole", or_die(write))
            patch.setattr(Path, "unlink", or_die(unlink))
            try:
                Store(folder, plan, here)
                break
            except _KilledError:
                n_kills += 1
        # some of the rows wait for others of their new shards, which readers don't see
        assert keys_there(folder, plan, here) == before
        with suppress(SweepError):
            assert set(load(folder)["run_key"]) <= before
        if manifests(folder)[0]["question"] == small.question:
            # who gives up the growth has the old sweep as it was
            run_sweep(small, folder)
            assert files(folder) == files(old)
        run_sweep(plan, folder)
        assert files(folder) == files(done)
    # shards that wait, the manifest, removals, the manifest again
    assert n_kills > 4


def test_a_plan_that_lacks_a_run_is_refused_and_the_folder_is_left(
    whole: tuple[Plan, Path], tmp_path: Path
) -> None:
    _, done = whole
    folder = Path(shutil.copytree(done, tmp_path / "copy"))
    before = files(folder)
    more = {**CONFIG, "layers": {**CONFIG["layers"], "n_heads": [1, 2, 3]}}
    # more heads would do, but the seed has changed: of the eight runs none is there
    other = make_plan({**more, "runs": {"seeds": [1, 2]}})
    said = r"holds another sweep: runs\.seeds is missing there and \[1, 2\] here; .*lacks 8 of 8\."
    with pytest.raises(SweepError, match=said):
        run_sweep(other, folder)
    # one layer of four lacks, with both databases
    fewer = {**more["layers"], "d_model": [2, 3]}
    with pytest.raises(SweepError, match=r"another sweep: layers\.d_model is .* lacks 4 of 8\."):
        run_sweep(make_plan({**more, "layers": fewer}), folder)
    drawn = make_plan({**CONFIG, "runs": {"pairs": 7, "seed": 0}})
    with pytest.raises(SweepError, match=r"lacks 1 of 8\. Other layers or databases"):
        run_sweep(drawn, folder)
    assert files(folder) == before


def test_a_plan_grows_only_with_what_began_it(whole: tuple[Plan, Path], tmp_path: Path) -> None:
    plan, done = whole
    more = make_plan({**CONFIG, "runs": {"seeds": [0, 1]}})
    folder = Path(shutil.copytree(done, tmp_path / "copy"))
    held = json.loads((folder / "manifest.json").read_text())
    held["computed_by"]["cpu"] = "another"
    (folder / "manifest.json").write_text(json.dumps(held))
    for allowed in (False, True):
        with pytest.raises(SweepError, match=r"could grow, but was begun with .*cpu another"):
            run_sweep(more, folder, allow_other_engine=allowed)
    # earlier versions didn't list the runs
    held["computed_by"] = environment() | {"engine": "reference", "dtype": "float32"}
    (folder / "manifest.json").write_text(
        json.dumps({name: value for name, value in held.items() if name != "runs"})
    )
    with pytest.raises(SweepError, match="earlier version"):
        run_sweep(more, folder)
    assert run_sweep(plan, folder)


def test_no_plan_grows_while_a_process_does_a_part_of_it(
    whole: tuple[Plan, Path], tmp_path: Path
) -> None:
    plan, done = whole
    small = replace(plan, runs=plan.runs[:4])
    store = Store(tmp_path, small, environment())
    with (
        store.mine(0, 2),
        pytest.raises(SweepError, match=r"sweep of 4 runs, which this plan of 8 continues"),
    ):
        run_sweep(plan, tmp_path)
    # one that was let in before the growth, and begins after it
    Store(tmp_path, plan, environment())
    with pytest.raises(SweepError, match="has grown to another plan"), store.mine(0, 2):
        pass
    run_sweep(plan, tmp_path)
    assert files(tmp_path) == files(done)


def test_parts_of_a_grown_plan_are_done_one_by_one(
    whole: tuple[Plan, Path], tmp_path: Path
) -> None:
    plan, done = whole
    run_sweep(replace(plan, runs=plan.runs[1::2]), tmp_path)
    assert run_sweep(plan, tmp_path, shard=(1, 2)) is None
    assert run_sweep(plan, tmp_path, shard=(0, 2)) is not None
    assert files(tmp_path) == files(done)


def test_damage_is_done_again_as_it_grows(whole: tuple[Plan, Path], tmp_path: Path) -> None:
    plan, done = whole
    run_sweep(replace(plan, runs=plan.runs[2:6]), tmp_path)
    shard = sorted((tmp_path / "shards").iterdir())[0]
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.warns(UserWarning, match=f"{shard.name} is damaged .*done again"):
        run_sweep(plan, tmp_path)
    assert files(tmp_path) == files(done)


@pytest.mark.slow
def test_a_sweep_grows_with_several_workers_though_killed(tmp_path: Path) -> None:
    config = {**CONFIG, "recipe": {"epochs": 500}}
    more = {**config, "layers": {**CONFIG["layers"], "d_model": [4, 2, 1, 3], "n_heads": [1, 2, 3]}}
    script = (
        "import json, sys\n"
        "from capacity.sweep import make_plan, run_sweep\n"
        "if __name__ == '__main__':\n"
        "    run_sweep(make_plan(json.loads(sys.argv[1])), sys.argv[2], workers=int(sys.argv[3]))\n"
    )
    program = tmp_path / "grow.py"
    program.write_text(script)
    folder, rng = tmp_path / "sweep", random.Random(0)

    def begun(config: dict[str, Any], workers: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(program), json.dumps(config), str(folder), str(workers)]
        return subprocess.Popen(command, start_new_session=True)

    assert begun(config, 1).wait(100) == 0
    n_before = len(load(folder))
    # killed as soon as the folder is of the new plan, and later
    for wait in (0.0, 0.2 + rng.random()):
        process = begun(more, 2)
        while manifests(folder)[0]["n_runs"] < 24 and process.poll() is None:
            time.sleep(0.01)
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert begun(more, 2).wait(100) == 0
    scratch = tmp_path / "scratch"
    with pytest.MonkeyPatch.context() as patch:
        # as in those processes
        patch.setattr("capacity.sweep.plan.SHARD_SECONDS", 10.0)
        run_sweep(make_plan(more), scratch)
    assert (n_before, len(load(folder))) == (8, 24)
    assert files(folder) == files(scratch)
    pd.testing.assert_frame_equal(load(folder), load(scratch))


def test_a_dry_run_tells_what_is_there_and_what_is_omitted(
    whole: tuple[Plan, Path], tmp_path: Path
) -> None:
    def told(**layers: list[int]) -> dict[str, Any]:
        path = tmp_path / "plan.toml"
        sizes = CONFIG["layers"] | layers
        text = (
            "databases.synthetic = { count = 2, max_triples = 6 }\n"
            "recipe.epochs = 3\ncompute.engine = 'reference'\n[layers]\n"
        )
        path.write_text(text + "".join(f"{name} = {listed}\n" for name, listed in sizes.items()))
        said = CliRunner().invoke(
            application(), ["sweep", str(path), "--dry-run", "--out", str(out), "--json"]
        )
        assert said.exit_code == 0, said.output
        return json.loads(said.output)

    _, out = whole
    before = files(out)
    assert (told()["there"], told()["to_train"], told()["seconds"]) == (8, 0, 0.0)
    # d_model 1 and 2 with n_heads 1, 2 and 3, and two databases, of which n_heads 3 is new
    more = told(n_heads=[1, 2, 3])
    assert (more["runs"], more["there"], more["to_train"], more["omitted"]) == (12, 8, 4, {})
    # d_model = 1 < d_head_vo = 2, for both numbers of heads
    wide = told(d_head_vo=[1, 2])
    assert (wide["runs"], wide["there"]) == (12, 8)
    assert wide["omitted"] == {"d_head_qk or d_head_vo exceeds d_model": 2}
    assert files(out) == before
    out = tmp_path / "none"
    assert told()["there"] == 0
    assert not out.exists()
