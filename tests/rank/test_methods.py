"""Methods of search are picked by name, and registered from outside with kinds of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import capacity
from capacity.database import Database
from capacity.errors import InvalidArgumentError
from capacity.exact.types import Touched
from capacity.rank import (
    METHODS,
    Boxes,
    Component,
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
    unregister_kind,
    unregister_method,
    verify,
)
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import Forms, FromBelow, Side
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.view import UNOBSERVED, view_tensor
from tests.oracles import database, matrix_product
from tests.searches import progress_of

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


def check_product(argument: Product, entries: Entries) -> Touched:
    tensor, known = view_tensor(argument.view, entries)
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
    register_method(TOY, before="Alder-Strassen")
    yield
    unregister_kind(Product.kind)
    unregister_method(TOY.name)


def product() -> Database:
    """The product, with other facts beside it."""
    rows = [(int(k) + 5, int(q) + 5, int(v) + 5) for k, q, v in matrix_product(2, 2, 2).triples]
    return database([(0, 0, 0), (1, 1, 1), *rows])


@pytest.mark.usefixtures("registered")
def test_a_method_from_outside_raises_a_bound_with_a_kind_of_its_own() -> None:
    db = product()
    interval = rank_interval(db)
    assert (interval.lower, interval.certificates.lower.by) == (2 + 7, "Winograd")
    assert Product in map(type, interval.certificates.lower.arguments)
    assert verify(interval.certificates.lower, db).proved
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
    assert without.certificates.lower.by == "unfolding"


@pytest.mark.usefixtures("registered")
def test_what_a_method_claims_wrongly_is_not_proved() -> None:
    # one fact less than a product
    db = database(matrix_product(2, 2, 2).triples.tolist()[1:])

    def hopeful(_problem: Problem, _goal: Goal) -> Iterable[Finding]:
        yield (Product(View((np.arange(4), np.arange(4), np.arange(4)))),)

    interval = rank_interval(db, methods=[replace(TOY, name="hope", find=hopeful)])
    assert (interval.lower, interval.certificates.lower.by) == (7, "hope")
    assert verify(interval.certificates.lower, db).reason == "it is no product of 2 x 2 matrices"


def test_methods_are_picked_by_name() -> None:
    db = matrix_product(2, 2, 2)
    bounds = rank_interval(db, methods=[])
    assert (bounds.certificates.lower.by, bounds.certificates.upper.by) == ("unfolding", "slices")
    flattened = rank_interval(db, methods=["Koszul flattening"])
    assert (flattened.certificates.lower.by, flattened.lower) == ("Koszul flattening", 6)
    assert flattened.upper == bounds.upper
    assert verify(flattened.certificates.lower, db).proved
    told: list[str] = []
    rank_interval(
        db,
        methods=["substitution", "spanning tree"],
        progress=progress_of(lambda _l, _u, method: told.append(method)),
    )
    # in the order of the register
    first, plan, *others = told
    assert first == "independent sets"
    # 0.3 s each at `quick`
    assert plan == "will try spanning tree, substitution; at most about 1 s of CPU"
    assert others == ["spanning tree", "substitution"]


def test_all_methods_by_name_are_all_methods() -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4) if (k + q) % 3])
    names = [method.name for method in reversed(METHODS)]
    for interval in (rank_interval, effective_rank_interval):
        some, every = interval(db, methods=names), interval(db)
        assert some.certificates.lower.to_dict() == every.certificates.lower.to_dict()
        assert some.certificates.upper.to_dict() == every.certificates.upper.to_dict()


def test_the_effective_rank_uses_the_methods_that_bound_it() -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4) if (k + q) % 3])
    told: list[str] = []
    analysis = RankAnalysis(
        db, methods=[], progress=progress_of(lambda _l, _u, method: told.append(method))
    )
    assert analysis.effective_rank.upper == analysis.rank.upper
    merged = RankAnalysis(db, methods=["merging"]).effective_rank
    assert merged.upper <= analysis.effective_rank.upper


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["flips"], "got 'flips'. Did you mean `flip graph over F_2`"),
        (["subsitution"], "Did you mean `substitution` or `sparse substitution`? `["),
        (["x" * 5000], "must have a registered name; got 'xxx"),
        ([None], "must have a registered name; got None."),
        ([3], "must have a registered name; got 3."),
        ("substitution", "`methods` must be a list of names or methods; got 'substitution'."),
    ],
)
def test_an_unknown_method_is_refused_with_the_nearest_names(methods: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        rank_interval(database([(0, 0, 0)]), methods=methods)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 300


def test_the_refusal_of_an_unknown_method_names_code_that_lists_all() -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        unregister_method("nothing")
    ((code, number),) = re.findall(r"`(\[.*\])` lists all (\d+)\.", str(refused.value))
    assert eval(code, {"capacity": capacity}) == [method.name for method in METHODS]
    assert int(number) == len(METHODS)


def test_a_method_has_a_name_of_its_own_and_one_way_to_look() -> None:
    with pytest.raises(InvalidArgumentError, match="name of its own"):
        register_method(METHODS[0])
    with pytest.raises(InvalidArgumentError, match="either `find` or `find_in_entries`"):
        Method("nothing")
    with pytest.raises(InvalidArgumentError, match="must have a registered name"):
        register_method(TOY, before="nothing")


# ---- what a careless method could do -------------------------------------------------------------


def spoiled(found: object) -> Method:
    """A method that yields this."""

    def find(_problem: Problem, _goal: Goal) -> Iterable[Finding]:
        yield found  # type: ignore[misc]

    return Method("spoiled", find)


FOUR = np.arange(4)


@pytest.mark.parametrize(
    "found",
    [(), None, 3, Product(View((FOUR, FOUR, FOUR))), (Product(View((FOUR, FOUR, FOUR))),)],
)
def test_findings_are_tuples_of_arguments_of_registered_kinds(found: object) -> None:
    for interval in (rank_interval, effective_rank_interval):
        with pytest.raises(InvalidArgumentError, match="must yield tuples of arguments of regist"):
            interval(matrix_product(2, 2, 2), methods=[spoiled(found)])


@pytest.mark.parametrize("name", ["unfolding", "slices", "independent sets", "fiber cover"])
def test_a_method_has_no_name_of_a_bound(name: str) -> None:
    # explanations, and what adds up, go by names
    with pytest.raises(InvalidArgumentError, match="another name"):
        replace(METHODS[3], name=name)


def test_a_method_is_asked_about_tensors_that_are_there() -> None:
    # 300 objects that are mentioned once tie the product to 300 subjects: too large to be dense
    rows = matrix_product(2, 2, 2).triples.tolist() + [(i, 9, 100 + i) for i in range(300)]
    shapes: list[tuple[int, ...]] = []

    def spy(problem: Problem, _goal: Goal) -> Iterable[Finding]:
        shapes.append(problem.tensor.shape)
        return ()

    rank_interval(database(rows), methods=[Method("spy", spy)])
    assert not shapes
    rank_interval(database(rows), methods=[Method("spy", spy, dense=False)])
    assert shapes == [(0, 0, 0)]


def test_a_kind_of_both_sides_that_adds_is_kept_on_its_own_side() -> None:
    @dataclass(frozen=True, eq=False)
    class Above(Product):
        """Says a number from above."""

        kind: ClassVar[str] = "above"

        @property
        def sides(self) -> tuple[Side, ...]:
            return ("upper",)

    register_kind(
        Kind(Above, lower=check_product, upper=lambda _a, entries: entries.given(FOUR), adds=True)
    )
    try:
        found = (Above(View((np.arange(4), np.arange(4), np.arange(4)))),)
        interval = rank_interval(matrix_product(2, 2, 2), methods=[spoiled(found)])
    finally:
        unregister_kind("above")
    assert (interval.lower, interval.upper) == (4, 7)


def test_boxes_of_a_part_are_refused() -> None:
    rows = [(int(k) + 5, int(q) + 5, int(v) + 5) for k, q, v in matrix_product(2, 2, 2).triples]
    db = database([(0, 0, 0), *rows])
    with pytest.raises(InvalidArgumentError, match="must be about the whole tensor"):
        rank_interval(db, methods=[spoiled((Boxes(np.arange(8) // 2),))])


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"limit": "foo"}, "`limit`"),
        ({"sides": ()}, "`sides`"),
        ({"sides": ("both",)}, "`sides`"),
    ],
)
def test_odd_methods_are_refused_when_they_are_made(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        replace(TOY, **wrong)
    pencil = next(method for method in METHODS if method.name == "pencil")
    with pytest.raises(InvalidArgumentError, match="doesn't receive which fibers are observed"):
        replace(pencil, effective="observed")


def test_methods_of_one_name_are_refused() -> None:
    one, other = replace(TOY, dense=False), replace(TOY, peeled="also")
    db = matrix_product(2, 2, 2)
    asked: list[Problem] = []

    def spy(problem: Problem, _goal: Goal) -> Iterable[Finding]:
        asked.append(problem)
        return ()

    twice = Method("spy", spy)
    rank_interval(db, methods=[twice, twice])
    assert len(asked) == 1
    with pytest.raises(InvalidArgumentError, match="different names"):
        rank_interval(db, methods=[one, other])
    with pytest.raises(InvalidArgumentError, match="different names"):
        rank_interval(db, methods=[replace(METHODS[0], effective="yes"), METHODS[0].name])
    with pytest.raises(InvalidArgumentError, match="list of names"):
        rank_interval(db, methods=TOY)  # type: ignore[arg-type]
    name: Any = "substitution"
    with pytest.raises(TypeError, match="must be a `Method`"):
        register_method(name)
    function: Any = TOY.find
    with pytest.raises(TypeError, match=r'Method\("its name", function, sides=\("lower",\)\)'):
        register_method(function)


def test_the_verifiers_budget_ends_a_method_and_not_the_search() -> None:
    def greedy(component: Component, _goal: Goal) -> Iterable[Finding]:
        component.spend(10**12, 0)
        return ()

    interval = rank_interval(
        matrix_product(2, 2, 2), methods=[Method("greedy", find_in_entries=greedy)]
    )
    assert str(interval) == "[4, 8]"
