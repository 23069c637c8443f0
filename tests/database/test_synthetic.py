import numpy as np
import pytest

from capacity.database import random_database
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
