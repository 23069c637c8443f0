"""Conversion of tables of schema 2 to the current columns.

Schema 2 wrote ``accuracy_0.95``, had only the four sizes of a layer's configuration, held a recipe
as one text that included engine and dtype, and called the engine "padded", which is no more,
"graph". Folders of schema 2 are not changed; tables that are read from them have the current
columns.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import current_name
from capacity.layer.model.config import LayerConfig
from capacity.layer.run.recipe import Recipe
from capacity.sweep.storage.row_schema import RUNS_SCHEMA, layer_columns, recipe_columns
from capacity.sweep.storage.schema_3 import keys_of_recipe, of_one_start

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
