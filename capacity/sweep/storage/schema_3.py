"""Conversion of tables of schema 3 to the current columns.

Schema 3 knew neither frozen weights nor several starts: each of its runs had one. Folders of it are
not changed; tables that are read from them have the current columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from capacity.errors import InvalidArgumentError
from capacity.layer.run.recipe import Recipe
from capacity.layer.run.starts import NOT_TRIED, ONE_START
from capacity.sweep.storage.row_schema import recipe_columns, schema_like, starts_columns

_FROZEN = "recipe_frozen"


def of_one_start(recalled: float) -> dict[str, Any]:
    """Columns of the starts of a run of one, which recalls a share of the facts at 0.95."""
    return starts_columns(ONE_START, NOT_TRIED.then(recalled))


def schema_3(names: Iterable[str]) -> pa.Schema:
    """Return the schema 3 for the thresholds that column names contain."""
    new = {_FROZEN, *of_one_start(1.0)}
    return pa.schema([each for each in schema_like(names) if each.name not in new])


def from_schema_3(table: pa.Table) -> pa.Table:
    """Convert a table of schema 3 to the current columns.

    Parameters
    ----------
    table : Table
        Table with the columns of `schema_3`.

    Returns
    -------
    Table
        The same rows with the current columns, without metadata.

    Raises
    ------
    InvalidArgumentError
        If the text of a recipe isn't one.
    """
    starts = [of_one_start(recalled) for recalled in table["accuracy_p95"].to_pylist()]
    recipes = {
        text: recipe_columns(Recipe(**keys_of_recipe(text)))
        for text in table["recipe"].unique().to_pylist()
    }
    columns: dict[str, Any] = {
        **{name: table[name] for name in table.column_names},
        **{name: [one[name] for one in starts] for name in of_one_start(1.0)},
        **{
            name: [recipes[text][name] for text in table["recipe"].to_pylist()]
            for name in ("recipe", _FROZEN)
        },
    }
    schema = schema_like(table.column_names)
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def keys_of_recipe(text: str) -> dict[str, Any]:
    """Read the text of a recipe.

    Raises
    ------
    InvalidArgumentError
        If it isn't a table of keys.
    """
    said = json.loads(text)
    if not isinstance(said, dict):
        raise InvalidArgumentError("a recipe is not a table of keys")
    return said
