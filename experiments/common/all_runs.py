"""All experiments, several at a time, each in one process; a run that is stopped goes on.

With as many experiments as cores, none of them has a core that waits for the others.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

# seconds between two looks at what has ended
PAUSE_SECONDS = 0.5


def run_all(
    modules: Mapping[str, str],
    needs: Mapping[str, Sequence[str]],
    cost: Mapping[str, float],
    folder: Path,
    *,
    at_a_time: int,
) -> list[str]:
    """Run experiments, the longest first, and print each that begins and ends.

    Parameters
    ----------
    modules : mapping of str to str
        Their modules, by name.
    needs : mapping of str to sequence of str
        Experiments whose tables one reads, which end before it begins.
    cost : mapping of str to float
        What each is expected to take.
    folder : path
        Logs, and the list of those that are done, until all are.
    at_a_time : int
        Largest number that run at once.

    Returns
    -------
    list of str
        Names of those that failed, or weren't begun because another one did.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "done.json"
    done: list[str] = json.loads(kept.read_text()) if kept.exists() else []
    waiting = sorted((name for name in modules if name not in done), key=lambda n: -cost.get(n, 0))
    failed: list[str] = []
    with _running() as running:
        while waiting or running:
            ready = [n for n in waiting if {*needs.get(n, ())}.isdisjoint((*waiting, *running))]
            ready = [n for n in ready if {*needs.get(n, ())}.isdisjoint(failed)]
            if not (ready or running):
                return [*failed, *waiting]
            for name in ready[: at_a_time - len(running)]:
                waiting.remove(name)
                print(f"{name} begins; {len(waiting)} wait", flush=True)
                running[name] = _begun(modules[name], folder / f"{name}.log")
            time.sleep(PAUSE_SECONDS)
            for name in [n for n, process in running.items() if process.poll() is not None]:
                code = running.pop(name).returncode
                print(f"{name} {'is done' if code == 0 else f'failed: {folder / name}.log'}")
                if code == 0:
                    done.append(name)
                    kept.write_text(json.dumps(done))
                else:
                    failed.append(name)
    if not failed:
        kept.unlink()
    return failed


@contextmanager
def _running() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Processes by name, which end with the context."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        yield running
    finally:
        # they keep what they have done, and how long it took
        for process in running.values():
            process.send_signal(signal.SIGINT)
        for process in running.values():
            process.wait()


def _begun(module: str, log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "EXPERIMENT_PROCESSES": "1"}
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", module, "--run"], env=environment, stdout=file, stderr=file
        )
