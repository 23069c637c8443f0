"""Columns of the runs table, from the fields of layers and recipes and the thresholds of scores.

Every field of `LayerConfig` is a column of its own name, and every field of `Recipe` but ``zipf``
one that begins with ``recipe_``: ``epochs`` is the number of epochs done, ``recipe_epochs`` the
largest number allowed. ``recipe`` holds all fields in one text, to group by, with ``zipf`` where
facts have weights, so that tables without it keep their bytes. No name needs quotes in SQL.

A run has one row, however many starts it has: ``starts`` is the number asked for, ``starts_tried``
that of those trained, and ``share_of_starts`` the share of these that hold the database at
``held_at``. ``start`` is the number of the one that the columns from ``epochs`` to ``status`` and
the scores describe: the first that holds, or else the first of those that recall most facts.

One column can be null: ``layer_rank_upper``, for layers with norm, bias or positions, whose tensor
L isn't defined. In rows of unfinished shards, the ranks of the database are null, too.

A sweep of decoders has the fields of `DecoderConfig` in place of those of `LayerConfig`, with
``attention`` as a digit for each layer, then the numbers of weights of the heads, the MLPs and the
norms; ``layer_rank_bound`` is null, too, since equation (9) is about the paper's layer.

Schema 3 knew neither frozen weights nor several starts: each of its runs had one.

Schema 2 wrote ``accuracy_0.95``, had only the four sizes of a layer's configuration, held a recipe
as one text that included engine and dtype, and called the engine "padded", which is no more,
"graph". Folders of either are not changed; tables that are read from them have the current columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from functools import cache
from typing import Any, TypeAlias, get_type_hints

import pyarrow as pa

from capacity.errors import InvalidArgumentError
from capacity.evaluator.accuracy import TAUS
from capacity.evaluator.columns import accuracy_column, current_name, scale_column
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.model.config import AnyConfig, LayerConfig
from capacity.layer.run.recipe import NOT_TRIED, ONE_START, Recipe, Starts, TriedStarts

# of the rank of a run's database
RANK_COLUMNS: tuple[str, ...] = (
    "database_rank_bound",
    "database_rank_lower",
    "database_rank_upper",
)
_text, _int, _real, _bool = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TYPES = {bool: _bool, int: _int, float: _real}
_BEFORE_LAYER = (
    (_text, "run_key database_id layer_id"),
    (_int, "seed n_subjects n_predicates n_objects n_tokens n_triples"),
    (_int, " ".join(RANK_COLUMNS)),
)
_BEFORE_RECIPE = (
    (_int, "n_parameters n_embedding_parameters layer_rank_bound layer_rank_upper"),
    (_text, "recipe"),
)
_BEFORE_SCORES = (
    (_text, "engine variant dtype"),
    (_int, "epochs"),
    (_real, "loss"),
    (_text, "status"),
    (_int, "starts"),
    (_text, "until held_at"),
    (_int, "start starts_tried"),
    (_bool, "held_by_any"),
    (_real, "share_of_starts"),
)
# of layers, and of decoders
_NULLABLE = {
    LayerConfig: ("layer_rank_upper",),
    DecoderConfig: ("layer_rank_bound", "layer_rank_upper"),
}
_PARTS = ("heads", "mlp", "norms")
_COUNTS = {LayerConfig: (), DecoderConfig: tuple(f"n_parameters_{part}" for part in _PARTS)}
Kind: TypeAlias = type[LayerConfig] | type[DecoderConfig]
_ACCURACY = re.compile(r"accuracy_p([0-9]{2,17})")
Row = Mapping[str, Any]


def scored_columns(taus: Iterable[float] = TAUS) -> tuple[str, ...]:
    """Names of the columns that score a trained layer; they are NaN where training diverged."""
    taus = tuple(taus)
    return (
        "tied",
        "accuracy_argmax",
        "accuracy_argmax_paper",
        accuracy_column(0.5),
        *map(accuracy_column, taus),
        "margin",
        *map(scale_column, taus),
    )


def layer_columns(layer: AnyConfig) -> dict[str, Any]:
    """Columns of a layer's configuration, one per field; of a decoder, also of its parts."""
    columns = {each.name: getattr(layer, each.name) for each in fields(layer)}
    if isinstance(layer, LayerConfig):
        return columns
    columns["attention"] = "".join("01"[has] for has in layer.attention_of_layers)
    columns["extra"] = " ".join(layer.extra)
    counts = layer.parameters_by_part(1)
    return columns | {f"n_parameters_{part}": counts[part] for part in _PARTS}


def recipe_columns(recipe: Recipe) -> dict[str, Any]:
    """Columns of a recipe: one text of all its fields, and one column per field."""
    text = json.dumps(recipe.to_dict(), sort_keys=True)
    each = {f"recipe_{field.name}": getattr(recipe, field.name) for field in _columns_of(Recipe)}
    return {"recipe": text, **each, "recipe_frozen": " ".join(recipe.frozen)}


def starts_columns(asked: Starts, tried: TriedStarts) -> dict[str, Any]:
    """Columns of the starts of a run: how many were asked for, and what came of them."""
    return {
        "starts": asked.most,
        "until": asked.until,
        "held_at": str(asked.held_at),
        "start": tried.start,
        "starts_tried": tried.tried,
        "held_by_any": tried.held > 0,
        "share_of_starts": tried.share,
    }


@cache
def runs_schema(taus: tuple[float, ...] = TAUS, layers: Kind = LayerConfig) -> pa.Schema:
    """Return the schema of the runs table, for runs that are scored at some thresholds.

    Parameters
    ----------
    taus : tuple of float
        Thresholds in rising order, each strictly between 0.5 and 1.
    layers : class
        `LayerConfig`, or `DecoderConfig` for a sweep of decoders.

    Returns
    -------
    Schema
        Names and types of the columns, in order.

    Examples
    --------
    >>> "accuracy_p999" in runs_schema((0.75, 0.95, 0.99, 0.999)).names
    True
    """
    columns: list[tuple[pa.DataType, str]] = [
        *_listed(_BEFORE_LAYER),
        *_of_fields(layers),
        *((_int, name) for name in _COUNTS[layers]),
        *_listed(_BEFORE_RECIPE),
        *_of_fields(Recipe, "recipe_"),
        *_listed(_BEFORE_SCORES),
        *((_real, name) for name in scored_columns(taus)),
    ]
    null = _NULLABLE[layers]
    return pa.schema([pa.field(name, kind, nullable=name in null) for kind, name in columns])


def unfinished_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema of runs for rows whose databases may not be bounded yet."""
    return pa.schema([f.with_nullable(f.nullable or f.name in RANK_COLUMNS) for f in schema])


def schema_like(names: Iterable[str]) -> pa.Schema:
    """Return the current schema for the thresholds that column names contain."""
    names = tuple(names)
    found = (_ACCURACY.fullmatch(name) for name in names)
    taus = sorted({float(f"0.{column[1]}") for column in found if column} - {0.5})
    layers = DecoderConfig if "n_layers" in names else LayerConfig
    return runs_schema(tuple(tau for tau in taus if 0.5 < tau < 1), layers)


def _listed(groups: Iterable[tuple[pa.DataType, str]]) -> list[tuple[pa.DataType, str]]:
    return [(kind, name) for kind, names in groups for name in names.split()]


def _of_fields(kind: type, prefix: str = "") -> list[tuple[pa.DataType, str]]:
    """Types and names of the columns of a dataclass; choices among texts are texts."""
    hints = get_type_hints(kind)
    return [(_TYPES.get(hints[each.name], _text), prefix + each.name) for each in _columns_of(kind)]


def _columns_of(kind: type) -> list[Field[Any]]:
    """Fields that have a column."""
    return [each for each in fields(kind) if (kind, each.name) != (Recipe, "zipf")]


RUNS_SCHEMA = runs_schema()


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
