"""Dimensions as JSON: what is read back is checked, and what was changed proves no more."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import MODELS, Dimension, dimension, verify_dimension
from capacity.embedding.queries import Task
from capacity.embedding.results.serialization import dimension_from_dict, dimension_to_dict
from capacity.errors import CertificateError
from capacity.rank import Certificate
from tests.tiers import examples

TASKS: tuple[Task, ...] = ("exact", "signs", "ranking", "both-sides")
VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 2**40, -(2**63), 2**70, 0.5, None, True, "x", "", [], {}, [[0]], [0, [0]],
)  # fmt: skip


def through_json(one: Dimension) -> Dimension:
    data = json.loads(json.dumps([rank.to_dict() for rank in one.ranks]))
    found = dimension_from_dict(json.loads(json.dumps(dimension_to_dict(one))))
    return replace(found, ranks=tuple(map(Certificate.from_dict, data)))


def a_graph(rng: np.random.Generator) -> Database:
    every = [*itertools.product(range(4), range(2), range(4))]
    rows = [every[i] for i in rng.permutation(len(every))[: rng.integers(1, 12)]]
    return Database.from_triples([(f"e{s}", f"r{q}", f"e{o}") for s, q, o in rows], multi="keep")


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values within JSON data."""
    inside = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    return [path, *(p for key, value in inside for p in places(value, (*path, key)))]


def changed(rng: np.random.Generator, data: Any) -> Any:
    data = json.loads(json.dumps(data))
    paths = places(data)[1:]
    *front, last = paths[int(rng.integers(len(paths)))]
    inside = data
    for key in front:
        inside = inside[key]
    new = VALUES[int(rng.integers(len(VALUES)))]
    if isinstance(inside[last], int) and rng.random() < 0.7:
        new = inside[last] + int(rng.choice([-1, 1]))
    inside[last] = new
    return data


@pytest.mark.slow
@given(st.integers(0, 2**20))
@settings(max_examples=examples(30))
def test_what_is_read_back_is_what_was_written_and_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    db = a_graph(rng)
    task = TASKS[int(rng.integers(4))]
    names = [name for name, model in MODELS.items() if model.both_sides or task != "both-sides"]
    found = dimension(db, str(rng.choice(names)), task)
    again = through_json(found)
    assert dimension_to_dict(again) == dimension_to_dict(found)
    assert verify_dimension(again, db).proved


@pytest.mark.slow
@given(st.integers(0, 2**20))
@settings(max_examples=examples(20))
def test_what_was_changed_is_refused_or_proves_no_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    db = a_graph(rng)
    model, task = (("CP", "ranking"), ("DistMult", "both-sides"), ("RESCAL", "signs"))[seed % 3]
    found = dimension(db, model, task)  # type: ignore[arg-type]
    data = dimension_to_dict(found)
    for _ in range(15):
        try:
            other = replace(dimension_from_dict(changed(rng, data)), ranks=found.ranks)
            verdict = verify_dimension(other, db)
        except CertificateError:
            continue
        if verdict.proved and (other.model, other.task, other.shared) == (
            model,
            task,
            found.shared,
        ):
            if found.impossible is None:
                assert other.impossible is None
                assert (other.necessary or 0) <= (found.sufficient or 0)
                assert other.sufficient is None or other.sufficient >= (found.necessary or 0)
            else:
                # a reason that is gone proves nothing
                assert other.sufficient is None


@pytest.mark.parametrize("end", ["necessary", "sufficient"])
def test_ends_are_those_of_the_reasons(end: str) -> None:
    data = dimension_to_dict(dimension(Database.from_triples([("a", "r", "b")]), "CP"))
    with pytest.raises(CertificateError, match=end):
        dimension_from_dict({**data, end: 7})


def test_a_long_text_among_integers_takes_no_more_memory_than_it_has() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    data = dimension_to_dict(dimension(db, "CP"))
    # an array of texts has the length of the longest for each of them: 400 GB
    long = {"a": ["x" * 10**6, *[1] * 10**5], "b": [[1]], "c": [[1], [1]]}
    data["witness"] = {"dimension": 1, "factors": long}
    with pytest.raises(CertificateError, match="must hold integers of 64 bits"):
        dimension_from_dict(data)


def test_factors_of_another_form_are_refused() -> None:
    db = Database.from_triples([("A", "k", "B"), ("B", "k", "C"), ("C", "k", "A")])
    data = dimension_to_dict(dimension(db, "TuckER", witness=False))
    del data["necessary"], data["sufficient"]
    wrong: tuple[dict[str, Any], ...] = (
        {"e": [[1], [1], [1]], "w": [1], "W": [[[1]]]},
        {"e": [1, 1, 1], "w": [[1]], "W": [[[1]]]},
        {"e": [[1], [1], [1]], "w": [[1]], "W": [[1]]},
        {"e": [[1], [1], [1]], "w": [[1, 1]], "W": [[[1]]]},
        {"e": [], "w": [], "W": []},
    )
    for factors in wrong:
        found = dimension_from_dict({**data, "witness": {"dimension": 1, "factors": factors}})
        assert not verify_dimension(found, db).proved


@pytest.mark.parametrize("seed", [-1, 2**63, 2**70])
def test_a_seed_that_is_none_is_told(seed: int) -> None:
    data = dimension_to_dict(dimension(Database.from_triples([("a", "r", "b")]), "CP"))
    with pytest.raises(CertificateError, match="seed"):
        dimension_from_dict({**data, "seed": seed})


@pytest.mark.parametrize("data", [None, [], 3, {}, {"format": "capacity certificate 1"}])
def test_what_is_no_dimension_is_told(data: Any) -> None:
    with pytest.raises(CertificateError):
        dimension_from_dict(data)
