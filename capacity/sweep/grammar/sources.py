"""Sources of a sweep's databases, which are counted before any database is drawn or read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from capacity.checks import shown
from capacity.database.choosing.selection import Selection
from capacity.database.facts import Database
from capacity.database.io.readers import load
from capacity.database.made.synthetic import random_database
from capacity.display import briefly_shown
from capacity.errors import CapacityError, InvalidArgumentError, SweepError
from capacity.sweep.grammar.sections import DatabaseFile, Databases, Subset, Synthetic
from capacity.sweep.grammar.values import read_section, require_at_most

MOST_DATABASES = 100_000
# cells, or objects, of one random database, which is drawn before its facts are counted
MOST_CELLS = 1_000_000
DEFAULT_TRIPLES = (4, 200)


@briefly_shown
@dataclass(frozen=True)
class Source:
    """Number of databases, and a function that yields them with their names."""

    count: int
    draw: Callable[[], Iterator[tuple[str, Database]]]


def sources_of(options: Any, folder: Path, digests: dict[str, str]) -> list[Source]:
    """Read the section ``[databases]``, but none of its files.

    Parameters
    ----------
    options : mapping
        Content of the section.
    folder : Path
        Where files are looked up that are not in the current folder.
    digests : dict
        Receives the SHA-256 of each file when it is read.

    Returns
    -------
    list of Source
        One per table of `synthetic` and of `files`.

    Raises
    ------
    SweepError
        If the section breaks a rule of `capacity.sweep.grammar.sections`, or asks for too many
        databases.
    """
    section = read_section(Databases, options, "[databases]")
    synthetic = section.synthetic if isinstance(section.synthetic, list) else [section.synthetic]
    if not isinstance(section.files, list | tuple):
        raise SweepError(
            f"`files` in [databases] must be a list of tables; got {shown(section.files)}."
        )
    sources = [_synthetic(one) for one in synthetic if one != ()]
    sources += [_from_file(one, folder, digests) for one in section.files]
    if not sources:
        raise SweepError("[databases] must hold `synthetic` or at least one of `files`.")
    total = sum(source.count for source in sources)
    require_at_most(MOST_DATABASES, total, "[databases]", "databases")
    return sources


def drawn(sources: Iterable[Source]) -> list[tuple[str, Database]]:
    """Draw all databases with their names; databases with the same facts count once.

    Raises
    ------
    SweepError
        If a database can't be drawn, or isn't functional.
    DatabaseFormatError
        If a file can't be read.
    """
    named = [pair for source in sources for pair in source.draw()]
    unique = {db.facts_sha256: (name, db) for name, db in reversed(named)}
    return [(f"{name}-{db.facts_sha256[:8]}", db) for name, db in reversed(list(unique.values()))]


def _synthetic(options: Any) -> Source:
    where = "`synthetic` of [databases]"
    asked = read_section(Synthetic, options, where)
    if asked.triples is not None and asked.max_triples is not None:
        raise SweepError(
            f"{where} must have `triples` or `max_triples`, not both; got {asked.triples} and "
            f"{asked.max_triples}."
        )
    cells = asked.tables[1] * asked.subjects[1] * asked.predicates[1] * max(1, asked.pool[1])
    require_at_most(MOST_CELLS, math.ceil(cells), where, "cells or objects a database")
    most = asked.max_triples or DEFAULT_TRIPLES[1]
    sizes = {each.name: getattr(asked, each.name) for each in fields(asked)
             if each.name not in ("count", "seed", "max_triples")}  # fmt: skip
    sizes["triples"] = asked.triples or (DEFAULT_TRIPLES[0], most)

    def draw() -> Iterator[tuple[str, Database]]:
        for i in range(asked.count):
            rng = np.random.default_rng([asked.seed, i])
            try:
                yield f"synthetic-{asked.seed}-{i}", random_database(rng, **sizes)
            except InvalidArgumentError as error:
                raise SweepError(f"in {where}: {error}") from None

    return Source(asked.count, draw)


def _from_file(options: Any, folder: Path, digests: dict[str, str]) -> Source:
    where = "[[databases.files]]"
    asked = read_section(DatabaseFile, options, where)
    criteria = _criteria(asked, where)
    count, parts = _subsets(asked.subset, f"`subset` of {where}")

    def read() -> Iterator[tuple[str, Database]]:
        path = _found(Path(asked.path), folder)
        db = load(path, multi=asked.multi, graph=asked.graph, **criteria)
        if db.source is not None:
            digests[asked.path] = db.source.sha256
        if not db.is_functional:
            raise SweepError(
                f"{path} must be functional to train on; under `{asked.multi}` "
                f"{db.n_multi_valued_pairs} of {db.n_pairs} pairs have several objects. Choose "
                f"another `multi` in {where}."
            )
        for name, part in parts(path, db):
            yield name, replace(part, selected=db.selected)

    return Source(count, read)


def _criteria(asked: DatabaseFile, where: str) -> dict[str, Any]:
    """Return the criteria by which facts of a file are selected, as keywords of `load`."""
    given = {each.name: getattr(asked, each.name) for each in fields(Selection)}
    try:
        return Selection(**{name: v for name, v in given.items() if v is not None}).options()
    except CapacityError as error:
        raise SweepError(f"in {where}: {error}") from None


def _found(path: Path, folder: Path) -> Path:
    """Path of a file, beside the plan if it exists only there."""
    try:
        return folder / path if not path.exists() and (folder / path).exists() else path
    except (OSError, ValueError):
        # not a valid file name; reading it raises the error
        return path


_Parts = Callable[[Path, Database], Iterator[tuple[str, Database]]]


def _subsets(options: Any, where: str) -> tuple[int, _Parts]:
    """Number of databases drawn from a file, and the function that does; by default the whole."""
    if options is None:
        return 1, lambda path, db: iter([(path.stem, db)])
    asked = read_section(Subset, options, where)

    def draw(path: Path, db: Database) -> Iterator[tuple[str, Database]]:
        for i in range(asked.count):
            try:
                part = db.sample_subjects(asked.subjects, np.random.default_rng([asked.seed, i]))
            except ValueError as error:
                raise SweepError(f"in {where}, {path}: {error}") from None
            yield f"{path.stem}-{asked.subjects}-{asked.seed}-{i}", part

    return asked.count, draw
