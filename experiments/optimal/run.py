"""A catalogue of small bilinear maps, with both ends of each rank: which schemes are optimal.

    python -m experiments.optimal.run --run     (under an hour on two cores)
    python -m experiments.optimal.run --plot
    python -m experiments.optimal.export FOLDER

Catalogues of schemes have upper ends alone. Here each tensor has the certified interval of its rank
over the real numbers, which `standard` finds from a published scheme where there is one, with the
certificates of both ends. These, or a search of `quick`, also bound the rank over the rational and
the complex numbers, and the border rank. A scheme is *proved optimal* if both ends meet. `export`
writes certificates and schemes into files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, WIDTH
from capacity.progress import bar
from capacity.rank import (
    Certificate,
    Field,
    RankInterval,
    rank_interval,
    read_decomposition,
    verify,
    verify_decomposition,
)
from capacity.tensor import SparseTensor, named_tensor
from experiments.common.harness import Tables, main, rows_of
from experiments.optimal.catalogue import (
    families,
    known_of,
    scheme_of,
    source_of,
    structured_products,
)

# the number of small tensors of which the tests compute one
SMOKE = 9
FIELDS: dict[Field, str] = {"Q": "rational", "C": "complex"}


def run(smoke: bool) -> Tables:
    """The table of all tensors."""
    names = [name for family in families().values() for name in family]
    # small ones for the tests
    chosen = (
        [name for name in names if named_tensor(name).n_entries < 9][::SMOKE] if smoke else names
    )
    with bar() as tell:
        rows = rows_of("optimal", row_of, chosen, tell, in_process=smoke, cost=_size)
    return {"tensors": pd.DataFrame(rows)}


def _size(name: str) -> float:
    return float(named_tensor(name).n_entries)


def row_of(name: str) -> dict[str, Any]:
    """The row of a tensor: its interval, what proves it, where it holds, and what is published."""
    tensor, scheme, known = named_tensor(name), scheme_of(name), known_of(name)
    published = None if scheme is None else read_decomposition(scheme, tensor)
    if published is not None and not verify_decomposition(tensor, published).proved:
        raise ValueError(f"{scheme} is no scheme for {name}.")
    begun = time.process_time()
    interval = rank_interval(tensor)
    effort = "quick"
    if not interval.closed:
        start: Any = published
        if name.startswith("laderman:"):
            start = _products_of(name)
        interval = rank_interval(tensor, effort="standard", start=start)
        effort = "standard"
    return {
        "name": name,
        "shape": "x".join(map(str, tensor.shape)),
        "entries": tensor.n_entries,
        "lower": interval.lower,
        "upper": interval.upper,
        **_elsewhere(interval, tensor),
        "lower_by": interval.certificates.lower.by,
        "upper_by": interval.certificates.upper.by,
        "cited": "; ".join(interval.cited),
        "effort": effort,
        "seconds": time.process_time() - begun,
        "published_upper": None if published is None else published.rank,
        "published_by": None if scheme is None else source_of(scheme),
        "known_lower": None if known is None else known.lower,
        "known_upper": None if known is None else known.upper,
        "known_by": None if known is None else known.source,
        **{f"{side}_certificate": json.dumps(end.to_dict(), separators=(",", ":"))
           for side, end in zip(("lower", "upper"), interval.certificates, strict=True)},
    }  # fmt: skip


def _elsewhere(interval: RankInterval, tensor: SparseTensor) -> dict[str, int]:
    """Both ends over other fields, and of the border rank, by these proofs or by `quick`."""
    ends: dict[str, int] = {}
    others = {word: (interval.over(field), rank_interval(tensor, field=field))
              for field, word in FIELDS.items()}  # fmt: skip
    others["border"] = interval.border, rank_interval(tensor, border=True)
    for word, (implied, searched) in others.items():
        ends[f"{word}_lower"] = max(implied.lower, searched.lower)
        ends[f"{word}_upper"] = min(implied.upper, searched.upper)
    return ends


def _products_of(name: str) -> list[Any]:
    """The products whose sum a part of Laderman's algorithm is, as factors."""
    terms = [named_tensor(f"laderman:{number}") for number in name.partition(":")[2].split(",")]
    factors = [rank_interval(term).decomposition().matrices for term in terms]
    return [np.hstack([of[mode] for of in factors]) for mode in range(3)]


def certificates_of(row: Mapping[Any, Any]) -> tuple[Certificate, Certificate]:
    """The certificates of both ends of a row."""
    lower, upper = (
        Certificate.from_dict(json.loads(row[f"{side}_certificate"])) for side in ("lower", "upper")
    )
    return lower, upper


def check(row: Mapping[Any, Any]) -> bool:
    """Verify both certificates of a row."""
    return bool(verify(certificates_of(row), named_tensor(row["name"])))


def numbers(tables: Tables) -> dict[str, Any]:
    """Counts by family, and the rows of the page."""
    table = tables["tensors"].set_index("name")
    of = {name: family for family, names in families().items() for name in names}
    table["family"] = [of[name] for name in table.index]
    table["closed"] = table.lower == table.upper
    # a published scheme is proved optimal if the lower end is its number of terms
    table["optimal"] = table.lower == table.published_upper
    published = table[table.published_upper.notna()]
    cited = table[table.closed & (table.cited != "")]
    return {
        "tensors": len(table),
        "closed": int(table.closed.sum()),
        "closed_by_citation": len(cited),
        "schemes": len(published),
        "schemes_optimal": int(published.optimal.sum()),
        "shorter_than_published": int((published.upper < published.published_upper).sum()),
        "closed_over_complex": int((table.complex_lower == table.complex_upper).sum()),
        "border_closed": int((table.border_lower == table.border_upper).sum()),
        "cpu_minutes": float(table.seconds.sum() / 60),
        "families": {
            family: {"tensors": len(rows), "closed": int(rows.closed.sum())}
            for family, rows in table.groupby("family", sort=False)
        },
        "rows": {str(name): _shown(row) for name, row in table.iterrows()},
    }


def _shown(row: pd.Series[Any]) -> dict[str, Any]:
    """Return the cells of a tensor on the page."""
    both = {f"{word}": [int(row[f"{word}_lower"]), int(row[f"{word}_upper"])]
            for word in (*FIELDS.values(), "border")}  # fmt: skip
    return {
        "family": row.family,
        "shape": row["shape"],
        "same": ", ".join(f"`{name}`" for name in structured_products().get(str(row.name), ())),
        "real": [int(row.lower), int(row.upper)],
        **both,
        "by": [row.lower_by, row.upper_by],
        "cited": row.cited,
        "published": None if pd.isna(row.published_upper) else int(row.published_upper),
        "published_by": row.published_by,
        "optimal": bool(row.optimal),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """How many tensors of each family have a known rank."""
    table = pd.DataFrame(found["families"]).T.iloc[::-1]
    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    axes = figure.subplots()
    axes.barh(table.index, table.closed, color=COLOURS[0], label="rank known")
    axes.barh(table.index, table.tensors - table.closed, left=table.closed, color=COLOURS[1],
              label="open")  # fmt: skip
    axes.set_xlabel("tensors")
    axes.set_title("tensors whose rank is known")
    axes.legend(frameon=False)
    return {"families": figure}


if __name__ == "__main__":
    main("optimal", run, numbers, plot)
