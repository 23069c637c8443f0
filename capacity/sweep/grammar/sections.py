"""Sections of a sweep's file, apart from the dataclasses of `capacity.layer`, and its databases.

The databases are counted before any of them is drawn or read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from capacity.checks import shown
from capacity.database.choosing.selection import KeepOrDrop, Selection
from capacity.database.facts import Database
from capacity.database.io.readers import load
from capacity.database.made.synthetic import random_database
from capacity.database.policy import MultiPolicy
from capacity.display import briefly_shown
from capacity.errors import CapacityError, InvalidArgumentError, SweepError
from capacity.layer.run.recipe import Until
from capacity.sweep.grammar.values import read_section, require_at_most

# least and most, both allowed
Integers: TypeAlias = tuple[int, int]
Reals: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Databases:
    """Databases to train on, at least one; databases with the same facts count once.

    Parameters
    ----------
    synthetic : table, or list of tables
        Random databases; the keys are listed below.
    files : list of tables
        Databases read from files; the keys of each are listed below.
    """

    synthetic: Any = ()
    files: Any = ()


@dataclass(frozen=True)
class Synthetic:
    """Random databases of a few tables, all of whose cells are filled (`random_database`).

    Parameters
    ----------
    count : int
        Number of databases.
    seed : int
        Seed of the draw; each database depends only on this seed, its index and these sizes.
    max_triples : int
        Largest number of facts: short for ``triples = [4, max_triples]``, and 200 if both are
        omitted.
    triples : [int, int]
        Least and largest number of facts; databases outside this range are drawn again.
    tables : [int, int]
        Least and largest number of tables.
    subjects : [int, int]
        Least and largest number of subjects in a table.
    predicates : [int, int]
        Least and largest number of predicates in a table.
    pool : [float, float]
        Least and largest size of the pool that a predicate's objects are drawn from, as a multiple
        of the table's number of subjects.
    shared_pool : float
        Probability that a predicate shares the pool of the one before it.
    chained : float
        Probability that a later table's subjects are objects of the table before it.
    """

    count: int = field(metadata={"least": 1})
    seed: int = field(default=0, metadata={"least": 0})
    max_triples: int | None = field(default=None, metadata={"least": 4})
    triples: Integers | None = field(default=None, metadata={"least": 1})
    tables: Integers = field(default=(1, 4), metadata={"least": 1})
    subjects: Integers = field(default=(2, 15), metadata={"least": 1})
    predicates: Integers = field(default=(1, 8), metadata={"least": 1})
    pool: Reals = field(default=(0.4, 1.0), metadata={"least": 0, "most": 1000})
    shared_pool: float = field(default=0.3, metadata={"least": 0, "most": 1})
    chained: float = field(default=0.5, metadata={"least": 0, "most": 1})


@dataclass(frozen=True)
class DatabaseFile:
    """Facts of a file: RDF or a table, as `capacity.load` reads them.

    Parameters
    ----------
    path : str
        Path of the file, looked up in the current folder, then beside the sweep's file.
    multi : {'keep', 'error', 'first', 'majority', 'set', 'drop-pair', 'drop-predicate'}
        Policy for (subject, predicate) pairs with several objects; the result must be functional.
    graph : str
        Graph of an RDF dataset: its IRI, prefixed or blank name, or ``default``; by default the
        union of all.
    schema, literals, annotations, blank_nodes : {'keep', 'drop'}
        Facts of that kind, as `Selection` has it. All criteria that select facts are applied before
        the policy, and ``--dry-run`` prints what each omits.
    predicates, exclude : list of str
        The only predicates to keep, and those to drop: IRIs, prefixed names, local names or labels.
    namespaces : list of str
        The only namespaces of predicates to keep, or prefixes of the file.
    types : list of str
        The only classes of subjects to keep, by ``rdf:type``.
    fold : list of str
        What is folded to facts before: ``lists``, ``restrictions``, ``statements``.
    subset : table
        Random subsets of the subjects, in place of the whole file; the keys are listed below.
    """

    path: str
    multi: MultiPolicy = "error"
    graph: str | None = None
    schema: KeepOrDrop = "keep"
    literals: KeepOrDrop = "keep"
    annotations: KeepOrDrop = "keep"
    blank_nodes: KeepOrDrop = "keep"
    predicates: list[str] | None = None
    exclude: list[str] | None = None
    namespaces: list[str] | None = None
    types: list[str] | None = None
    fold: list[str] | None = None
    subset: Any = None


@dataclass(frozen=True)
class Subset:
    """Databases of the facts about randomly drawn subjects.

    Parameters
    ----------
    subjects : int
        Number of subjects in each database.
    seed : int
        Seed of the draw.
    count : int
        Number of databases.
    """

    subjects: int = field(metadata={"least": 1})
    seed: int = field(default=0, metadata={"least": 0})
    count: int = field(default=1, metadata={"least": 1})


@dataclass(frozen=True)
class Runs:
    """Runs to train: each seed and each recipe for every chosen pair of a database and a layer.

    Parameters
    ----------
    pairs : int
        Number of (database, layer) pairs, drawn at random; all of them if omitted.
    seed : int
        Seed of that draw, and of the runs if `seeds` is omitted.
    seeds : list of int
        Seeds of the runs, from which initial weights and the order of facts are drawn.
    taus : list of float
        Thresholds beyond 0.75, 0.95 and 0.99, strictly between 0.5 and 1; each adds columns for
        its accuracy and scale, as 0.999 adds ``accuracy_p999`` and ``scale_p999``.
    starts : int
        Largest number of random starts of each run. The run's row describes the first that holds
        the database, or else the best; ``share_of_starts`` is the share of those that hold it.
    until : {'all', 'held'}
        'held': no further start after the first that holds the database.
    held_at : float, or 'argmax' or 'argmax_paper'
        Threshold at which a start must recall every fact to hold the database.
    """

    pairs: int | None = field(default=None, metadata={"least": 1})
    seed: int = field(default=0, metadata={"least": 0})
    seeds: list[int] | None = field(default=None, metadata={"least": 0})
    taus: list[float] = field(default_factory=list[float])
    starts: int = field(default=1, metadata={"least": 1})
    until: Until = "all"
    held_at: Any = 0.95


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
