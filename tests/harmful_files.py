"""Files of a few kilobytes that stand for gigabytes, or for work without an end, for each reader.

Each kind of them is made for each registered format, so that a reader without one is found out
(`tests/test_reading_limits.py`). They are written in a stream, and met by the commands.
"""

from __future__ import annotations

import bz2
import lzma
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.database.ways import read_by
from tests.formats import Text, texts
from tests.harmful_binaries import MADE, MEGA, array, packed, stored, table
from tests.oracles import ROOT

Case = Callable[[Path, random.Random], list[Any]]
# of tensors, beside those of facts
TEXTS = {**texts(), "tns": Text("1 1 1 %s\n")}


# kinds of files of every text: what it grows to, how many rows it has, how long a term is
KINDS: dict[str, Callable[[Text, Path], None]] = {
    "blanks": lambda _, path: packed(path, repeat(b" " * MEGA, 400)),
    "empty lines": lambda _, path: packed(path, repeat(b"\n" * MEGA, 400)),
    "rows": lambda text, path: packed(path, text.rows(3 * MEGA)),
    "as many rows as may be": lambda text, path: packed(path, text.rows(245_000)),
    "a term": lambda text, path: packed(path, text.rows(1, "1" * (60 * MEGA))),
    "long terms": lambda text, path: packed(path, text.rows(40, "1" * (10 * MEGA))),
}


def kinds_of(format: str) -> dict[str, Callable[[Path], None]]:
    """The harmful files of a format, by their kind."""
    if format in MADE:
        return MADE[format]
    text = TEXTS[format]

    def of(make: Callable[[Text, Path], None]) -> Callable[[Path], None]:
        return lambda path: make(text, path)

    return {kind: of(make) for kind, make in KINDS.items()}


def path_of(folder: Path, format: str) -> Path:
    """Where a file of a format goes: its name tells the format."""
    packs = ".gz" if format in TEXTS or format == "npy" else ""
    return folder / f"harmful.{format}{packs}"


def commands(path: Path, format: str) -> list[list[str]]:
    """The commands that read it."""
    options = ["--format", format] if format in TEXTS else []
    options += ["--multi", "keep"] if format not in ("npy", "tns", "duckdb") else []
    found = [["rank", str(path), *options]]
    if format not in ("npy", "tns", "duckdb"):
        found.append([*found[0], "--out-of-core"])
    if format == "duckdb":
        found.append([*found[0], "--views"])
    return found


# files of no kind of their own, as the report has them: what makes each, and the command
OTHERS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "facts of order 16": (
        lambda folder: (folder / "a.tsv").write_text(
            "".join("\t".join(f"{row}{i}" for i in range(16)) + "\n" for row in "ab")
        ),
        ["rank", "a.tsv", "--arity", "16", "--effective"],
    ),
    "a line of order 32": (
        lambda folder: (folder / "a.tns").write_text("1 " * 33),
        ["rank", "a.tns", "--effective"],
    ),
    "lines of order 18": (
        lambda folder: (folder / "a.tns").write_text(
            "".join(" ".join(str(1 + (i * j) % 3) for i in range(18)) + " 1\n" for j in range(9))
        ),
        ["rank", "a.tns"],
    ),
    "an array of order 14": (
        lambda folder: np.save(folder / "a.npy", np.eye(2**7, dtype=np.int8).reshape((2,) * 14)),
        ["rank", "a.npy", "--effective"],
    ),
    "cells of one row": (
        lambda folder: packed(folder / "a.tsv.gz", repeat(b"\t" * MEGA, 60)),
        ["rank", "a.tsv.gz"],
    ),
    "cells of one row in a stream": (
        lambda folder: packed(folder / "a.tsv.gz", repeat(b"\t" * MEGA, 60)),
        ["rank", "a.tsv.gz", "--out-of-core"],
    ),
    "objects of one subject": (
        lambda folder: packed(
            folder / "a.ttl.gz", chain([b"<x:a><x:b> 1"], repeat(b",1" * (MEGA // 2), 60), [b"."])
        ),
        ["rank", "a.ttl.gz"],
    ),
    "values of JSON": (
        lambda folder: packed(
            folder / "a.jsonld.gz", chain([b"["], repeat(b"{}," * (MEGA // 3), 60), [b"{}]"])
        ),
        ["rank", "a.jsonld.gz"],
    ),
    "blanks by xz": (
        lambda folder: (folder / "a.nt.xz").write_bytes(lzma.compress(b" " * (300 * MEGA))),
        ["rank", "a.nt.xz"],
    ),
    "blanks by bzip2": (
        lambda folder: (folder / "a.nt.bz2").write_bytes(bz2.compress(b" " * (100 * MEGA))),
        ["rank", "a.nt.bz2"],
    ),
}


def cases(format: str, folder: Path, warm: Callable[[Any], object]) -> Case:
    """The harmful files of a format, or the others; before any limit small ones are read."""
    # made by another process, which keeps the memory that they take
    made = [sys.executable, "-m", "tests.harmful_files", format, str(folder)]
    subprocess.run(made, cwd=ROOT, check=True)
    for name in ("turtle", "tsv", "ntriples") if format == "others" else (format,):
        small = folder / name
        small.mkdir()
        # also what is compiled for longer files alone
        with read_by("compiled"):
            for command in commands(_small(small, name), name):
                warm(command)
    kinds = cycle(_held(format, folder))
    return lambda _at, _rng: next(kinds)


def _held(format: str, folder: Path) -> list[list[list[str]]]:
    """The commands for each file of a format, which is in a folder of its own."""
    if format == "others":
        return [
            [[command[0], str(folder / f"{number}" / command[1]), *command[2:]]]
            for number, (_, command) in enumerate(OTHERS.values())
        ]
    numbers = range(len(kinds_of(format)))
    return [commands(path_of(folder / f"{number}", format), format) for number in numbers]


def make_all(format: str, folder: Path) -> None:
    """Make all harmful files of a format, or the others, each in a folder of its own."""
    if format == "others":
        makes: list[Callable[[Path], object]] = [make for make, _ in OTHERS.values()]
    else:
        makes = list(kinds_of(format).values())
    for number, make in enumerate(makes):
        at = folder / f"{number}"
        at.mkdir()
        make(at if format == "others" else path_of(at, format))


def _small(folder: Path, format: str) -> Path:
    """A file without harm, so long that compiled code reads it where there is any."""
    path = path_of(folder, format)
    if format == "npy":
        packed(path, [array("(1, 1)"), b"\1" * 8])
    elif format in TEXTS:
        packed(path, TEXTS[format].rows(*((4, "1") if format == "tns" else (200_000, "1" * 64))))
    elif format == "parquet":
        table(path, [pa.array([c]) for c in "apx"])
    else:
        stored(path, "create table t as select 'a' s, 'p' p, 'x' o")
    return path


if __name__ == "__main__":
    make_all(sys.argv[1], Path(sys.argv[2]))
