import numpy as np
from hypothesis import given

from capacity.database import Database
from capacity.rank import Problem, verify
from capacity.rank.lower.unit_tensor import unit_tensors
from capacity.rank.verifier.kinds.unit_tensor import UnitTensor
from capacity.testing import databases
from tests.oracles import database
from tests.second_checker import claim


@given(databases())
def test_unit_tensors_that_are_found_are_proved(db: Database) -> None:
    (found,) = unit_tensors(Problem(db.to_numpy()), None)  # type: ignore[arg-type]
    assert found[0].value >= 1
    assert verify(claim(db, *found), db).proved


def test_what_is_no_unit_tensor_is_refused() -> None:
    db = database([(0, 0, 0), (1, 1, 1)])
    (found,) = unit_tensors(Problem(db.to_numpy()), None)  # type: ignore[arg-type]
    assert found[0].value == 2
    other = database([(0, 0, 0), (1, 1, 1), (0, 1, 1)])
    assert not verify(claim(other, *found), other).proved
    assert isinstance(found[0], UnitTensor)
    assert np.array_equal(found[0].view.indices[0], [0, 1])
