"""Options of tables: form, form of cells, columns; checked before a file is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from capacity.checks import require_choice, shown
from capacity.database.arity import LEAST, MOST, require_arity
from capacity.errors import InvalidArgumentError

TableForm: TypeAlias = Literal["long", "wide", "n3"]
TableTerms: TypeAlias = Literal["label", "n3"]
Columns: TypeAlias = Sequence[str | int]


@dataclass(frozen=True)
class TableOptions:
    """Form, cells and columns of a table; None where it is to be recognised.

    Attributes
    ----------
    wide : bool or None
        Whether the first column holds subjects, and each other column the values of a property.
    terms : {'label', 'n3'} or None
        Form of the cells.
    arity : int
        Number of columns of the facts.
    columns : sequence of str or int, or None
        Columns to read, by the names in the header, or by their positions from 0.
    split : str or None
        What separates the values of a cell of objects that holds several.
    """

    wide: bool | None = None
    terms: TableTerms | None = None
    arity: int = 3
    columns: tuple[str | int, ...] | None = None
    split: str | None = None


def table_options(
    table: TableForm | None = None,
    terms: TableTerms | None = None,
    arity: int | None = None,
    columns: Columns | None = None,
    split: str | None = None,
) -> TableOptions:
    """Check the options of a table.

    Raises
    ------
    InvalidArgumentError
        For an unknown form of the table or of its cells, two that exclude each other, columns that
        aren't names or positions, each once, or an arity that isn't their number, or isn't 3 in a
        wide table; for a `split` that is no text, or of N-Triples terms.

    Examples
    --------
    >>> table_options("n3")
    TableOptions(wide=False, terms='n3', arity=3, columns=None, split=None)
    """
    if table is not None:
        require_choice("`table`", table, ("long", "wide", "n3"))
    check_terms(terms)
    if table == "n3" and terms == "label":
        raise InvalidArgumentError(
            "`table` = 'n3' is a table of N-Triples terms, and `terms` = 'label' one of labels. "
            "Pass one of them."
        )
    _check_split(split, is_n3="n3" in (table, terms))
    if table == "wide" and arity not in (None, 3):
        raise InvalidArgumentError(
            f"The facts of a wide table are triples, so that `arity` must be 3; got "
            f"{shown(arity)}. Omit it."
        )
    chosen = None if columns is None else _names(columns)
    if table == "wide":
        return TableOptions(True, terms, 3, chosen, split)
    long = None if table is None else False
    cells: TableTerms | None = "label" if table == "long" and terms is None else terms
    if table == "n3":
        cells = "n3"
    return TableOptions(long, cells, _arity_of(arity, chosen), chosen, split)


def _check_split(split: object, *, is_n3: bool) -> None:
    """Refuse a separator that is no text, and one within N-Triples terms."""
    if split is None:
        return
    if not isinstance(split, str) or not split:
        raise InvalidArgumentError(
            "`split` must be what is between the values of a cell, such as ','; got "
            f"{shown(split)}."
        )
    if is_n3:
        raise InvalidArgumentError(
            "`split` is about cells of plain labels, and not of N-Triples terms. Omit it, or pass "
            'terms="label".'
        )


def check_terms(terms: object) -> None:
    """Raise an InvalidArgumentError unless `terms` is ``label``, ``n3`` or None."""
    if terms not in (None, "label", "n3"):
        raise InvalidArgumentError(f"`terms` must be 'label' or 'n3'; got {terms!r:.60}.")


def _arity_of(arity: int | None, columns: tuple[str | int, ...] | None) -> int:
    """Number of columns that a user asks for; 3 by default."""
    if columns is None:
        return 3 if arity is None else require_arity(arity)
    if arity is not None and arity != len(columns):
        raise InvalidArgumentError(
            f"`arity` must be the number of `columns`, {len(columns)}; got {shown(arity)}. Omit it."
        )
    return len(columns)


def _names(columns: object) -> tuple[str | int, ...]:
    names = [] if isinstance(columns, str) or not isinstance(columns, Sequence) else list(columns)
    plain = all(isinstance(one, str | int) and not isinstance(one, bool) for one in names)
    if not plain or len(set(names)) < len(names) or not LEAST <= len(names) <= MOST:
        raise InvalidArgumentError(
            f"`columns` must list from {LEAST} to {MOST} names of columns, each once, the object's "
            f"last; got {shown(columns)}."
        )
    return tuple(names)
