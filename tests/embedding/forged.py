"""Honest claims of dimensions, and what numbers may be put into each field of them."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capacity.database import Database
from capacity.embedding import Dimension, Witness, dimension, dimension_from_dict, dimension_to_dict
from capacity.embedding.queries import Task
from capacity.embedding.signs import shattered_points
from capacity.embedding.verifier.checker import Checks
from capacity.errors import CapacityError, MemoryBudgetError
from capacity.rank import Certificate
from capacity.rank.verifier.budget import CheckBudget
from capacity.testing.choices import Choices
from tests.embedding.definitions import does, scores

# at the limits of what indices, 32, 53 and 64 bits hold, and what is no integer at all
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 2, 3, 5, 99, 999_999, -999_999, 2**31 - 1, 2**31, 2**32, -(2**31), 2**53, 2**62,
    2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, True, 0.5, 1.0, 1e300, None, "1",
)  # fmt: skip
Path = tuple[Any, ...]


def graph(facts: Sequence[tuple[int, int, int]], *, separate: bool = True) -> Database:
    """The facts as a database that keeps all of them."""
    other = "o" if separate else "e"
    named = [(f"e{s}", f"r{q}", f"{other}{o}") for s, q, o in facts]
    return Database.from_triples(named, multi="keep")


def leaves(data: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all numbers and of all empty lists within JSON data."""
    if isinstance(data, dict | list):
        inside = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in inside:
            yield from leaves(value, (*path, key))
        return
    if isinstance(data, int | float) and not isinstance(data, bool):
        yield path


def form(path: Path) -> str:
    """The field of a path, without its positions in lists."""
    return ".".join("*" if isinstance(key, int) else key for key in path)


def at(data: Any, path: Path) -> Any:
    """What is at a path."""
    return at(data[path[0]], path[1:]) if path else data


def with_number(data: Any, path: Path, number: Any) -> Any:
    """The data with another number at a path."""
    changed = json.loads(json.dumps(data))
    at(changed, path[:-1])[path[-1]] = number
    return changed


def numbers_for(data: Any, path: Path) -> tuple[Any, ...]:
    """Numbers out of range, near, and equal to others of the same list."""
    old, beside = at(data, path), at(data, path[:-1])
    near = (old + 1, old - 1, -old) if isinstance(old, int) else (-old, old * 1.5)
    equal = [x for x in beside if x != old][:2] if isinstance(beside, list) else []
    return (*NUMBERS, *near, *equal)


def drawn(choose: Choices, data: Any, times: int) -> Any:
    """Data after some changes of numbers and lists, drawn at random; often of a single reason."""
    data = json.loads(json.dumps(data))
    if choose.chance(2, 3):
        # so that no other part refutes it
        data |= {"reasons": [choose.one(data["reasons"])], "estimate": None}
        data["witness"] = data["witness"] if choose.chance(1, 3) else None
    for _ in range(times):
        every = [*leaves(data)]
        forms = sorted({form(path) for path in every})
        if not forms:
            break
        field = choose.one(forms)
        path = choose.one([path for path in every if form(path) == field])
        holder = at(data, path[:-1])
        if isinstance(holder, list) and choose.chance(1, 4):
            match choose.integer(0, 3):
                case 0:
                    holder.append(choose.one(holder))
                case 1:
                    del holder[path[-1]]
                case 2:
                    holder.clear()
                case _:
                    holder[path[-1]] = choose.one(holder)
        else:
            holder[path[-1]] = choose.one(numbers_for(data, path))
    return data


def invented(choose: Choices, data: Any, db: Database, value: int) -> Any:
    """Data with a proof of a value by signs, some of which are of what isn't there.

    The points are shattered if a number that names nothing counts as no answer.
    """
    k, q, v = db.shape
    kind = choose.one(("comparisons", "comparisons", "comparisons", "objects", "queries"))
    D = np.zeros((k + 1, q, v + 1), np.int8)
    D[tuple(db.triples.T)] = 1
    # the last of each is nobody
    of_queries = D[:k].reshape(k * q, v + 1)
    of_queries = np.concatenate([of_queries[of_queries.any(axis=1)], of_queries[:1] * 0])
    points: list[list[int]] = [[i] for i in range(v + 1)]
    signs = 2 * of_queries - 1
    if kind == "queries":
        points, signs = [[i] for i in range(len(of_queries))], signs.T
    elif kind == "comparisons":
        points = [[r, a, b] for r in range(q) for a in range(v + 1) for b in range(v + 1) if a != b]
        signs = np.stack([D[:, r, a] - D[:, r, b] for r, a, b in points], axis=1)
    chosen, rows = shattered_points(signs, seed=choose.seed())
    nobody = choose.one((999_999, -1, 2**40))
    numbers = {len(of_queries) - 1 if kind == "queries" else v: nobody}
    named = [[*point[:-2], *(numbers.get(i, i) for i in point[-2:])] for point in
             (points[j] for j in chosen.tolist())]  # fmt: skip
    proof = {
        "kind": choose.one(("shattered", "shattered", "shattered", "small norm")),
        "of": kind,
        "points": named if kind == "comparisons" else [point for (point,) in named],
        "rows": rows.tolist(),
        "dimension": choose.integer(1, 2),
    }
    reason = {"side": "necessary", "value": value, "words": "", "certificate": proof}
    return {**json.loads(json.dumps(data)), "reasons": [reason], "witness": None, "estimate": None}


def read(data: Any, ranks: tuple[Certificate, ...]) -> Dimension | None:
    """The claim of JSON data, if it has the form of one."""
    try:
        found = dimension_from_dict(json.loads(json.dumps(data)))
    except CapacityError:
        return None
    return replace(found, ranks=ranks)


def written(found: Dimension) -> Any:
    """A claim as JSON data, without the ends, which follow."""
    data = json.loads(json.dumps(dimension_to_dict(found)))
    del data["necessary"], data["sufficient"]
    return data


def cube(n_relations: int) -> list[tuple[int, int, int]]:
    """Subjects with all patterns of two answers, one in each relation.

    Comparisons of the two answers, one in each relation, are shattered: scores that are linear in
    the n numbers of a subject, as those of CP, rank it with n dimensions at least.
    """
    answers = itertools.product((0, 1), repeat=n_relations)
    return [(s, q, o) for s, row in enumerate(answers) for q, o in enumerate(row)]


SHAPES: dict[str, dict[str, str]] = {
    "linear": {"h": "md", "e": "vd"},
    "CP": {"a": "kd", "b": "qd", "c": "vd"},
    "DistMult": {"e": "nd", "w": "qd"},
    "ComplEx": {"x": "nd", "y": "nd", "u": "qd", "v": "qd"},
    "SimplE": {"a": "nd", "b": "nd", "v": "qd", "w": "qd"},
    "RESCAL": {"e": "nd", "W": "qdd"},
    "TuckER": {"e": "nd", "w": "qr", "W": "rdd"},
}


def of_dimension(
    choose: Choices, model: str, d: int, task: Task, *, shared: bool
) -> tuple[Database, Witness] | None:
    """A graph that a model of dimension d ranks, or has the signs of; None if its scores are equal.

    The facts are read off the scores of random factors, by the definitions.
    """
    rng = np.random.default_rng(choose.seed())
    k, q, v = choose.integer(2, 8), choose.integer(1, 4), choose.integer(2, 4)
    k, v = (k + v, k + v) if shared else (k, v)
    sizes = {"k": k, "q": q, "v": v, "n": k if shared else k + v, "m": k * q, "d": d, "r": 2}
    factors = {
        name: rng.integers(-9, 10, [sizes[of] for of in shape])
        for name, shape in SHAPES[model].items()
    }
    if model == "linear":
        T = (factors["h"] @ factors["e"].T).reshape(k, q, v)
    else:
        T = scores(model, factors, np.zeros((k, q, v)), shared=shared)
    D = T > 0
    if task == "ranking":
        # some of the highest of each query; a query may have none
        D = np.zeros(T.shape, bool)
        for s, r in np.ndindex(k, q):
            order, n = np.argsort(-T[s, r].astype(int), kind="stable"), choose.integer(0, 2)
            D[s, r, order[: min(n, v - 1)]] = True
    if not D.any() or not does(T, D, task):
        return None
    other = "e" if shared else "o"
    named = [(f"e{s:02}", f"r{r:02}", f"{other}{o:02}") for s, r, o in np.argwhere(D).tolist()]
    db = Database.from_triples(named, multi="keep")
    return db, Witness(model, d, _of_the_named(model, factors, db, D, task, shared=shared))


def _of_the_named(
    model: str,
    factors: Mapping[str, np.ndarray],
    db: Database,
    D: np.ndarray,
    task: Task,
    *,
    shared: bool,
) -> dict[str, np.ndarray]:
    """The rows of factors of what has a fact, in the order of the database's numbers."""
    k, q, _ = D.shape
    subjects, relations, objects = (
        np.array([int(db.name(db.tokens[i])[1:]) for i in ids]) for ids in db.role_ids
    )
    ids = np.unique(np.concatenate([db.role_ids[0], db.role_ids[2]]))
    entities = np.array([int(db.name(db.tokens[i])[1:]) for i in ids])
    rows = {"k": subjects, "q": relations, "v": objects}
    if shared:
        rows |= {"n": entities, "k": entities, "v": entities}
    else:
        rows["n"] = np.concatenate([subjects, k + objects])
    pairs = [(s, r) for s in rows["k"] for r in relations]
    if task == "ranking":
        pairs = [(s, r) for s, r in pairs if D[s, r][rows["v"]].any()]
    rows["m"] = np.array([s * q + r for s, r in pairs])
    return {
        name: x[rows[SHAPES[model][name][0]]] if SHAPES[model][name][0] != "r" else x
        for name, x in factors.items()
    }


def above_the_cube(choose: Choices, n: int) -> Database:
    """The cube, with queries of other subjects and relations, and with other objects."""
    rows = {*cube(n)}
    for _ in range(choose.integer(0, 12)):
        s, q, o = choose.integer(0, 2**n + 2), choose.integer(0, n + 1), choose.integer(0, 4)
        # an answer more would take a pattern away
        if s >= 2**n or q >= n:
            rows.add((s, q, o))
    return graph(sorted(rows))


def trial(seed: int, claims: int) -> dict[str, Any]:
    """Mutated claims about a graph of known dimension: how many are proved, and which are false.

    Of half of the graphs an explicit model is known, so that a proved lower bound above its
    dimension is false, and so is the proof that no dimension does. The others have a cube within:
    restricted to it, every model whose scores are linear in the numbers of a subject needs as many
    dimensions as relations, so that a proved upper bound below is false.
    """
    choose = Choices.seeded(seed)
    task: Task = choose.one(("ranking", "signs", "both-sides"))
    shared, model = choose.chance(1, 2), choose.one([*SHAPES])
    most, least, witness = math.inf, 1, None
    if choose.chance(1, 2):
        d = choose.one((1, 1, 2, 3))
        task = "signs" if task == "both-sides" else task
        made = None
        while made is None:
            made = of_dimension(choose, model, d, task, shared=shared)
        (db, witness), most = made, d
    else:
        n = choose.integer(2, 4)
        model = choose.one([name for name in SHAPES if name != "linear"])
        db, shared = above_the_cube(choose, n), False
        least = -(-n // 2) if model in ("ComplEx", "SimplE") else n
    found = dimension(db, model, task, shared=shared, witness=False)
    found = replace(found, witness=witness)
    checks = Checks(db, CheckBudget(10**11))
    counts: Counter[str] = Counter(claims=claims, graphs=1)
    wrong: list[Any] = []
    if not checks.verdict(found) or not least <= (found.sufficient or math.inf):
        wrong.append({"seed": seed, "honest": written(found)})
    for _ in range(claims):
        data = written(found)
        if choose.chance(1, 2):
            value = choose.one((1, int(min(most, found.necessary or 1)) + 1))
            data = invented(choose, data, db, value)
        else:
            data = drawn(choose, data, choose.integer(1, 3))
        claim = read(data, found.ranks)
        counts["read"] += claim is not None
        if claim is not None:
            beyond = (claim.necessary or 1) > most or (claim.sufficient or math.inf) < least
            counts["beyond what is known"] += beyond
        try:
            proved = claim is not None and checks.verdict(claim).proved
        except MemoryBudgetError:
            counts["too costly"] += 1
            continue
        if claim is None or not proved:
            continue
        counts["proved"] += 1
        lower, upper = claim.necessary or 1, claim.sufficient or math.inf
        impossible = claim.impossible is not None and most < math.inf
        counts["tight"] += lower == most or upper == least > 1
        if lower > most or upper < least or impossible:
            wrong.append({"seed": seed, "claim": data, "most": most, "least": least})
    return {"counts": dict(counts), "wrong": wrong}
