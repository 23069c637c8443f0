"""Damaged files of a sweep: an answer as if they were whole, or one clear error; never another."""

import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from capacity.errors import CapacityError
from capacity.sweep import Plan, load, make_plan, run_sweep
from capacity.sweep.storage.manifest import environment
from capacity.sweep.storage.store import Store
from tests import hostile_sweeps

# four runs, two a shard
CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "max_triples": 8}},
    "layers": {"d_model": [1], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [1]},
    "compute": {"engine": "reference"},
    "recipe": {"epochs": 3},
}
N_MUTATIONS = 100
MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "manifest.json": hostile_sweeps.mutate_manifest,
    "runs.parquet": hostile_sweeps.mutate_table,
    "shards/*": hostile_sweeps.mutate_table,
    "unfinished/*": hostile_sweeps.mutate_table,
    "ranks/*": hostile_sweeps.mutate_ranks,
}


@pytest.fixture(scope="module")
def plan() -> Iterator[Plan]:
    with pytest.MonkeyPatch.context() as patch:
        plan = make_plan(CONFIG)
        longest = max(run.seconds for run in plan.runs)
        patch.setattr("capacity.sweep.plan.SHARD_SECONDS", 2.5 * longest)
        assert [len(shard) for shard in plan.shards] == [2, 2]
        yield plan


@pytest.fixture(scope="module")
def done(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that is whole but for its first shard, which is unfinished; and its table."""
    folder = tmp_path_factory.mktemp("sweep")
    run_sweep(plan, folder)
    store = Store(folder, plan, environment())
    rows = pq.read_table(store.path(0)).to_pylist()
    store.keep_unfinished(0, rows[:1])
    store.path(0).unlink()
    return folder


def answer(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, or the error of the one kind that it may end in, of one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except CapacityError as error:
            return error if "\n" not in str(error) else pytest.fail(f"several lines: {error}")


@pytest.mark.slow
@pytest.mark.parametrize("of", MUTATIONS)
def test_a_mutated_file_is_read_as_if_it_were_whole_or_refused(
    of: str, plan: Plan, done: Path, tmp_path: Path
) -> None:
    whole, table = load(done), (done / "runs.parquet").read_bytes()
    rng, folder = random.Random(of), tmp_path / "copy"
    for _ in range(N_MUTATIONS // len(MUTATIONS)):
        shutil.copytree(done, folder)
        victim = rng.choice(sorted(folder.glob(of)))
        victim.write_bytes(MUTATIONS[of](victim.read_bytes(), rng))
        if rng.random() < 0.5:
            # then the shards are read
            (folder / "runs.parquet").unlink()
        read = answer(load, folder)
        if isinstance(read, pd.DataFrame):
            same = whole[whole["run_key"].isin(read["run_key"])].reset_index(drop=True)
            pd.testing.assert_frame_equal(read, same)
        swept = answer(run_sweep, plan, folder)
        # all but a manifest can be made again
        assert isinstance(swept, Path) or of == "manifest.json"
        if isinstance(swept, Path):
            assert swept.read_bytes() == table
        shutil.rmtree(folder)
