"""Known facts beside random parts: as many facts, of the same predicates and answers."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity import Database, dimension, rank_interval
from capacity.database import description_length
from capacity.errors import CapacityError
from capacity.rank import paper_bound
from capacity.recall import beside_random_parts, random_parts
from capacity.testing import databases

# three answers of one fact, one of three; and one of two for another predicate
ROWS = [("a", "in", "x"), ("b", "in", "x"), ("c", "in", "x"), ("d", "in", "y"), ("e", "in", "z"),
        ("f", "in", "w"), ("a", "by", "u"), ("b", "by", "u")]  # fmt: skip
FACTS = Database.from_triples(ROWS)
# a and b by x; d by y
KNOWN = Database.from_triples([ROWS[0], ROWS[1], ROWS[3]])


def parts_of(kind: str) -> list[Database]:
    """All parts that may be drawn, by the definition."""
    frequency = Counter((p, o) for _, p, o in ROWS)

    def group(row: tuple[str, str, str]) -> Any:
        both = row[1], frequency[row[1:]]
        return {"nothing": None, "predicate": row[1], "answers": both}[kind]

    own = Counter(group(tuple(map(str, fact))) for fact in KNOWN)  # type: ignore[arg-type]
    return [
        Database.from_triples(rows)
        for rows in combinations(ROWS, len(KNOWN))
        if Counter(map(group, rows)) == own
    ]


@pytest.mark.parametrize(
    ("kind", "n_parts", "n_open"),
    # C(8, 3); C(6, 3) of one predicate; two of x three times, with one of the three single answers
    [("nothing", 56, 3), ("predicate", 20, 3), ("answers", 9, 3)],
)
def test_parts_are_all_those_of_the_definition_and_equally_likely(
    kind: Any, n_parts: int, n_open: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Database] = []
    monkeypatch.setattr(random_parts, "paper_bound", lambda db: drawn.append(db) or paper_bound(db))
    draws = 40 * n_parts
    table = beside_random_parts(KNOWN, FACTS, draws=draws, match=[kind], measures=["bound"])
    parts = parts_of(kind)
    assert len(parts) == n_parts
    # the first is that of what is known
    assert drawn[0] == KNOWN
    counts = Counter(drawn[1:])
    assert set(counts) == set(parts)
    # of a count of mean 40 a deviation by 32 is five standard deviations
    assert max(abs(n - 40) for n in counts.values()) < 32
    (row,) = table.to_dict("records")
    values = np.array([paper_bound(one) for one in drawn[1:]])
    assert row == {
        "match": kind, "measure": "bound", "known": 2.0, "mean": values.mean(),
        "low": np.quantile(values, 0.025), "high": np.quantile(values, 0.975),
        "share_at_most": (1 + (values <= 2).sum()) / (1 + draws), "n_open": n_open,
    }  # fmt: skip
    expected = np.mean([paper_bound(one) for one in parts])
    assert row["mean"] == pytest.approx(expected, abs=5 * values.std() / draws**0.5)


def test_each_measure_is_that_of_its_function() -> None:
    table = beside_random_parts(KNOWN, FACTS, draws=2, match=["answers"])
    rank, size = rank_interval(KNOWN), dimension(KNOWN, "CP", witness=False)
    assert dict(zip(table["measure"], table["known"], strict=True)) == {
        "bound": paper_bound(KNOWN), "rank_lower": rank.lower, "rank_upper": rank.upper,
        "description_length": description_length(KNOWN).bits,
        "dimension_necessary": size.necessary, "dimension_sufficient": size.sufficient,
    }  # fmt: skip


@given(databases(max_subjects=6, max_predicates=3, max_objects=4), st.data())
def test_a_part_has_the_sizes_of_what_is_known(db: Database, data: st.DataObject) -> None:
    rows = np.array(data.draw(st.lists(st.booleans(), min_size=len(db), max_size=len(db))), bool)
    if not rows.any():
        return
    known = db.subset(rows)
    sizes: list[tuple[int, Counter[Any], list[int]]] = []

    def measured(part: Database) -> float:
        frequency = Counter(fact[1:] for fact in db)
        sizes.append((len(part), Counter(p for _, p, _ in part),
                      sorted(frequency[fact[1:]] for fact in part)))  # fmt: skip
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_parts, "paper_bound", measured)
        beside_random_parts(known, db, draws=2, measures=["bound"])
    own, *drawn = sizes
    for i, one in enumerate(drawn):
        # two of each kind: answers, predicate, nothing
        assert one[0] == own[0]
        assert i > 3 or one[1] == own[1]
        assert i > 1 or one[2] == own[2]


def test_the_same_seed_draws_the_same_parts() -> None:
    one, two, other = (
        beside_random_parts(KNOWN, FACTS, draws=5, seed=seed, measures=["bound"])
        for seed in (1, 1, 2)
    )
    assert one.equals(two)
    assert not one.equals(other)


def test_of_facts_that_are_known_whole_nothing_is_open() -> None:
    table = beside_random_parts(FACTS, FACTS, draws=3, measures=["bound"])
    assert set(table["n_open"]) == {0}
    assert (table["low"] == table["known"]).all()
    assert (table["high"] == table["known"]).all()
    assert set(table["share_at_most"]) == {1.0}


def test_pairs_with_several_objects_have_no_description_length() -> None:
    rows = [*ROWS, ("a", "in", "y")]
    facts = Database.from_triples(rows, multi="keep")
    table = beside_random_parts(KNOWN, facts, draws=2, measures=["bound", "description_length"])
    assert set(table["measure"]) == {"bound"}


def test_progress_is_reported_and_ctrl_c_ends_it() -> None:
    seen: list[tuple[int, int]] = []

    def stop(what: str, done: int, total: int, left: float | None) -> None:
        seen.append((done, total))
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        beside_random_parts(KNOWN, FACTS, draws=3, measures=["bound"], progress=stop)
    assert seen == [(i, 9) for i in range(5)]


@pytest.mark.parametrize(
    ("known", "options", "message"),
    [([("a", "in", "q")], {}, "a in q isn't there"),
     (KNOWN, {"draws": 1}, "an integer of at least 2"), (KNOWN, {"match": ["all"]}, "`match`"),
     (KNOWN, {"measures": ["size"]}, "`measures`"), (KNOWN, {"seed": "x"}, "seed"),
     (5, {}, "needs a Database"),
     (Database.from_ids((), np.empty((0, 3), np.int32), allow_empty=True), {}, "it is empty")],
)  # fmt: skip
def test_wrong_calls_are_refused(known: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CapacityError, match=message):
        beside_random_parts(known, FACTS, **options)
