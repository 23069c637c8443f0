"""Databases with a known structure, at fixed numbers of subjects, predicates, objects and triples.

Every pair of a subject k and a predicate q has an object; what varies is the share of the cells
(k, q) that a rule determines, `copies`. The other cells are *free*: uniform on the objects. So the
number of triples stays, and rank, effective rank and description length vary.

===============  ==================================================================================
``same``         a predicate repeats the object of the predicate before it
``relabelled``   as ``same``, but under a random permutation of the objects for each predicate
``classes``      the object is that of the subject's class, drawn for each (class, predicate)
``group``        the cell is that of an isotope of the multiplication table of a random group
``latin``        the cell is that of a random Latin square
``pairs``        a predicate repeats objects of the predicate before it, at other subjects: the
                 control, repetition without structure across slices
===============  ==================================================================================

``same``, ``relabelled`` and ``pairs`` have the same number of free cells at the same `copies`, and
``pairs`` deals each predicate's repeated objects as ``same`` does, to subjects drawn at random.

References
----------
L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076, Remark 2.3: layers can exploit
patterns across slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import MAX_SIZE, Seed, generator, require_choice, require_integer, shown
from capacity.database.facts import Database
from capacity.database.made.multiplication_tables import (
    LARGEST_SQUARE,
    groups_of_order,
    isotope,
    random_latin_square,
)
from capacity.database.terms.term import label
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.theory.algebras import LARGEST_TABLE


@briefly_shown
@dataclass(frozen=True)
class Rule:
    """Origin of the object of each cell: a table, or a free draw that cells may share.

    Attributes
    ----------
    draw : ndarray of int64, shape (n_subjects, n_predicates)
        Number of the free draw that the cell has, or -1 for a cell of the table. Cells with the
        same draw repeat each other.
    table : ndarray of int64, shape (n_subjects, n_predicates)
        Objects of the cells without a draw.
    names : ndarray of int64, shape (n_predicates, n_objects)
        Permutation for each predicate: the object that a draw means in its cells.
    """

    draw: NDArray[np.int64]
    table: NDArray[np.int64]
    names: NDArray[np.int64]


def filled(rng: np.random.Generator, rule: Rule, n_objects: int) -> NDArray[np.int64] | None:
    """Draw objects for the cells of a rule, all of which occur.

    The draws are uniform. Then each object that doesn't occur, in random order, is given to a cell
    drawn at random, with all that repeat it, if fewer objects are missing afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the draws.
    rule : Rule
        The rule.
    n_objects : int
        Number of objects.

    Returns
    -------
    ndarray of int64, shape (n_subjects, n_predicates), or None
        An object for each cell; None if some object can be given to no cell.

    Examples
    --------
    >>> twice = Rule(np.array([[0, 0], [1, 1]]), np.zeros((2, 2), int), np.array([[0, 1], [0, 1]]))
    >>> sorted(filled(np.random.default_rng(0), twice, 2).tolist())
    [[0, 0], [1, 1]]
    """
    numbers, draw = np.unique(rule.draw.ravel(), return_inverse=True)
    predicate = np.tile(np.arange(len(rule.names)), len(rule.draw))
    drawn = rng.integers(n_objects, size=len(numbers))
    cells = rule.names[predicate, drawn[draw]]
    fixed = rule.draw.ravel() < 0
    cells[fixed] = rule.table.ravel()[fixed]
    # cells of each draw side by side
    order = np.argsort(draw, kind="stable")
    ends = np.cumsum(np.bincount(draw))
    used = np.bincount(cells, minlength=n_objects)
    for missing in rng.permutation(np.flatnonzero(used == 0)):
        # one that was given before may have brought this one along
        for cell in rng.permutation(np.flatnonzero(~fixed)) if not used[missing] else ():
            those = order[ends[draw[cell] - 1] if draw[cell] else 0 : ends[draw[cell]]]
            value = np.flatnonzero(rule.names[predicate[cell]] == missing)[0]
            new = rule.names[predicate[those], value]
            counts = used - np.bincount(cells[those], minlength=n_objects)
            counts += np.bincount(new, minlength=n_objects)
            if (counts == 0).sum() < (used == 0).sum():
                cells[those], used = new, counts
                break
    return cells.reshape(rule.draw.shape) if used.all() else None


StructureKind: TypeAlias = Literal["same", "relabelled", "classes", "group", "latin", "pairs"]
STRUCTURE_KINDS: tuple[StructureKind, ...] = get_args(StructureKind)
# whole draws before sizes are refused
DRAWS = 100


def structured_database(
    seed: Seed,
    kind: StructureKind,
    copies: float,
    *,
    subjects: int = 12,
    predicates: int = 12,
    objects: int = 12,
    own_objects: bool = False,
    classes: int | None = None,
) -> Database:
    """Draw a functional database in which a rule determines a share of the cells.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Seed of the draw.
    kind : StructureKind
        The rule. ``group`` and ``latin`` need equal numbers of subjects, predicates and objects.
    copies : float
        Share c from 0 to 1 of what the rule determines. ``same``, ``relabelled`` and ``pairs``:
        exactly round(c n_subjects) subjects, drawn at random for each predicate but the first.
        ``classes``: that number for each predicate. ``group`` and ``latin``: exactly
        round(c n_subjects n_predicates) cells, drawn at random.
    subjects, predicates, objects : int
        Numbers of each. All objects occur: each one that a draw lacks is given to a free cell,
        drawn at random among those (with all cells that repeat it) that no other object needs.
    own_objects : bool
        Whether each predicate has n_objects / n_predicates objects of its own, for ``relabelled``
        alone. Each predicate uses its objects as equally often as possible at every share: the
        subjects that don't copy permute the objects that they would copy.
    classes : int, optional
        Number of classes of subjects of about equal size, for ``classes`` alone; by default a
        quarter of the number of subjects.

    Returns
    -------
    Database
        Over the labels s0, s1, ... (subjects), p0, ... (predicates), o0, ... (objects), with
        n_subjects n_predicates triples.

    Raises
    ------
    InvalidArgumentError
        For an unknown kind, a share outside [0, 1], sizes that the kind can't have, or sizes for
        which none of 100 draws had all objects.

    Notes
    -----
    With `own_objects` the rank is n_objects at every share. Each object has one predicate, so its
    slice has one column that isn't zero, and rank one: n_objects simple tensors suffice. No pair
    has two objects, so the rows of the unfolding by objects have disjoint supports and are
    independent: fewer don't.

    Examples
    --------
    >>> structured_database(0, "same", 0.5)
    Database(144 triples: 12 subjects x 12 predicates x 12 objects, 36 tokens; functional)
    >>> db = structured_database(0, "same", 1, subjects=4, predicates=2, objects=3)
    >>> all(db(k, "p0") == db(k, "p1") for k in db.subjects)
    True
    """
    require_choice("`kind`", kind, STRUCTURE_KINDS)
    share = _share(copies)
    shape = tuple(
        require_integer(name, value)
        for name, value in
        [("subjects", subjects), ("predicates", predicates), ("objects", objects)]
    )  # fmt: skip
    _check_sizes(kind, shape, own_objects)
    if classes is not None and kind != "classes":
        raise InvalidArgumentError(
            f"`classes` is an option of the kind `classes` alone; got {shown(classes)} for "
            f"`{kind}`. Omit it."
        )
    n_classes = max(1, shape[0] // 4)
    if classes is not None:
        n_classes = require_integer("classes", classes, most=shape[0])
    rng = generator(seed)
    if own_objects:
        return _database(_with_own_objects(rng, share, shape), shape)
    for _ in range(DRAWS):
        cells = filled(rng, _rule(rng, kind, share, shape, n_classes), shape[2])
        if cells is not None:
            return _database(cells, shape)
    raise InvalidArgumentError(
        f"`objects` must be a number of objects that can all occur in a draw; got {shape[2]}, and "
        f"none of {DRAWS} draws of the kind `{kind}` with `copies` = {share:g} had all of them. "
        "Take fewer objects, more subjects, or a smaller share."
    )


def _share(copies: object) -> float:
    is_number = isinstance(copies, int | float | np.number) and not isinstance(copies, bool)
    share = float(copies) if is_number else -1.0  # type: ignore[arg-type]
    if not 0 <= share <= 1:
        raise InvalidArgumentError(
            f"`copies` must be a number from 0 to 1, a share of the cells; got {shown(copies)}."
        )
    return share


def _check_sizes(kind: StructureKind, shape: tuple[int, ...], own_objects: bool) -> None:
    """Refuse sizes that a kind can't have; the message has what to do.

    Raises
    ------
    InvalidArgumentError
        With the sizes.
    """
    n_subjects, n_predicates, n_objects = shape
    said = f"got {n_subjects}, {n_predicates} and {n_objects}"
    if n_subjects * n_predicates > MAX_SIZE or n_objects > n_subjects * n_predicates:
        raise InvalidArgumentError(
            f"`subjects` times `predicates` must be at most {MAX_SIZE:,} triples and at least "
            f"`objects`, for each object occurs; {said}."
        )
    largest = {"group": LARGEST_TABLE, "latin": LARGEST_SQUARE}.get(kind)
    if largest is not None and not n_subjects == n_predicates == n_objects <= largest:
        raise InvalidArgumentError(
            f"`subjects`, `predicates` and `objects` must be equal and at most {largest:,} for the "
            f"kind `{kind}`, a square table; {said}."
        )
    if not own_objects:
        return
    if kind != "relabelled":
        raise InvalidArgumentError(
            "`own_objects` needs the kind `relabelled`: predicates that share no object can only "
            f"copy under other names; got `{kind}`."
        )
    if n_objects % n_predicates:
        raise InvalidArgumentError(
            "`objects` must be a multiple of `predicates` where each predicate has objects of its "
            f"own; got {n_objects} and {n_predicates}."
        )


def _with_own_objects(
    rng: np.random.Generator, share: float, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    n_subjects, n_predicates, n_objects = shape
    own = n_objects // n_predicates
    cells = np.empty((n_subjects, n_predicates), np.int64)
    # no object of the first predicate is used more than once more often than another
    before = rng.permutation(own)[rng.permutation(n_subjects) % own]
    for q in range(n_predicates):
        if q:
            free = rng.permutation(n_subjects)[round(share * n_subjects) :]
            before[free] = before[rng.permutation(free)]
            before = rng.permutation(own)[before]
        cells[:, q] = q * own + before
    return cells


def _rule(
    rng: np.random.Generator,
    kind: StructureKind,
    share: float,
    shape: tuple[int, ...],
    n_classes: int,
) -> Rule:
    """Draw what determines each cell: a table, or a free draw that it may share with others."""
    n_subjects, n_predicates, n_objects = shape
    draw = np.arange(n_subjects * n_predicates).reshape(n_predicates, n_subjects).T.copy()
    table = np.zeros_like(draw)
    names = np.tile(np.arange(n_objects), (n_predicates, 1))
    bound = round(share * n_subjects)
    if kind in ("group", "latin"):
        if kind == "group":
            groups = list(groups_of_order(n_subjects).values())
            table = isotope(groups[rng.integers(len(groups))], rng)
        else:
            table = random_latin_square(rng, n_subjects)
        draw.flat[rng.permutation(draw.size)[: round(share * draw.size)]] = -1
    elif kind == "classes":
        of_class = rng.permutation(n_subjects) % n_classes
        for q in range(n_predicates):
            members = rng.permutation(n_subjects)[:bound]
            # numbers of free draws that no free cell has
            draw[members, q] = draw.size + q * n_classes + of_class[members]
    else:
        for q in range(1, n_predicates):
            members = rng.permutation(n_subjects)[:bound]
            givers = rng.permutation(n_subjects)[:bound] if kind == "pairs" else members
            draw[members, q] = draw[givers, q - 1]
        if kind == "relabelled":
            # permutations from each predicate to the next are independent and uniform exactly if
            # those from one common naming to each predicate are
            names = rng.permuted(names, axis=1)
    return Rule(draw, table, names)


def _database(cells: NDArray[np.int64], shape: tuple[int, ...]) -> Database:
    n_subjects, n_predicates, _ = shape
    names = [f"{role}{i}" for role, n in zip("spo", shape, strict=True) for i in range(n)]
    pairs = np.indices((n_subjects, n_predicates)).reshape(2, -1)
    rows = np.stack([pairs[0], n_subjects + pairs[1], n_subjects + n_predicates + cells.ravel()], 1)
    return Database.from_ids([label(name) for name in names], rows, multi="error")
