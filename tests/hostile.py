"""Mutated files, many of them in one process: each ends in an answer or in one clear line.

    python -m tests.hostile certificates 2000 0

The process may take 1 GB more than its imports. What comes out is counted, as JSON.
"""

from __future__ import annotations

import gc
import io
import json
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from capacity.cli import main
from capacity.database import write_tsv
from capacity.database.io.files.formats import FORMATS
from capacity.errors import CapacityError
from capacity.rank import Certificate, effective_rank_interval, rank_interval
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests import harmful_files, hostile_rdf
from tests.clock import slowness
from tests.harmful import harmful
from tests.hostile_sweeps import bytes_hit, mutate_manifest, mutate_ranks, mutate_table
from tests.oracles import KNOWN_RANKS

SECONDS, MEMORY = 5, 2**30
PLAN = """
[databases]
synthetic = { count = 2, seed = 0, max_triples = 8 }
[layers]
d_model = [1]
n_heads = [1]
d_head_qk = [1]
d_head_vo = [1]
[compute]
engine = "reference"
[recipe]
epochs = 1
"""
# makes a mutated file within a folder; gives the commands, or functions, that are to meet it
Case = Callable[[Path, random.Random], list[Any]]


def certificates(folder: Path) -> Case:
    """Certificates of several kinds and sides, held against the facts that they are about."""
    names = "Example 2.2", "Z/4", "W + W", "matrices 2 x 2 x 2", "diagonal 6"
    kept: list[tuple[Path, list[Certificate]]] = []
    for number, name in enumerate(names):
        db = KNOWN_RANKS[name][0]()
        path = folder / f"{number}.tsv"
        write_tsv(db, path)
        intervals = rank_interval(db, effort="standard"), effective_rank_interval(db)
        kept.append((path, [end for one in intervals for end in one.certificates]))

    def case(_at: Path, rng: random.Random) -> list[Any]:
        facts, ends = rng.choice(kept)
        one = rng.choice(ends)
        text = json.dumps(one.to_dict()).encode()
        match rng.randrange(3):
            case 0:
                text = bytes_hit(b"[" + text + b"]", rng)
            case 1:
                text = b"[" + mutate_manifest(text, rng) * rng.choice((1, 1, 1, 2)) + b"]"
            case _:
                choose = Choices.seeded(rng.randrange(2**32))
                text = json.dumps([mutated(choose, one, others=ends)]).encode()
        path = folder / "c.json"
        path.write_bytes(text)
        return [["verify", str(path), str(facts)]]

    return case


def sweeps(folder: Path) -> Case:
    """A small sweep that is done, one of whose files is hit; it is read, and gone on with."""
    plan, done = folder / "plan.toml", folder / "done"
    plan.write_text(PLAN)
    _run(["sweep", str(plan), "--out", str(done)])
    files = [(done / "manifest.json", mutate_manifest), (done / "runs.parquet", mutate_table)]
    files += [(path, mutate_ranks) for path in done.glob("ranks/*.json")]
    files += [(path, mutate_table) for path in done.glob("shards/*.parquet")]

    def case(at: Path, rng: random.Random) -> list[Any]:
        path, mutate = rng.choice(files)
        out = at / "out"
        shutil.copytree(done, out)
        (out / path.relative_to(done)).write_bytes(mutate(path.read_bytes(), rng))
        return [["grid", str(out), "--json"], ["sweep", str(plan), "--out", str(out), "--json"]]

    return case


def checkpoints(folder: Path) -> Case:
    """A layer whose file is hit."""
    from capacity.layer import AttentionLayer, LayerConfig

    AttentionLayer(LayerConfig(2, 1, 1, 2), 5, seed=0).save(folder)
    data = (folder / "weights.safetensors").read_bytes()
    size = 8 + int.from_bytes(data[:8], "little")

    def case(at: Path, rng: random.Random) -> list[Any]:
        changed = bytes_hit(data, rng)
        if rng.random() < 0.6:
            header = mutate_manifest(data[8:size], rng)
            changed = len(header).to_bytes(8, "little") + header + data[size:]
        at.mkdir()
        (at / "weights.safetensors").write_bytes(changed)
        return [lambda: AttentionLayer.load(at)]

    return case


KINDS = {
    "certificates": certificates,
    "sweeps": sweeps,
    "checkpoints": checkpoints,
    "harmful": harmful,
    **hostile_rdf.KINDS,
}


def _harmful(format: str) -> Callable[[Path], Case]:
    """Files that were made to harm a reader."""
    return lambda folder: harmful_files.cases(format, folder, _run)


# formats of tensors and stores, which aren't registered as those of facts are, and other files
READERS = (*FORMATS, "npy", "tns", "duckdb", "others")
KINDS |= {f"harmful {format}": _harmful(format) for format in READERS}


def _run(command: Any) -> tuple[str, str]:
    """What came of a command or a function, and what it said of it."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            if callable(command):
                command()
                return "answer", ""
            main(command)
        except SystemExit as end:
            text = err.getvalue()
            if end.code in (0, 1):
                return "answer", text
            lines = text.count("\n")
            if end.code == 2 and lines == 1 and text.startswith("capacity: ") and len(text) < 1000:
                return ("memory" if "not enough memory" in text else "line"), text
            return "wrong", f"exit {end.code}: {text}"
        except CapacityError as error:
            one = "\n" not in str(error) and len(str(error)) < 1000
            return ("line" if one else "wrong"), str(error)
        except BaseException:
            return "wrong", traceback.format_exc()
    return "wrong", "no end"


def counted(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Meet n mutated files of a kind; count answers, lines, and what must not be."""
    counts: Counter[str] = Counter(answer=0, line=0)
    slowest, wrong = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        case = KINDS[kind](Path(folder))
        # all that is imported on the way is there now
        for warm in _cases(case, Path(folder), 3, seed + 1):
            _run(warm)
        # nor does the collector of cycles walk through it, which is more than one command imports
        gc.collect()
        gc.freeze()
        limit = _address_space() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for command in _cases(case, Path(folder), n, seed):
            start = time.process_time()
            what, text = _run(command)
            seconds = time.process_time() - start
            slowest = max(slowest, seconds)
            if seconds > SECONDS and seconds > SECONDS * slowness():
                what, text = "slow", f"{seconds:.1f} s: {text}"
            counts[what] += 1
            if what not in ("answer", "line"):
                wrong.append(text[-2000:])
    return {"kind": kind, "files": n, "seed": seed, **counts, "slowest": round(slowest, 2),
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "not_right": wrong[:3]}  # fmt: skip


def _cases(case: Case, folder: Path, n: int, seed: int) -> Iterator[Any]:
    for number in range(n):
        at = folder / "at"
        yield from case(at, random.Random(f"{seed} {number}"))
        shutil.rmtree(at, ignore_errors=True)


def _address_space() -> int:
    """Bytes of it that this process has by now."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    print(json.dumps(counted(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
