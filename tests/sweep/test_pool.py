"""Processes of our own: what dies costs an attempt, what fails fails alone, and nothing is left."""

import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from capacity.errors import SweepError
from capacity.sweep.workers.pool import ATTEMPTS, in_this_process, processes
from tests.sweep import tasks


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_has_one_outcome(workers: int) -> None:
    with processes(workers) as execute:
        first = list(execute(tasks.square, {n: (n,) for n in range(20)}))
        # the same processes do what comes next
        second = list(execute(tasks.square, {"a": (5,)}))
        assert len(multiprocessing.active_children()) == workers
    assert sorted((one.name, one.value) for one in first) == [(n, n * n) for n in range(20)]
    assert [(one.name, one.value, one.error) for one in second] == [("a", 25, None)]
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_task_that_fails_fails_alone() -> None:
    here = list(in_this_process(tasks.fail, {n: (n,) for n in range(4)}))
    with processes(2) as execute:
        there = list(execute(tasks.fail, {n: (n,) for n in range(4)}))
    for outcomes in (here, there):
        assert sorted(one.value for one in outcomes if one.error is None) == [0, 2, 3]
        (failed,) = (one for one in outcomes if one.error is not None)
        assert failed.name == 1
        assert "ArithmeticError: the poison" in str(failed.error)


@pytest.mark.slow
def test_a_process_that_dies_costs_an_attempt_and_a_poison_task_fails_alone(
    tmp_path: Path,
) -> None:
    with processes(2) as execute:
        once = list(execute(tasks.die_once, {n: (n, str(tmp_path)) for n in range(4)}))
        always = list(execute(tasks.die, {n: (n,) for n in range(4)}))
    assert sorted(one.value for one in once) == [0, 1, 2, 3]
    assert sorted(one.value for one in always if one.error is None) == [0, 2, 3]
    (failed,) = (one for one in always if one.error is not None)
    assert failed.name == 1
    assert failed.error == f"its process died {ATTEMPTS} times, killed or out of memory"


@pytest.mark.slow
def test_a_task_whose_process_dies_is_tried_again_before_others_begin(tmp_path: Path) -> None:
    for n in (0, 2, 3):
        (tmp_path / str(n)).touch()
    with processes(1) as execute:
        outcomes = list(execute(tasks.die_once, {n: (n, str(tmp_path)) for n in range(4)}))
    assert [one.name for one in outcomes] == [0, 1, 2, 3]


@pytest.mark.slow
def test_an_error_of_who_listens_leaves_no_process() -> None:
    def listen() -> None:
        with processes(2) as execute:
            for _ in execute(tasks.square, {n: (n,) for n in range(100)}):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        listen()
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_script_without_its_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from capacity.sweep.workers.pool import processes\n"
        "with processes(2) as execute:\n"
        "    list(execute(abs, {0: (1,)}))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "SweepError: Worker processes must be able to start" in done.stderr
    assert '__name__ == "__main__"' in done.stderr


@pytest.mark.slow
def test_what_cannot_be_sent_is_an_outcome_and_who_is_late_answers_nobody() -> None:
    with processes(2) as execute:
        (unsent,) = execute(tasks.unsendable, {0: ()})
        assert "pickle" in str(unsent.error)
        for _ in execute(tasks.square, {n: (n,) for n in range(50)}):
            break
        after = list(execute(tasks.square, dict.fromkeys("abc", (3,))))
    assert sorted(one.name for one in after) == ["a", "b", "c"]


@pytest.mark.slow
def test_what_a_process_cannot_import_is_told_and_is_no_death(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "only_here.py").write_text("def nothing():\n    pass\n")
    with processes(1) as execute:
        list(execute(tasks.square, {0: (2,)}))
        # the other process began when nobody knew of the folder
        monkeypatch.syspath_prepend(tmp_path)
        (unknown,) = execute(import_module("only_here").nothing, {"a": ()})
        assert unknown.name == "a"
        assert "No module named 'only_here'" in str(unknown.error)
        assert [one.value for one in execute(tasks.square, {0: (3,)})] == [9]


def test_what_cannot_be_sent_to_a_process_is_said_in_words() -> None:
    with (
        pytest.raises(SweepError, match=r"top level of a module .*lambda.*use one worker"),
        processes(1) as execute,
    ):
        list(execute(lambda: None, {0: ()}))
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_processes_can_begin_and_prepare_before_there_are_tasks(tmp_path: Path) -> None:
    with processes(3, early=True, prepare=partial(tasks.mark, str(tmp_path))) as execute:
        slow = execute(tasks.slow, {n: (n,) for n in range(30)})
        assert sorted(one.value for one in slow) == list(range(30))
        # each has a number of its own, by which it takes one of the GPUs
        assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
    assert not multiprocessing.active_children()


def test_where_the_server_has_no_socket_each_process_is_a_new_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_a_socket() -> None:
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr("multiprocessing.forkserver.ensure_running", without_a_socket)
    with processes(1) as execute:
        (outcome,) = execute(os.getppid, {0: ()})
    assert outcome.value == os.getpid()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
def test_a_server_that_is_killed_costs_no_task(tmp_path: Path) -> None:
    with processes(2) as execute:
        (server,) = {outcome.value for outcome in execute(os.getppid, dict.fromkeys(range(4), ()))}
        os.kill(server, signal.SIGKILL)
        # both go on, and another server forks one in place of that which dies
        outcomes = list(execute(tasks.die_once, {n: (n, str(tmp_path)) for n in range(4)}))
    assert sorted(one.value for one in outcomes) == [0, 1, 2, 3]
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_worker_has_the_environment_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in "ab":
        monkeypatch.setenv("CAPACITY_TEST", value)
        with processes(1) as execute:
            (outcome,) = execute(os.getenv, {0: ("CAPACITY_TEST",)})
        assert outcome.value == value


@pytest.mark.slow
def test_an_error_while_preparing_is_left_to_the_tasks() -> None:
    with processes(1, early=True, prepare=tasks.fail_before) as execute:
        assert [one.value for one in execute(tasks.fail, {0: (2,)})] == [2]


@pytest.mark.slow
def test_a_lost_device_costs_an_attempt_in_a_new_process_and_is_told(tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match=r"the device of \d is lost\. It is tried again") as told,
        processes(2) as execute,
    ):
        found = {o.name: o for o in execute(tasks.lose, {n: (n, str(tmp_path)) for n in range(3)})}
    assert (found[0].value, found[2].value) == (0, 2)
    assert found[1].error == "the device of 1 is lost."
    assert sum("device of 1" in str(one.message) for one in told) == ATTEMPTS - 1


PLAN = Path(__file__).parents[2] / "benchmarks/headlines/small_plan.toml"


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_small_plan_of_three_sizes_compiles_one_kernel(workers: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    subprocess.run(
        [sys.executable, "-m", "capacity.cli", "sweep", str(PLAN), "--out", "out",
         "--workers", workers],
        cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )  # fmt: skip
    # with 60 runs of a thousand epochs, and ranks of ten databases
    (kernel,) = cache.rglob("*.nbc")
    assert kernel.name.startswith("epochs.train_epochs-")
