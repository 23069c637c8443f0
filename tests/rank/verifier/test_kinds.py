"""A kind of argument can be registered from outside, and means nothing where it isn't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from capacity.errors import CertificateError
from capacity.exact.types import Touched
from capacity.rank import (
    Certificate,
    Substitution,
    Unfolding,
    View,
    load_certificates,
    rank_interval,
    save_certificates,
)
from capacity.rank.verifier.argument import Forms, FromBelow
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.kinds import register_kind, unregister_kind
from capacity.rank.verifier.view import UNOBSERVED, view_tensor
from tests.oracles import database, matrix_product
from tests.second_checker import claim


@dataclass(frozen=True, eq=False)
class UnitTensor(FromBelow):
    """A sub-tensor of n x n x n whose entries are those of the unit tensor, of rank n."""

    kind: ClassVar[str] = "unit tensor"
    forms: ClassVar[Forms] = {"view": "view"}
    view: View

    @property
    def value(self) -> int:
        return len(self.view.indices[0])


def check_unit_tensor(argument: UnitTensor, entries: Entries) -> Touched:
    tensor, known = view_tensor(argument.view, entries)
    require(known.all(), UNOBSERVED)
    n = argument.value
    require(tensor.shape == (n, n, n), "the sub-tensor must be n x n x n")
    i = np.arange(n)
    require(tensor[i, i, i].all() and tensor.sum() == n, "it is no unit tensor")
    return argument.view.indices


UNIT_TENSOR = Kind(UnitTensor, lower=check_unit_tensor)
DIAGONAL = [(0, 0, 0), (1, 1, 1), (2, 2, 2)]


@pytest.fixture
def registered() -> Iterator[None]:
    register_kind(UNIT_TENSOR)
    yield
    unregister_kind("unit tensor")


def unit(n: int = 3) -> UnitTensor:
    return UnitTensor(View((np.arange(n), np.arange(n), np.arange(n))))


@pytest.mark.usefixtures("registered")
def test_a_kind_from_outside_is_checked_and_goes_to_json_and_back(tmp_path: Path) -> None:
    db = database(DIAGONAL)
    said = claim(db, unit())
    assert verify(said, db).proved
    save_certificates([said], tmp_path / "c.json")
    (read,) = load_certificates(tmp_path / "c.json")
    assert isinstance(read.arguments[0], UnitTensor)
    assert verify(read, db).proved


@pytest.mark.usefixtures("registered")
def test_a_kind_from_outside_is_refused_where_its_checker_refuses() -> None:
    db = database([*DIAGONAL, (0, 1, 1)])
    assert verify(claim(db, unit()), db).reason == "it is no unit tensor"
    assert not verify(replace(claim(db, unit()), value=4), db).proved
    # an array of another dtype is converted, or refused, before its checker sees it
    floats = UnitTensor(View((np.arange(3.0), np.arange(3), np.arange(3))))  # type: ignore[arg-type]
    assert not verify(claim(database(DIAGONAL), floats), database(DIAGONAL)).proved
    # unobserved fibers are no zeros
    partial = database(DIAGONAL)
    of_effective = claim(partial, unit(), quantity="effective_rank")
    assert verify(of_effective, partial).reason == UNOBSERVED


@pytest.mark.usefixtures("registered")
def test_arguments_that_do_not_add_are_not_added_whatever_their_kind() -> None:
    db = database([*DIAGONAL, *((a + 3, b + 3, c + 3) for a, b, c in DIAGONAL)])
    other = UnitTensor(View((np.arange(3, 6), np.arange(3, 6), np.arange(3, 6))))
    both = Certificate("rank", "lower", 6, "two", (unit(), other), db.facts_sha256, db.multi)
    assert "don't add" in str(verify(both, db).reason)


def test_a_kind_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    db = database(DIAGONAL)
    with pytest.raises(CertificateError, match="a checker is registered for"):
        verify(claim(db, unit()), db)
    save_certificates([claim(db, unit())], tmp_path / "c.json")
    with pytest.raises(
        CertificateError,
        match="must be one of algebra, algebraic decomposition, block substitution, ",
    ):
        load_certificates(tmp_path / "c.json")


@pytest.mark.usefixtures("registered")
def test_a_kind_is_registered_once_and_has_a_checker() -> None:
    with pytest.raises(ValueError, match="must have a name of its own"):
        register_kind(UNIT_TENSOR)
    with pytest.raises(ValueError, match="must have a checker"):
        register_kind(Kind(type("Empty", (UnitTensor,), {"kind": "empty"})))


def test_only_an_unfolding_itself_goes_before_another_argument() -> None:
    class Other(Unfolding):
        """Has the fields of an unfolding, and another value."""

        kind: ClassVar[str] = "other"

        @property
        def value(self) -> int:
            return 4

    one = np.arange(1)
    register_kind(Kind(Other, lower=lambda _argument, _facts: (one, one, one)))
    try:
        db = matrix_product(2, 2, 2)
        none, pairs = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        argument = next(
            argument
            for argument in rank_interval(db, methods=["substitution"]).certificates.lower.arguments
            if isinstance(argument, Substitution)
        )
        other = Other(0, none, pairs, none, none, 2)
        verdict = verify(claim(db, other, argument), db)
    finally:
        unregister_kind("other")
    assert "may change what" in str(verdict.reason)


@pytest.mark.parametrize(
    "forms",
    [{"view": "matrix"}, {"first": "view", "second": "view"}, {"view": "view", "bases": "indices"}],
)
def test_fields_of_kinds_have_forms_that_go_to_json_and_back(forms: dict[str, str]) -> None:
    odd = type("Odd", (UnitTensor,), {"kind": "odd", "forms": forms})
    with pytest.raises(ValueError, match=r"[Tt]he kind 'odd' must have"):
        register_kind(Kind(odd, lower=check_unit_tensor))


def test_only_what_is_registered_can_be_taken_out() -> None:
    with pytest.raises(
        ValueError, match="must be one of algebra, algebraic decomposition, block substitution, "
    ):
        unregister_kind("unit tensor")
