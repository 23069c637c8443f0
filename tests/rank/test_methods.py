"""Methods of search are picked by name, and registered from outside with kinds of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from capacity.database import Database
from capacity.errors import InvalidArgumentError
from capacity.rank import (
    KINDS,
    METHODS,
    Goal,
    Kind,
    Method,
    Problem,
    RankAnalysis,
    View,
    effective_rank_interval,
    rank_interval,
    register_kind,
    register_method,
    verify,
)
from capacity.rank.types import Touched
from capacity.rank.verifier.argument import Finding, Forms, FromBelow
from capacity.rank.verifier.facts import Facts, require
from capacity.rank.verifier.view import UNOBSERVED, view_tensor
from tests.oracles import database, matrix_product

# unfoldings of the product of 2 x 2 matrices show 4, and flattenings 6
PRODUCT = matrix_product(2, 2, 2).to_numpy().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Product(FromBelow):
    """A sub-tensor that is the product of 2 x 2 matrices, of rank 7 (Winograd 1971)."""

    kind: ClassVar[str] = "product of 2 x 2 matrices"
    forms: ClassVar[Forms] = {"view": "view"}
    view: View

    @property
    def value(self) -> int:
        return 7


def check_product(argument: Product, facts: Facts) -> Touched:
    tensor, known = view_tensor(argument.view, facts)
    require(known.all(), UNOBSERVED)
    require(np.array_equal(tensor, PRODUCT), "it is no product of 2 x 2 matrices")
    return argument.view.indices


def find_product(problem: Problem, _goal: Goal) -> Iterable[Finding]:
    """The tensor, if it is a product as it stands."""
    if np.array_equal(problem.tensor, PRODUCT):
        yield (Product(View((np.arange(4), np.arange(4), np.arange(4)))),)


TOY = Method("Winograd", find_product, sides=("lower",), dense=True)


@pytest.fixture
def registered() -> Iterator[None]:
    register_kind(Kind(Product, lower=check_product))
    register_method(TOY, before="Koszul flattening")
    yield
    del KINDS[Product.kind]
    METHODS.remove(TOY)


def product() -> Database:
    """The product, with other facts beside it."""
    rows = [(int(k) + 5, int(q) + 5, int(v) + 5) for k, q, v in matrix_product(2, 2, 2).triples]
    return database([(0, 0, 0), (1, 1, 1), *rows])


@pytest.mark.usefixtures("registered")
def test_a_method_from_outside_raises_a_bound_with_a_kind_of_its_own() -> None:
    db = product()
    interval = rank_interval(db)
    assert (interval.lower.value, interval.lower.by) == (2 + 7, "Winograd")
    assert Product in map(type, interval.lower.arguments)
    assert verify(interval.lower, db).proved
    assert "by Winograd" in interval.explanation[0]


def test_a_method_that_is_not_registered_can_be_used_as_it_is() -> None:
    db = product()
    asked: list[tuple[int, ...]] = []

    def spy(problem: Problem, goal: Goal) -> Iterable[Finding]:
        asked.append(problem.tensor.shape)
        assert goal.lower < goal.upper
        return ()

    without = rank_interval(db, methods=[Method("spy", spy)])
    assert asked == [(4, 4, 4)]
    assert without.lower.by == "unfolding"


@pytest.mark.usefixtures("registered")
def test_what_a_method_claims_wrongly_is_not_proved() -> None:
    # one fact less than a product
    db = database(matrix_product(2, 2, 2).triples.tolist()[1:])

    def hopeful(_problem: Problem, _goal: Goal) -> Iterable[Finding]:
        yield (Product(View((np.arange(4), np.arange(4), np.arange(4)))),)

    interval = rank_interval(db, methods=[replace(TOY, name="hope", find=hopeful)])
    assert (interval.lower.value, interval.lower.by) == (7, "hope")
    assert verify(interval.lower, db).reason == "it is no product of 2 x 2 matrices"


def test_methods_are_picked_by_name() -> None:
    db = matrix_product(2, 2, 2)
    bounds = rank_interval(db, methods=[])
    assert (bounds.lower.by, bounds.upper.by) == ("unfolding", "slices")
    flattened = rank_interval(db, methods=["Koszul flattening"])
    assert (flattened.lower.by, flattened.lower.value) == ("Koszul flattening", 6)
    assert flattened.upper.value == bounds.upper.value
    assert verify(flattened.lower, db).proved
    told: list[str] = []
    rank_interval(
        db, methods=["substitution", "spanning tree"], progress=lambda *now: told.append(now[2])
    )
    # in the order of the register
    assert told == ["independent sets", "spanning tree", "substitution"]


def test_all_methods_by_name_are_all_methods() -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4) if (k + q) % 3])
    names = [method.name for method in reversed(METHODS)]
    for interval in (rank_interval, effective_rank_interval):
        some, every = interval(db, methods=names), interval(db)
        assert some.lower.to_dict() == every.lower.to_dict()
        assert some.upper.to_dict() == every.upper.to_dict()


def test_the_effective_rank_uses_the_methods_that_bound_it() -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4) if (k + q) % 3])
    told: list[str] = []
    analysis = RankAnalysis(db, methods=[], progress=lambda *now: told.append(now[2]))
    assert analysis.effective_rank.upper.value == analysis.rank.upper.value
    merged = RankAnalysis(db, methods=["merging"]).effective_rank
    assert merged.upper.value <= analysis.effective_rank.upper.value


@pytest.mark.parametrize("methods", [["flips"], [None], "substitution", [3]])
def test_an_unknown_method_is_refused_with_the_names_there_are(methods: object) -> None:
    with pytest.raises(InvalidArgumentError, match="substitution"):
        rank_interval(database([(0, 0, 0)]), methods=methods)  # type: ignore[arg-type]


def test_a_method_has_a_name_of_its_own_and_one_way_to_look() -> None:
    with pytest.raises(InvalidArgumentError, match="name of its own"):
        register_method(METHODS[0])
    with pytest.raises(InvalidArgumentError, match="one of `find` and `find_in_facts`"):
        Method("nothing")
    with pytest.raises(InvalidArgumentError, match="must be one of"):
        register_method(TOY, before="nothing")
