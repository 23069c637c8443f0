"""Valid certificates of a database, combined at random as `capacity.rank.verifier` allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, get_args

import numpy as np
from hypothesis import strategies as st

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.options import require_choice
from capacity.rank import (
    Argument,
    Boxes,
    Certificate,
    Decomposition,
    Pencil,
    Unfolding,
)
from capacity.rank.verifier.certificate import Quantity, Side
from capacity.testing.area import Area, Sides
from capacity.testing.choices import Choices
from capacity.testing.drawn_diagonalizations import diagonalization
from capacity.testing.lower_arguments import (
    koszul,
    pencil,
    substitution,
    unfolding,
)
from capacity.testing.upper_arguments import algebraic, partition, terms
from capacity.testing.whole_components import enclosure, whole_diagonalization, whole_pencil

T = TypeVar("T", bound=str)
Maker: TypeAlias = Callable[[Choices, Area], Argument | None]
# kinds whose values add up, and kinds of which a certificate may have one
ADDING: dict[str, Maker] = {"unfolding": unfolding, "substitution": substitution}
STRONG: dict[str, Maker] = {"koszul": koszul, "pencil": pencil, "diagonalization": diagonalization}
WHOLE: dict[str, Maker] = {
    "pencil": whole_pencil,
    "diagonalization": whole_diagonalization,
    "enclosure": enclosure,
}
KINDS: dict[Side, tuple[str, ...]] = {
    "lower": (*ADDING, *STRONG),
    "upper": ("boxes", "decomposition", "algebraic decomposition", *WHOLE),
}
# attempts at a certificate with the kind that is asked for
TRIES = 30


@st.composite
def certificates(
    draw: st.DrawFn,
    db: Database,
    *,
    quantity: Quantity | None = None,
    side: Side | None = None,
    kind: str | None = None,
) -> Certificate:
    """Valid certificates of a database, tight or not.

    A lower bound has arguments about different components, pairs of an unfolding and another
    argument, and at most one flattening, pencil or diagonalization; views, bases, primes and the
    order of substitution steps vary. An upper bound sorts facts into boxes and terms, and covers
    some components by other arguments.

    Parameters
    ----------
    db : Database
        A small database: its tensor is made dense.
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
        Certificates that `capacity.verify` proves for these facts.

    Raises
    ------
    InvalidArgumentError
        While drawing: for an unknown quantity, side or kind, for a kind that can't argue for that
        side or of which no argument is found for these facts, or if the tensor has more than
        65,536 entries.

    Examples
    --------
    >>> from hypothesis import find
    >>> db = Database.from_triples([("Ada", "born_in", "London"), ("Ada", "died_in", "London")])
    >>> simplest = find(certificates(db, side="upper"), lambda certificate: True)
    >>> simplest.value, [argument.kind for argument in simplest.arguments]
    (1, ['boxes'])
    """
    return drawn_certificate(Choices.drawn(draw), db, quantity=quantity, side=side, kind=kind)


def drawn_certificate(
    choose: Choices,
    db: Database,
    *,
    quantity: Quantity | None = None,
    side: Side | None = None,
    kind: str | None = None,
) -> Certificate:
    """Draw from `certificates` by given choices."""
    of = _one_of(choose, "quantity", quantity, get_args(Quantity))
    sides = [one for one in get_args(Side) if kind is None or kind in KINDS[one]]
    if not sides:
        require_choice("`kind`", kind, dict.fromkeys(sum(KINDS.values(), ())))
    about = _one_of(choose, "side", side, get_args(Side) if side else sides)
    if about not in sides:
        raise InvalidArgumentError(
            f"The {about} bound can't rest on {kind!r}, which is for the {sides[0]} bound; choose "
            f"one of {', '.join(KINDS[about])}."
        )
    area, choose = Area.of(db, of), choose.sometimes_greedy()
    # whether a kind is refused must not depend on these choices alone
    first = choose.integer(0, TRIES - 1) if kind else 0
    others = (Choices.seeded((first + n) % TRIES) for n in range(TRIES))
    for chooser in (choose, *others):
        lower = about == "lower"
        arguments = _lower(chooser, area, kind) if lower else _upper(chooser, area, db, kind)
        if kind is None or any(argument.kind == kind for argument in arguments):
            value = sum(argument.value for argument in arguments)
            return Certificate(of, about, value, "drawn", arguments, db.facts_sha256, db.multi)
    raise InvalidArgumentError(
        f"No argument of kind {kind!r} for a bound of this side was found for these facts; omit "
        "`kind`, or draw another database."
    )


def _one_of(choose: Choices, name: str, value: T | None, allowed: Sequence[T]) -> T:
    if value is None:
        return choose.one(allowed)
    require_choice(f"`{name}`", value, allowed)
    return value


def _lower(choose: Choices, area: Area, kind: str | None) -> tuple[Argument, ...]:
    """Choose arguments about groups of components, one or a pair for each group."""
    groups = [area]
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


def _upper(choose: Choices, area: Area, db: Database, kind: str | None) -> tuple[Argument, ...]:
    """Cover some components whole, and sort the facts of the others into boxes and terms."""
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
    # a box may reach into unobserved fibers of any component
    boxes = partition(choose, area if area.effective else rest, mine)
    in_boxes, in_terms = _two(choose, boxes, kind)
    in_field = kind == "algebraic decomposition" or choose.chance(1, 3)
    if in_terms and in_field:
        split = choose.integer(1, len(in_terms))
        arguments.append(algebraic(choose, area, in_terms[:split]))
        in_terms = in_terms[split:]
    if in_terms:
        arguments.append(Decomposition(tuple(terms(choose, area, in_terms))))
    if in_boxes:
        box = np.full(area.tensor.shape, -1)
        for number, sides in enumerate(choose.order(in_boxes)):
            place = np.ix_(*sides)
            box[place] = np.where(mine[place], number, box[place])
        arguments.append(Boxes(box[tuple(db.triples.T)]))
    return tuple(choose.order(arguments))


def _two(choose: Choices, boxes: list[Sides], kind: str | None) -> tuple[list[Sides], list[Sides]]:
    """Split boxes into those that stay and those for terms, at least one of the kind asked for."""
    if not boxes:
        return [], []
    explicit = kind in ("decomposition", "algebraic decomposition")
    some = choose.some(boxes) if explicit or choose.chance(1, 2) else []
    if kind == "boxes" and len(some) == len(boxes):
        some = some[1:]
    return [box for box in boxes if box not in some], some
