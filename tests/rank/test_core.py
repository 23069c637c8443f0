import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import concise_core, effective_rank_interval, matrix_rank, rank_interval
from capacity.rank.reductions.subtensor import Core
from capacity.testing import KnownRank, databases, tensors_of_known_rank
from tests.oracles import FIGURE_1
from tests.tiers import examples


def rebuilt(core: Core, shape: tuple[int, ...]) -> np.ndarray:
    """(C_0, C_1, C_2) times the core, by terms: each entry of the core is a simple tensor."""
    terms = [
        (((i,), (core.tensor[i, j, k],)), ((j,), (1,)), ((k,), (1,)))
        for i, j, k in np.argwhere(core.tensor).tolist()
    ]
    total = np.zeros(shape, dtype=object)
    for a, b, c in core.lifted(terms):  # type: ignore[arg-type]
        for i, x in zip(*a, strict=True):
            for j, y in zip(*b, strict=True):
                for k, z in zip(*c, strict=True):
                    total[i, j, k] += x * y * z
    return total


@given(databases(max_triples=30))
@settings(max_examples=examples(200))
def test_the_core_is_a_concise_part_that_gives_the_whole(db: Database) -> None:
    whole = db.to_numpy().astype(np.int64)
    core = concise_core(whole)
    assert (core.tensor == whole[np.ix_(*core.chosen)]).all()
    for mode in range(3):
        unfolded = np.moveaxis(whole, mode, 0).reshape(whole.shape[mode], -1)
        mine = np.moveaxis(core.tensor, mode, 0).reshape(core.tensor.shape[mode], -1)
        assert core.tensor.shape[mode] == matrix_rank(mine) == matrix_rank(unfolded)
    assert (rebuilt(core, whole.shape) == whole).all()


@given(tensors_of_known_rank())
def test_the_core_of_an_integer_tensor_gives_it_back(known: KnownRank) -> None:
    assert (rebuilt(concise_core(known.tensor), known.tensor.shape) == known.tensor).all()


@given(databases(), st.integers(0, 4), st.integers(0, 4))
def test_a_sum_of_two_slices_adds_nothing_to_the_rank(db: Database, i: int, j: int) -> None:
    # a subject whose facts are those of two others that share none
    of = [{(q, v) for k, q, v in db.triples.tolist() if k == s % db.shape[0]} for s in (i, j)]
    if of[0] & of[1] or i % db.shape[0] == j % db.shape[0]:
        return
    rows = [(f"k{k}", f"q{q}", f"v{v}") for k, q, v in db.triples.tolist()]
    more = [("sum", f"q{q}", f"v{v}") for q, v in of[0] | of[1]]
    before = rank_interval(Database.from_triples(rows, multi="keep"))
    after = rank_interval(Database.from_triples(rows + more, multi="keep"))
    assert before.lower <= after.upper
    assert after.lower <= before.upper


@pytest.mark.slow
def test_the_core_never_bounds_the_effective_rank() -> None:
    # two copies of Example 2.2, of effective rank 9, and the sums of a subject of each: the sums
    # add nothing to the rank, but tie the copies together, to effective rank 10
    rows = [tuple(copy + token for token in row) for copy in "ab" for row in FIGURE_1]
    people = ["Astrid", "Bernard", "Colin"]
    facts = {k: [row[1:] for row in FIGURE_1 if row[0] == k] for k in people}
    for i in people:
        for j in people:
            rows += [(f"{i}+{j}", f"a{q}", f"a{v}") for q, v in facts[i]]
            rows += [(f"{i}+{j}", f"b{q}", f"b{v}") for q, v in facts[j]]
    db = Database.from_triples(rows)
    assert db.n_triples == 52
    copies = Database.from_triples(rows[:16])
    shape = db.to_numpy().shape
    assert concise_core(db.to_numpy().astype(np.int64)).tensor.shape[0] < shape[0]
    assert str(rank_interval(db)) == "[10, 10]"
    interval = effective_rank_interval(db, effort="standard")
    assert 10 in interval
    assert effective_rank_interval(copies, effort="standard").lower <= 9
