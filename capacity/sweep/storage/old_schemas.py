"""Conversion of tables of schemas 2 and 3 to the current columns.

Schema 3 knew neither frozen weights nor several starts: each of its runs had one.

Schema 2 wrote ``accuracy_0.95``, had only the four sizes of a layer's configuration, held a recipe
as one text that included engine and dtype, and called the engine "padded", which is no more,
"graph". Folders of either are not changed; tables that are read from them have the current columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import current_name
from capacity.layer.model.config import LayerConfig
from capacity.layer.run.recipe import NOT_TRIED, ONE_START, Recipe
from capacity.sweep.storage.row_schema import (
    RUNS_SCHEMA,
    layer_columns,
    recipe_columns,
    schema_like,
    starts_columns,
)

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


_text, _int, _real = pa.string(), pa.int64(), pa.float64()
SCHEMA_2 = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for kind, names in [
            (_text, "run_key database_id layer_id"),
            (_int, "seed n_subjects n_predicates n_objects n_tokens n_triples database_rank_bound "
                   "database_rank_lower database_rank_upper d_model n_heads d_head_qk d_head_vo "
                   "n_parameters n_embedding_parameters layer_rank_bound layer_rank_upper"),
            (_text, "recipe engine variant dtype"),
            (_int, "epochs"),
            (_real, "loss"),
            (_text, "status"),
            (_real, "tied accuracy_argmax accuracy_argmax_paper accuracy_0.50 accuracy_0.75 "
                    "accuracy_0.95 accuracy_0.99 margin scale_0.75 scale_0.95 scale_0.99"),
        ]
        for name in names.split()
    ]
)  # fmt: skip
_SIZES = ("d_model", "n_heads", "d_head_qk", "d_head_vo")
_ENGINES = {"graph": "padded"}
_COMPUTED_BY = ("engine", "dtype")


def from_schema_2(table: pa.Table) -> pa.Table:
    """Convert a table of schema 2 to the current columns.

    Parameters
    ----------
    table : Table
        Table with the columns of `SCHEMA_2`.

    Returns
    -------
    Table
        The same rows with the columns of `RUNS_SCHEMA`.

    Raises
    ------
    InvalidArgumentError
        If the text of a recipe isn't one, or the sizes of a layer disagree with its name.
    """
    recipes = {text: _recipe(text) for text in table["recipe"].unique().to_pylist()}
    rows = [_row(row, recipes[row["recipe"]]) for row in table.to_pylist()]
    return pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)


def _recipe(text: str) -> Recipe:
    said = keys_of_recipe(text)
    return Recipe(**{name: value for name, value in said.items() if name not in _COMPUTED_BY})


def _row(row: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    sizes = {name: row[name] for name in _SIZES}
    # the only option of layers that schema 2 could hold
    layer = LayerConfig(**sizes, scale=row["layer_id"].endswith("-scale"))
    if layer.name != row["layer_id"]:
        raise InvalidArgumentError(f"the sizes of layer {row['layer_id']:.60} disagree with it")
    return {
        **{current_name(name): value for name, value in row.items()},
        **layer_columns(layer),
        **recipe_columns(recipe),
        **of_one_start(row["accuracy_0.95"]),
        "engine": _ENGINES.get(row["engine"], row["engine"]),
    }
