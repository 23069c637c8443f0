"""The tensor D of a database: by its nonzero entries, and as dense and sparse arrays.

D[k, q, v] = 1 for each fact, shape (n_subjects, n_predicates, n_objects) (Wong 2025, equation (1));
modes 0, 1, 2 are subject, predicate, object. Facts of another arity have a mode for each column,
the last for the object. `capacity.tensor.structure` has unfoldings, slices and components.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from capacity.database.columns import Columns
from capacity.errors import InvalidArgumentError
from capacity.tensor.sparse import SparseTensor, dense_zeros

if TYPE_CHECKING:
    import scipy.sparse

# default limit of a dense tensor, in bytes
DENSE_BUDGET = 2**30


class WithTensor(Columns):
    """Facts in columns, and their tensor; a part of `Database`."""

    def tensor(self) -> SparseTensor:
        """The tensor D by its nonzero entries, in the order of `tuples`.

        Raises
        ------
        InvalidArgumentError
            For a database without facts.
        """
        if not self.n_facts:
            raise InvalidArgumentError(
                "A tensor needs at least one index a mode; this database has no facts, and so no "
                "tensor and no rank."
            )
        return self._tensor

    @cached_property
    def _tensor(self) -> SparseTensor:
        return SparseTensor(self.tuples, np.ones(self.n_facts, np.int64), self.shape)

    def to_coo(self) -> scipy.sparse.coo_array[Any, Any]:
        """The tensor D as a sparse array of int8, shape `shape`."""
        from scipy.sparse import coo_array

        ones = np.ones(self.n_facts, dtype=np.int8)
        first, *others = self.shape
        return coo_array((ones, tuple(self.tuples.T)), shape=(first, *others))

    def to_numpy(
        self, dtype: DTypeLike = np.int8, *, max_bytes: int = DENSE_BUDGET
    ) -> NDArray[Any]:
        """The tensor D as a dense array, shape `shape`.

        Raises
        ------
        MemoryBudgetError
            Before allocating, if the array would take more than `max_bytes` bytes.
        """
        advice = "Use `to_coo()`, or raise `max_bytes`."
        dense = dense_zeros(self.shape, dtype, max_bytes, advice=advice)
        dense[tuple(self.tuples.T)] = 1
        return dense
