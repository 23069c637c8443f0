"""Upper bound by a theorem: the largest rank that a real tensor of a small format can have.

=============================  ==================  ===============================================
format                         largest rank        source
=============================  ==================  ===============================================
2 x m x n, m <= n <= 2m        m + floor(n / 2)    Ja'Ja' 1979, Theorem 3.5; 2 x 2 x 2 has 3
2 x m x n, 2m <= n             2m                  as above: there are 2m rows
3 x 3 x 3                      5                   Sumi, Miyazaki, Sakata 2010, Theorem 4
=============================  ==================  ===============================================

The proofs aren't repeated here: like `Published`, an argument of this kind rests on theorems of
others. It yields no decomposition.

References
----------
J. Ja'Ja', Optimal evaluation of pairs of bilinear forms, SIAM J. Computing 8, 1979; T. Sumi, M.
Miyazaki, T. Sakata, About the maximal rank of 3-tensors over the real and the complex number field,
Ann. Inst. Stat. Math. 62, 2010; J. B. Kruskal, Rank, decomposition, and uniqueness for 3-way and
N-way arrays, 1989 (states 3 x 3 x 3 without proof); M. R. Bremner, J. Hu, On Kruskal's theorem that
every 3 x 3 x 3 array has rank at most 5, LAA 2013 (over the complex numbers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from capacity.rank.verifier.argument import Forms, FromAbove, View
from capacity.rank.verifier.entries import Entries, Given, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import entries_of_view


@dataclass(frozen=True, eq=False, repr=False)
class MaximalRank(FromAbove):
    """The largest rank of any real tensor of the format of a sub-tensor.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices span those of its components, without `bases`.
    value : int
        The largest rank of its format.
    """

    kind: ClassVar[str] = "maximal rank"
    forms: ClassVar[Forms] = {"view": "view", "value": "integer"}
    view: View
    value: int


def maximal_rank(shape: Sequence[int]) -> int | None:
    """Return the largest rank of real tensors of a format; None if no theorem states it.

    Examples
    --------
    >>> [maximal_rank(shape) for shape in ((2, 2, 2), (4, 2, 3), (3, 3, 3), (3, 3, 4))]
    [3, 5, 5, None]
    """
    if len(shape) != 3:
        return None
    a, m, n = sorted(shape)
    if a == 2:
        return m + min(m, n // 2)
    return 5 if (a, m, n) == (3, 3, 3) else None


def entries_of_format(argument: MaximalRank, entries: Entries) -> Given:
    """Check that a theorem states the value, and that the view has the rank of its components.

    It has if, in each mode, the slices of the components are combinations of its own.
    """
    entries.require_order_3()
    require(all(P is None for P in argument.view.bases), "the view must have no bases")
    largest = maximal_rank([len(of) for of in argument.view.indices])
    require(largest is not None, "no theorem yields the largest rank of this format")
    require(argument.value == largest, f"the largest rank of this format is {largest}")
    return entries.given(entries_of_view(argument.view, entries))


def source_of(argument: MaximalRank) -> str:
    """Return who proved the theorem about the format."""
    two = 2 in [len(of) for of in argument.view.indices]
    return "Ja'Ja' 1979" if two else "Sumi, Miyazaki, Sakata 2010"


KIND = Kind(MaximalRank, upper=entries_of_format, source=source_of)
