"""Random databases: tables like those of the paper's experiments, and facts without structure.

The paper states sizes (548 databases of at most 200 triples) and one ratio (about 1.8 triples per
unit of the bound of Proposition 2.1, its Figure 2a), but not its generator. The generator here
reproduces the ratio (slope 1.83 to 1.85), which depends on the size of the object pools.

References
----------
Wong 2025, section 4 and Figure 2a.
"""

from __future__ import annotations

import numpy as np

from capacity.checks import MAX_SIZE, Seed, generator, require_integer, shown
from capacity.database.facts import Database
from capacity.database.terms.term import label
from capacity.errors import InvalidArgumentError

# cells, or objects, of one database, which is drawn before its facts are counted
MOST_CELLS = 100_000_000


def random_database(
    seed: Seed,
    *,
    tables: tuple[int, int] = (1, 4),
    subjects: tuple[int, int] = (2, 15),
    predicates: tuple[int, int] = (1, 8),
    pool: tuple[float, float] = (0.4, 1.0),
    shared_pool: float = 0.3,
    chained: float = 0.5,
    triples: tuple[int, int] = (4, 200),
) -> Database:
    """Draw a functional database of a few tables; every cell of a table is filled.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Seed of the draw.
    tables, subjects, predicates : (int, int)
        Smallest and largest number of tables, of subjects per table and of predicates per table.
    pool : (float, float)
        Range of u: a predicate's objects are drawn from a pool of u n_subjects tokens, where u is
        uniform and n_subjects is the table's number of subjects.
    shared_pool : float
        Probability that a predicate shares the pool of the one before it.
    chained : float
        Probability that a later table's subjects are objects of the table before it.
    triples : (int, int)
        Smallest and largest number of triples; other draws are rejected.

    Returns
    -------
    Database
        Over the labels s0, s1, ... (subjects), p0, ... (predicates), o0, ... (objects).

    Raises
    ------
    InvalidArgumentError
        If no database has these sizes, or none of 10,000 draws has.

    Examples
    --------
    >>> random_database(0).is_functional
    True
    >>> random_database(0) == random_database(0)
    True
    """
    sizes = {"tables": tables, "subjects": subjects, "predicates": predicates, "pool": pool}
    for name, ends in sizes.items():
        if len(ends) != 2 or not 0 <= ends[0] <= ends[1]:
            raise InvalidArgumentError(
                f"`{name}` must be the least and the largest number, not negative; got "
                f"{shown(ends)}."
            )
    if tables[1] * subjects[1] * predicates[1] * max(1, pool[1]) > MOST_CELLS:
        raise InvalidArgumentError(
            f"A database is drawn before its facts are counted, so its tables may have at most "
            f"{MOST_CELLS:,} cells or objects; got tables of up to {shown(tables[1])} x "
            f"{shown(subjects[1])} x {shown(predicates[1])}."
        )
    smallest = tables[0] * (min(subjects[0], 1) if chained else subjects[0]) * predicates[0]
    largest = tables[1] * subjects[1] * predicates[1]
    if largest < triples[0] or smallest > triples[1] or triples[0] > triples[1]:
        raise InvalidArgumentError(
            f"`triples` must overlap the sizes of the tables, {smallest}..{largest}; got "
            f"{triples}. Change one of them."
        )
    rng = generator(seed)
    for _ in range(10_000):
        rows = _draw(rng, tables, subjects, predicates, pool, shared_pool, chained)
        if triples[0] <= len(rows) <= triples[1]:
            return Database.from_triples(
                [tuple(label(cell) for cell in row) for row in rows], multi="error"
            )
    raise InvalidArgumentError(
        f"None of 10,000 draws had {triples[0]}..{triples[1]} triples; widen `triples`."
    )


def _draw(
    rng: np.random.Generator,
    tables: tuple[int, int],
    subjects: tuple[int, int],
    predicates: tuple[int, int],
    pool: tuple[float, float],
    shared_pool: float,
    chained: float,
) -> list[tuple[str, str, str]]:
    def between(bounds: tuple[int, int]) -> int:
        return int(rng.integers(bounds[0], bounds[1] + 1))

    counts = {"s": 0, "p": 0, "o": 0}

    def fresh(kind: str, n: int) -> list[str]:
        names = [f"{kind}{counts[kind] + i}" for i in range(n)]
        counts[kind] += n
        return names

    rows: list[tuple[str, str, str]] = []
    previous: list[str] = []
    for _ in range(between(tables)):
        n_subjects, n_predicates = between(subjects), between(predicates)
        if previous and rng.random() < chained:
            table_subjects = [str(o) for o in rng.permutation(previous)[:n_subjects]]
        else:
            table_subjects = fresh("s", n_subjects)
        objects: list[str] = []
        seen: dict[str, None] = {}
        for q in fresh("p", n_predicates):
            if not objects or rng.random() >= shared_pool:
                objects = fresh("o", max(1, round(rng.uniform(*pool) * len(table_subjects))))
            for k in table_subjects:
                v = objects[rng.integers(len(objects))]
                rows.append((k, q, v))
                seen[v] = None
        previous = list(seen)
    return rows


def uniform_database(
    seed: Seed, *, subjects: int, predicates: int, objects: int, triples: int, shared: int = 0
) -> Database:
    """Draw a functional database without structure, of the given numbers.

    It is the control for a database of the same shape: its pairs and their objects are drawn
    evenly, but for the facts that let every subject, predicate and object occur.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Seed of the draw.
    subjects, predicates, objects, triples : int
        Number of each; all occur.
    shared : int
        Number of objects that are subjects, too.

    Returns
    -------
    Database
        Over the labels s0, s1, ... (subjects), p0, ... (predicates), o0, ... (objects).

    Raises
    ------
    InvalidArgumentError
        If no functional database has these numbers.

    Examples
    --------
    >>> uniform_database(0, subjects=5, predicates=3, objects=4, triples=12, shared=2)
    Database(12 triples: 5 subjects x 3 predicates x 4 objects, 10 tokens; functional)
    """
    given = {"subjects": subjects, "predicates": predicates, "objects": objects}
    shape = [require_integer(name, value, most=MAX_SIZE) for name, value in given.items()]
    n = require_integer("triples", triples)
    n_pairs = shape[0] * shape[1]
    if not max(shape) <= n <= n_pairs:
        raise InvalidArgumentError(
            "`triples` must be at least each number of subjects, predicates and objects, for all "
            f"occur, and at most the number of pairs, {n_pairs:,}; got {n:,} for {shape}."
        )
    both = require_integer("shared", shared, least=0, most=min(shape[0], shape[2]))
    rng = generator(seed)
    # the first facts have every subject and every predicate; one of both runs through once, so
    # that no pair comes twice
    first = np.arange(max(shape[:2]))
    covering = rng.permutation(shape[0])[first % shape[0]] * shape[1]
    covering += rng.permutation(shape[1])[first % shape[1]]
    drawn = rng.choice(n_pairs, size=n, replace=False)
    others = drawn[~np.isin(drawn, covering)]
    pairs = np.concatenate([covering, others[: n - len(first)]])
    values = np.concatenate([np.arange(shape[2]), rng.integers(shape[2], size=n - shape[2])])
    names = [f"s{v}" if v < both else f"o{v}" for v in range(shape[2])]
    rows = zip(pairs // shape[1], pairs % shape[1], rng.permutation(values), strict=True)
    return Database.from_triples(
        [(label(f"s{k}"), label(f"p{q}"), label(names[v])) for k, q, v in rows], multi="error"
    )
