"""However a command is ended, nothing of its work is left: no file, no folder and no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import soak_sweep
from capacity.cli.process import ended_by_signals
from capacity.database.facts import Database
from capacity.sweep.training import one_run
from tests.oracles import EXAMPLES, ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
FIGURE_1 = EXAMPLES / "figure-1.ttl"
# runs a command in which one function, once it has begun, works for ever
CHILD = """
import importlib, sys
from capacity.cli import main
if __name__ == "__main__":
    module, _, name = sys.argv[1].rpartition(".")
    of = importlib.import_module(module)
    whole = getattr(of, name)
    def endless(*arguments, **options):
        whole(*arguments, **options)
        print("begun", file=sys.stderr, flush=True)
        while True:
            whole(*arguments, **options)
    setattr(of, name, endless)
    main(sys.argv[2:])
"""
# by what is tried, the function that is to be at work, and the command line
WORK: dict[str, tuple[str, list[object]]] = {
    "describe": ("capacity.database.describing.dataset.predicate_rows", ["describe", FIGURE_1]),
    "describe, reading": (
        "capacity.stores.staging.stage_rdf", ["describe", "{folder}/a.nt", "--out-of-core"]
    ),
    "rank, reading": (
        "capacity.stores.staging.stage_rdf", ["rank", "{folder}/a.nt", "--out-of-core"]
    ),
    "rank, counting": (
        "capacity.stores.duckdb._classes", ["rank", "{folder}/a.nt", "--out-of-core"]
    ),
    "rank": ("capacity.rank.analysis.search", ["rank", FIGURE_1, "--effective", "--estimate"]),
    "rank, writing": ("os.fsync", ["rank", FIGURE_1, "--certificate", "{folder}/c.json"]),
    "verify": (
        "capacity.rank.verifier.checker.verify", ["verify", "{folder}/rank.json", FIGURE_1]
    ),
    "dimension": (
        "capacity.embedding.families.dimensions", ["dimension", FIGURE_1, "--model", "CP"]
    ),
    "dimension, its rank": ("capacity.rank.analysis.search", ["dimension", FIGURE_1]),
    "train": (
        "capacity.sweep.training.one_run.train_and_tell",
        ["train", FIGURE_1, "--multi", "first", "--epochs", 5, "--out", "{folder}/layer"],
    ),
    "grid": ("capacity.evaluator.laws.grid.accuracy_grid", ["grid", "{folder}/demo"]),
    "attention": (
        "capacity.transformer.activations.capturing.capture",
        ["attention", "{folder}/model", "--text", "the court", "--out", "{folder}/a.png"],
    ),
    "recall": (
        "capacity.recall.scores.continuations.log_p",
        ["recall", "{folder}/language-model", FIGURE_1, "--keep", "{folder}/answers.jsonl"],
    ),
    "report": (
        "capacity.report.database_page.dimensions", ["report", FIGURE_1, "--out", "{folder}/p.html"]
    ),
    "report, its rank": (
        "capacity.rank.analysis.search", ["report", FIGURE_1, "--out", "{folder}/p.html"]
    ),
    "report of a sweep": (
        "capacity.report.sweep_page.statuses",
        ["report", "{folder}/demo", "--out", "{folder}/p.html"],
    ),
    "doctor": ("capacity.installation.report.installation", ["doctor", "--device", "cpu"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the files that commands read: facts, certificates, a sweep and a model."""
    from transformers import BertConfig, BertModel, BertTokenizer

    from tests.recall.tiny_language_models import gpt2

    folder = tmp_path_factory.mktemp("made")
    lines = (f"<x:a{i}> <x:p> <x:b{i}> .\n" for i in range(10**5))
    (folder / "a.nt").write_text("".join(lines))
    model = folder / "model"
    model.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "court"]
    (model / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(model / "vocab.txt")).save_pretrained(model)
    sizes: Any = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    BertModel(BertConfig(vocab_size=len(words), intermediate_size=4, **sizes)).save_pretrained(
        model
    )
    for one in gpt2():
        one.save_pretrained(folder / "language-model")
    (folder / "plan.toml").write_text(soak_sweep.PLAN.replace("2000", "5"))
    for line in (["rank", FIGURE_1, "--certificate", folder / "rank.json"],
                 ["sweep", folder / "plan.toml", "--out", folder / "demo"]):  # fmt: skip
        subprocess.run([sys.executable, "-m", "capacity.cli", *line], check=True, cwd=ROOT)
    return folder


@contextmanager
def at_work(name: str, made: Path, temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A command whose work has begun, in a group of its own."""
    function, line = WORK[name]
    words = [str(word).format(folder=made) for word in line]
    script = temporary.parent / "child.py"
    script.write_text(CHILD)
    with subprocess.Popen(
        [sys.executable, script, function, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True, preexec_fn=_heeds_signals,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        said = ""
        for text in process.stderr:
            said += text
            if text == "begun\n":
                break
        else:
            pytest.fail(said)
        try:
            yield process
        finally:
            # else a failed test would wait for it for ever
            process.kill()


def _heeds_signals() -> None:
    """Heed signals that what runs these tests in the background may ignore, as nohup does."""
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def files_of(*folders: Path) -> set[Path]:
    # compiled code stays, and the file systems' times of it
    found = {path for folder in folders for path in folder.rglob("*")}
    return {path for path in found if "__pycache__" not in path.parts}


def assert_alone(group: int) -> None:
    for _ in range(100):
        if not soak_sweep.is_alive(group):
            return
        time.sleep(0.1)
    pytest.fail("a process is left")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stop"),
    [*((name, stop) for name in WORK for stop in (signal.SIGTERM, signal.SIGINT)),
     ("rank, reading", signal.SIGHUP)],
)  # fmt: skip
def test_a_command_that_is_ended_leaves_nothing_and_says_by_what(
    name: str, stop: signal.Signals, made: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = files_of(made)
    with at_work(name, made, temporary) as process:
        if "reading" in name or "counting" in name:
            # else this shows nothing
            assert files_of(temporary)
        os.kill(process.pid, stop)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + stop
    assert_alone(process.pid)
    assert not files_of(temporary)
    assert files_of(made) == before
    assert "Traceback" not in err
    if name == "rank":
        # what was found so far is worth having
        assert out.startswith("The rank is ")
        assert err.endswith("interrupted; the intervals hold, but may be wider\n")
    else:
        assert out == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rank, reading", "rank, counting"])
def test_signals_that_come_together_disturb_no_clean_up(
    name: str, made: Path, tmp_path: Path
) -> None:
    # timeout(1) sends one to the process, and one to its group
    with at_work(name, made, tmp_path) as process:
        for _ in range(5):
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(0.002)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGTERM, "")
    assert not [path for path in files_of(tmp_path) if path.name != "child.py"]


def test_a_signal_that_is_to_be_ignored_is_ignored() -> None:
    # as nohup does
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals() as code:
            signal.raise_signal(signal.SIGHUP)
            assert code() == 130
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_those_of_before_at_the_end() -> None:
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)]
    with ended_by_signals() as code:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        # once is enough
        signal.raise_signal(signal.SIGHUP)
        assert code() == 143
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_sweep_stores_no_rank_whose_search_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # its interval may be wider than that of a whole search, and the table would differ
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("capacity.rank.analysis.search", interrupted)
    db = Database.from_triples([("a", "p", "b"), ("c", "q", "d")])
    with pytest.raises(KeyboardInterrupt):
        one_run.database_ranks(db)
