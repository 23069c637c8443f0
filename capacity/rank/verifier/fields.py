"""Over which fields the arguments of a certificate hold, and which of them bound the border rank.

A tensor of integers has a rank over the rationals Q, the real numbers R and the complex numbers C,
none of them larger than the one before: a decomposition over a field is one over a larger field. So

* a lower bound over R is one over Q. It is one over C as well if its proof uses no more of R than
  that it is a field that contains Q (`Kind.below_complex`);
* an upper bound over R is one over C. It is one over Q as well if its terms are rational
  (`Kind.above_rational`).

The *border rank* over a field is the least r such that the tensor is a limit of tensors of rank r.
It is at most the rank, so an upper bound of the rank is one of it. A lower bound is one of it if it
is the rank of a matrix whose entries are linear in the tensor's, by a factor: where a minor of that
size isn't 0, it isn't 0 nearby (`Kind.border`). The substitution method has no such reason: W has
rank 3 and border rank 2. Nor do bounds of components add: Schönhage's sum of a k x 1 x n and a
1 x m x 1 product of matrices, m = (k - 1)(n - 1), has border rank k n + 1, while different
unfoldings of its summands have the ranks k n and m. So one argument proves a lower bound of the
border rank, or several unfoldings of the same mode, which are parts of one minor.

References
----------
A. Schönhage, Partial and total matrix multiplication, SIAM J. Computing 10, 1981 (border ranks
don't add); P. Bürgisser, M. Clausen, M. A. Shokrollahi, Algebraic Complexity Theory, 1997, chapters
14 and 15; J. M. Landsberg, Tensors: Geometry and Applications, 2012, sections 3.8 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from capacity.rank.verifier.argument import Argument, Side
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.rank.verifier.number_field import Field


def why_not_over(
    arguments: Sequence[Argument], kinds: Sequence[Kind], side: Side, field: Field, *, border: bool
) -> str | None:
    """Return the reason why arguments prove nothing over a field, or of the border rank, if any.

    Parameters
    ----------
    arguments : sequence of Argument
        Arguments that prove a bound of the rank over the real numbers.
    kinds : sequence of Kind
        The registered kind of each.
    side : {'lower', 'upper'}
        Side of the bound.
    field : {'Q', 'R', 'C'}
        The field.
    border : bool
        Whether the border rank is bounded.
    """
    for kind in kinds:
        holds = (
            field != "C" or kind.below_complex
            if side == "lower"
            else field != "Q" or kind.above_rational
        )
        if not holds:
            return f"an argument of the kind {kind.name!r} proves no {side} bound over {field}"
    if not border or side == "upper":
        return None
    limits = [kind.name for kind in kinds if not kind.border]
    if limits:
        return f"an argument of the kind {limits[0]!r} proves no bound of the border rank"
    modes = {one.mode if isinstance(one, Unfolding) else None for one in arguments}
    if len(arguments) > 1 and (len(modes) > 1 or None in modes):
        return "bounds of the border rank don't add, but for unfoldings of one mode"
    return None
