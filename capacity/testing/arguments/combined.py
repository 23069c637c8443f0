"""Valid certificates of a tensor, combined at random as `capacity.rank.verifier` allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, get_args

import numpy as np
from hypothesis import strategies as st

from capacity.checks import require_choice
from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.rank import Argument, Boxes, Certificate, Decomposition, Pencil, Unfolding
from capacity.rank.options import Field
from capacity.rank.verifier.certificate import Quantity, Side
from capacity.rank.verifier.named import name_of, tensor_of
from capacity.tensor import SparseTensor, grouped
from capacity.testing.arguments.area import Area, Sides
from capacity.testing.arguments.lower_arguments import ADDING, unfolding
from capacity.testing.arguments.strong_arguments import STRONG
from capacity.testing.arguments.upper_arguments import (
    algebraic_decomposition,
    complex_decomposition,
    paired_slices,
    partition,
    terms,
)
from capacity.testing.arguments.whole_components import WHOLE
from capacity.testing.choices import Choices

T = TypeVar("T", bound=str)
SUMS = ("decomposition", "algebraic decomposition", "complex decomposition")
PAIRS = "paired slices"
KINDS: dict[Side, tuple[str, ...]] = {
    "lower": (*ADDING, *STRONG),
    "upper": ("boxes", *SUMS, PAIRS, *WHOLE),
}
TRIES = 30  # attempts at a certificate with the kind that is asked for


@st.composite
def certificates(
    draw: st.DrawFn,
    of: Database | SparseTensor,
    *,
    quantity: Quantity | None = None,
    side: Side | None = None,
    kind: str | None = None,
) -> Certificate:
    """Draw valid certificates of a database or a tensor, tight or not.

    A lower bound has arguments about different components, pairs of an unfolding and another
    argument, and at most one of another kind; views, bases, primes and the order of substitution
    steps vary. For tensors of order four or more, modes may be taken together. An upper bound sorts
    entries into boxes and terms, and covers some components by other arguments.

    Parameters
    ----------
    of : Database or SparseTensor
        A small database, or a small tensor with entries below 2^31: it is made dense.
    quantity : {'rank', 'effective_rank'}, optional
        Quantity that is bounded; either if omitted.
    side : {'lower', 'upper'}, optional
        Side of the bound; either if omitted.
    kind : str, optional
        Kind of an argument that every certificate must have, such as ``"koszul"``; if omitted, any
        kinds for which an argument is found.

    Returns
    -------
    SearchStrategy of Certificate
        Certificates that `capacity.verify` proves for these facts, or this tensor.

    Raises
    ------
    InvalidArgumentError
        While drawing: for an unknown quantity, side or kind, for a kind that can't argue for that
        side or of which no argument is found, or if the tensor has more than 65,536 places, a
        single mode, or an entry of 2^31 or more.
    InvalidTypeError
        While drawing: if `of` is neither a database nor a tensor.

    Examples
    --------
    >>> from hypothesis import find
    >>> db = Database.from_triples([("Ada", "born_in", "London"), ("Ada", "died_in", "London")])
    >>> simplest = find(certificates(db, side="upper"), lambda certificate: True)
    >>> simplest.value, [argument.kind for argument in simplest.arguments]
    (1, ['boxes'])
    """
    return drawn_certificate(Choices.drawn(draw), of, quantity=quantity, side=side, kind=kind)


def drawn_certificate(
    choose: Choices,
    of: Database | SparseTensor,
    *,
    quantity: Quantity | None = None,
    side: Side | None = None,
    kind: str | None = None,
) -> Certificate:
    """Draw from `certificates` by given choices."""
    bounded = _one_of(choose, "quantity", quantity, get_args(Quantity))
    sides = [one for one in get_args(Side) if kind is None or kind in KINDS[one]]
    if not sides:
        require_choice("`kind`", kind, dict.fromkeys(sum(KINDS.values(), ())))
    about = _one_of(choose, "side", side, get_args(Side) if side else sides)
    if about not in sides:
        raise InvalidArgumentError(
            f"The {about} bound can't rest on {kind!r}, which is for the {sides[0]} bound; choose "
            f"one of {', '.join(KINDS[about])}."
        )
    tensor = tensor_of(of)
    area, choose = Area.of(tensor, bounded), choose.sometimes_greedy()
    # whether a kind is refused must not depend on these choices alone
    first = choose.integer(0, TRIES - 1) if kind else 0
    others = (Choices.seeded((first + n) % TRIES) for n in range(TRIES))
    for chooser in (choose, *others):
        groups: tuple[tuple[int, ...], ...] = ()
        if about == "lower":
            groups = _modes_together(chooser, tensor.order, bounded, kind)
            mine = Area.of(grouped(tensor, groups), bounded) if groups else area
            arguments = _lower(chooser, mine, kind)
        else:
            arguments = _upper(chooser, area, tensor, kind)
        if kind is None or any(argument.kind == kind for argument in arguments):
            value = sum(argument.value for argument in arguments)
            field: Field = "C" if any(a.kind == SUMS[2] for a in arguments) else "R"
            return Certificate(
                bounded, about, value, "drawn", arguments, *name_of(of), groups, field
            )
    raise InvalidArgumentError(
        f"No argument of kind {kind!r} for a bound of this side was found; omit `kind`, or draw "
        "another database or tensor."
    )


def _modes_together(
    choose: Choices, order: int, quantity: Quantity, kind: str | None
) -> tuple[tuple[int, ...], ...]:
    """Choose groups of modes for a lower bound, or none; three if the kind needs order three."""
    if order < 4 or not (kind in STRONG or choose.chance(1, 2)):
        return ()
    n = 3 if kind in STRONG or choose.chance(1, 2) else choose.integer(2, order - 1)
    # what is observed is seen along the last mode
    last = [order - 1] if quantity == "effective_rank" else []
    modes = choose.order(range(order - len(last)))
    n -= len(last)
    groups = [[mode] for mode in modes[:n]]
    for mode in modes[n:]:
        choose.one(groups).append(mode)
    return tuple(tuple(sorted(group)) for group in (*groups, last) if group)


def _one_of(choose: Choices, name: str, value: T | None, allowed: Sequence[T]) -> T:
    if value is None:
        return choose.one(allowed)
    require_choice(f"`{name}`", value, allowed)
    return value


def _lower(choose: Choices, area: Area, kind: str | None) -> tuple[Argument, ...]:
    """Choose arguments about groups of components, one or a pair for each group."""
    groups = [area]
    if not area.components:
        return ()
    if not area.effective:
        left = choose.some(area.components)
        groups = [area.of_components(group) for group in _groups(choose, left)]
    strong = kind not in STRONG and choose.chance(1, 2)
    of_kind = choose.integer(0, len(groups) - 1)
    found: list[list[Argument]] = []
    for number, group in enumerate(groups):
        # the kind that is asked for has the first try
        names = [kind] if number == of_kind and kind in KINDS["lower"] else []
        names += choose.order([*ADDING, *(STRONG if strong else ())])
        pair = choose.chance(1, 3)
        first = unfolding(choose, group.some(choose)) if pair else None
        made = None
        for name in names:
            rest = group
            if isinstance(first, Unfolding):
                rest = group.after(first, by_substitution=name == "substitution")
            if all(rest.indices) and (strong or name not in STRONG or name == kind):
                made = {**ADDING, **STRONG}[str(name)](choose, rest)
            if made is not None:
                strong = strong and name not in STRONG
                break
        some = [one for one in (first, made) if one is not None]
        if some:
            found.append(some)
    if not found:
        return tuple(one for one in [unfolding(choose, area)] if one is not None)
    return _shuffled(choose, found)


def _groups(choose: Choices, components: list[int]) -> list[list[int]]:
    """Sort components into groups."""
    groups: list[list[int]] = []
    for component in choose.order(components):
        place = choose.integer(0, len(groups))
        if place == 0:
            groups.append([component])
        else:
            groups[place - 1].append(component)
    return groups


def _shuffled(choose: Choices, chains: list[list[Argument]]) -> tuple[Argument, ...]:
    """Shuffle all arguments, with the first of each pair before the second."""
    order = choose.order([n for n, chain in enumerate(chains) for _ in chain])
    waiting = [list(chain) for chain in chains]
    return tuple(waiting[n].pop(0) for n in order)


def _upper(
    choose: Choices, area: Area, tensor: SparseTensor, kind: str | None
) -> tuple[Argument, ...]:
    """Cover some components whole, and sort the entries of the others into boxes and terms."""
    arguments: list[Argument] = []
    left = area.components
    whole = kind in WHOLE or choose.chance(1, 3)
    while whole and left:
        names = choose.order(WHOLE)
        if kind in WHOLE and not arguments:
            names = [str(kind)]
        # some components together, or each alone
        tries = [(name, choose.some(left)) for name in names]
        tries += [(names[0], [component]) for component in choose.order(left)]
        for name, group in tries:
            made = WHOLE[name](choose, area.of_components(group))
            if made is not None:
                arguments.append(made)
                given = group
                if isinstance(made, Pencil):
                    given = area.labels[made.mode][made.slices].tolist()
                left = [component for component in left if component not in given]
                break
        whole = choose.chance(1, 2)
    mine = np.zeros(area.tensor.shape, bool)
    rest = area.of_components(left)
    mine[np.ix_(*rest.indices)] = rest.part() != 0
    if area.order == 3 and (kind == PAIRS or choose.chance(1, 4)):
        made = paired_slices(choose, area.tensor, tensor.indices, mine)
        if made is not None:
            arguments.append(made)
            mine[tuple(tensor.indices[made.pair >= 0].T)] = False
    # a box may reach into unobserved fibers of any component
    boxes = partition(choose, area if area.effective else rest, mine)
    in_boxes, in_terms = _two(choose, boxes, kind)
    if in_terms:
        found = terms(choose, area, in_terms)
        if kind == SUMS[2]:
            arguments.append(complex_decomposition(choose, found))
        elif kind == SUMS[1] or (kind != SUMS[0] and choose.chance(1, 3)):
            arguments.append(algebraic_decomposition(choose, found))
        else:
            arguments.append(Decomposition(tuple(found)))
    if in_boxes:
        box = np.full(area.tensor.shape, -1)
        for number, sides in enumerate(choose.order(in_boxes)):
            place = np.ix_(*sides)
            box[place] = np.where(mine[place], number, box[place])
        arguments.append(Boxes(box[tuple(tensor.indices.T)]))
    return tuple(choose.order(arguments))


def _two(choose: Choices, boxes: list[Sides], kind: str | None) -> tuple[list[Sides], list[Sides]]:
    """Split boxes into those that stay and those for terms, at least one of the kind asked for."""
    if not boxes:
        return [], []
    some = choose.some(boxes) if kind in SUMS or choose.chance(1, 2) else []
    if kind == "boxes" and len(some) == len(boxes):
        some = some[1:]
    return [box for box in boxes if box not in some], some
