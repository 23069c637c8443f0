import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity.database import random_database, uniform_database
from capacity.errors import InvalidArgumentError
from capacity.rank import paper_bound


def test_triples_are_1_8_times_the_papers_bound() -> None:
    # Figure 2a: "approximately 1.8 times"; slope through the origin over the paper's 548 databases
    sizes = np.array([(paper_bound(db), db.n_triples) for db in map(random_database, range(548))])
    bound, triples = sizes.T
    slope = (bound * triples).sum() / (bound**2).sum()
    # the slope's standard error over databases is below 0.01
    assert 1.80 < slope < 1.88


def test_databases_are_functional_and_within_their_sizes() -> None:
    for seed in range(50):
        db = random_database(seed, triples=(10, 40))
        assert db.is_functional
        assert 10 <= db.n_triples <= 40


@pytest.mark.slow
def test_half_of_the_later_tables_chain() -> None:
    # two tables: chained exactly if some token is both object and subject
    chained = [
        bool(set(db.subject_ids) & set(db.object_ids))
        for db in (random_database(s, tables=(2, 2)) for s in range(200))
    ]
    # binomial(200, 1/2): five standard deviations are 35
    assert 65 <= sum(chained) <= 135


def test_sizes_that_exclude_each_other_are_refused() -> None:
    for triples in ((10_000, 20_000), (10, 5)):
        with pytest.raises(ValueError, match="must overlap"):
            random_database(0, triples=triples)
    # two subjects and one to three predicates: 2, 4 or 6 triples
    with pytest.raises(ValueError, match="10,000 draws"):
        random_database(0, tables=(1, 1), subjects=(2, 2), predicates=(1, 3), triples=(5, 5))


@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_uniform_database_has_the_numbers_that_were_asked_for(data: st.DataObject) -> None:
    subjects, predicates, objects = (data.draw(st.integers(1, 9)) for _ in range(3))
    least = max(subjects, predicates, objects)
    assume(least <= subjects * predicates)
    triples = data.draw(st.integers(least, subjects * predicates))
    shared = data.draw(st.integers(0, min(subjects, objects)))
    db = uniform_database(
        data.draw(st.integers(0, 99)), subjects=subjects, predicates=predicates, objects=objects,
        triples=triples, shared=shared,
    )  # fmt: skip
    assert db.is_functional
    assert (db.n_triples, db.shape) == (triples, (subjects, predicates, objects))
    # a token in two roles is counted once
    assert db.n_tokens == sum(db.shape) - shared


def test_pairs_and_objects_of_a_uniform_database_are_drawn_evenly() -> None:
    # 4 x 3 pairs, of which the first four are a cover that is itself drawn evenly among rows and
    # columns: each of the 12 is in a database of 6 facts with probability 1/2
    counts, objects = np.zeros((4, 3)), np.zeros(2)
    for seed in range(600):
        db = uniform_database(seed, subjects=4, predicates=3, objects=2, triples=6)
        k, q, v = (
            np.array([int(role[i].text[1:]) for i in column])
            for role, column in zip(db.roles, db.tuples.T, strict=True)
        )
        counts[k, q] += 1
        objects += np.bincount(v, minlength=2)
    # binomial(600, 1/2) has a standard deviation of 12; facts of a database aren't independent, but
    # a pair's 600 draws are
    assert abs(counts - 300).max() < 5 * 12
    # 3,600 objects, at least one of each in six
    assert abs(objects[0] - 1800) < 5 * 30


@pytest.mark.parametrize(
    ("triples", "shared", "told"),
    [(3, 0, "at least each number"), (13, 0, "number of pairs, 12"), (6, 3, "`shared`")],
)
def test_numbers_that_no_database_has_are_refused(triples: int, shared: int, told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        uniform_database(0, subjects=4, predicates=3, objects=2, triples=triples, shared=shared)
