"""Sections of a sweep's file, apart from the dataclasses of `capacity.layer`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from capacity.database.choosing.selection import KeepOrDrop
from capacity.database.policy import MultiPolicy
from capacity.layer.run.starts import Until

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
        the policy, and ``--dry-run`` tells what each omits.
    predicates, exclude : list of str
        The only predicates to keep, and those to drop: IRIs, prefixed names, local names or labels.
    namespaces : list of str
        The only namespaces of predicates to keep, or prefixes of the file.
    types : list of str
        The only classes of subjects to keep, by ``rdf:type``.
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
