"""Verdicts of ``capacity verify`` in words, and the ends that they prove together."""

from __future__ import annotations

from typing import Any


def verdict_in_words(row: dict[str, Any], selection: dict[str, Any] | None) -> str:
    """Describe a verdict in one line: the bound, its facts, and whether it is proved."""
    if "model" in row:
        ends = "none" if row["lower"] is None else f"{row['lower']} to {row['upper']}"
        if row["upper"] is None and row["lower"] is not None:
            ends = f"at least {row['lower']}"
        what = f"dimension of {row['model']} for {row['task']}"
        bound = f"{what}, subjects and objects {whose(row['shared'])}: {ends}"
    else:
        words = f"{'border ' * row.get('border', False)}{row['quantity'].replace('_', ' ')}"
        over = f" over {row['field']}" if "field" in row else ""
        bound = f"{row['side']} bound {row['value']} of the {words}{over}"
    sources = row.get("cited")
    by = f" by a published theorem ({', '.join(sources)})" if sources else ""
    verdict = f"proved{by}" if row["proved"] else f"not proved, {row['reason']}"
    if "entries" in row:
        return f"{bound}, for the tensor of {row['entries']:,} entries: {verdict}"
    all_ = row["facts"] == row["of"]
    facts = f"all {row['of']:,}" if all_ else f"{row['facts']:,} of the file's {row['of']:,}"
    under = "their tensor" if row["multi"] is None else f"multi={row['multi']}"
    if selection is not None:
        under += f"; selection: {_selected(selection)}"
    return f"{bound}, for {facts} facts ({under}): {verdict}"


def _selected(selection: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
        for name, value in selection["options"].items()
    )


def proved_ends(rows: list[dict[str, Any]]) -> tuple[int | None, int | None]:
    """Return the best proved bounds of the rank, if all are about the same facts and one field."""
    of_rank = [row for row in rows if row["quantity"] == "rank" and row["proved"]]
    about = {tuple(row.get(key) for key in ("multi", "field", "border")) for row in of_rank}
    if len(about) > 1:
        return None, None
    lower = [row["value"] for row in of_rank if row["side"] == "lower"]
    upper = [row["value"] for row in of_rank if row["side"] == "upper"]
    return max(lower, default=None), min(upper, default=None)


def whose(shared: bool) -> str:
    """Describe the entities of a dimension: shared by subjects and objects, or not."""
    return "shared" if shared else "not shared"
