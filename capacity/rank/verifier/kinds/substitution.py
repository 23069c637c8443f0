"""The number of moves of the masked substitution game, from below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.rank.types import Indices
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.facts import Facts, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import Removed, view_tensor

# steps for each entry of the view in a game, and for each move
GAME_ENTRY, MOVE = 50, 30_000


@dataclass(frozen=True, eq=False, repr=False)
class Substitution(FromBelow):
    """Moves of the masked substitution game.

    Attributes
    ----------
    view : View
    moves : ndarray of int64, shape (n, 2)
        Pairs (mode, index): the slices of the view that are removed, in this order. Indices are
        the view's, numbered from 0.
    """

    kind: ClassVar[str] = "substitution"
    forms: ClassVar[Forms] = {"view": "view", "moves": "pairs"}
    view: View
    moves: Indices

    @property
    def value(self) -> int:
        """The number of moves."""
        return len(self.moves)


def check_substitution(argument: Substitution, facts: Facts, before: Removed | None) -> None:
    """Each move removes a slice and lowers the rank by at least one.

    Let T be a sum of R simple tensors a_r (x) b_r (x) c_r, and let its slice T_i, of mode 0 say, be
    nonzero: it is, since an entry of it is known and nonzero. Then some a_r[i] is nonzero. Subtract
    a_r[j] / a_r[i] times T_i from every other slice T_j: term r vanishes from all of them, so the
    slices without T_i are a tensor of rank at most R - 1. The multiples aren't known, so what was
    subtracted hides the entries of T_j wherever T_i isn't known to be zero; the others are as they
    were. For the effective rank the unobserved fibers are hidden from the start, and so are those
    that slices removed `before` may have changed.
    """
    moves = argument.moves
    tensor, known = view_tensor(argument.view, facts, before=before)
    values = tensor != 0
    facts.budget.spend(GAME_ENTRY * values.size + MOVE * len(moves), 6 * values.size)
    require(((moves[:, 0] >= 0) & (moves[:, 0] < 3)).all(), "there is no such mode")
    inside = (moves[:, 1] >= 0) & (moves[:, 1] < np.array(values.shape)[moves[:, 0]])
    require(inside.all(), "a slice is out of range")
    alive = [np.ones(n, bool) for n in values.shape]
    # fibers along each mode that are hidden already: each is hidden once, and a game of any length
    # costs a few times the entries
    gone = [np.zeros(np.delete(values.shape, mode), bool) for mode in range(3)]
    steps: list[list[int]] = moves.tolist()
    for step, (mode, index) in enumerate(steps):
        where = f"move {step}, slice {index} of mode {mode}"
        require(alive[mode][index], f"{where}: it was removed before")
        a, b = (m for m in range(3) if m != mode)
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = alive[a][:, None] & alive[b][None, :]
        require((slice_known & slice_value & live).any(), f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        # direct sums rest on this mask too (`capacity.rank.verifier`): it must never hide less
        hidden = (~slice_known | slice_value) & ~gone[mode]
        gone[mode] |= hidden
        np.moveaxis(known, mode, 0)[:, hidden] = False


KIND = Kind(
    Substitution,
    lower=lambda argument, _facts: argument.view.indices,
    game=check_substitution,
    adds=True,
)
