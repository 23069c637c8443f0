"""Databases that layers written by hand provably hold, with weights in short number formats.

    python -m experiments.bits.formats --run     (four minutes on two cores)
    python -m experiments.bits.formats --plot

Both constructions of `capacity.layer.by_hand` for all 548 databases of the paper's
experiment and for tables of 20 to 4,000 facts about 2 to 4,000 objects. Their weights are rounded
to a format; then `certified_recall` proves or refutes each fact, as a function of real numbers, at
three tau.

A layer is tried as the construction writes it, and *retuned*: with each of eight scales c, by way
of the tau that is asked for, and with powers of two moved between neighbouring matrices, which
changes no logit and keeps large weights within a format. Of the scales that which gives the
largest least probability in float64 is certified. What is refuted is the layer, and not the format:
another layer might hold the same facts in it. A run goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity import Database
from capacity.evaluator import CertifiedRecall, certified_recall, stored_bits
from capacity.layer import AttentionLayer, NumberFormat, store_in_query_key, store_in_value_output
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from experiments.bits.retuned import balanced, best, rounded
from experiments.common.conclusions import with_mean
from experiments.common.drawing import REFERENCE, estimates, percent
from experiments.common.harness import PLAIN, Tables, main, paper_plan, rows_of

Writer = Callable[..., AttentionLayer]
TAUS = (0.51, 0.95, 0.99)
WAYS: dict[str, Writer] = {"query-key": store_in_query_key, "value-output": store_in_value_output}
# bits, significant bits, and the largest number of objects of tables that are tried
FORMATS: dict[NumberFormat, tuple[int, int, int]] = {
    "float8_e5m2": (8, 3, 32),
    "float8_e4m3fn": (8, 4, 32),
    "bfloat16": (16, 8, 128),
    "float16": (16, 11, 320),
    "float32": (32, 24, 4000),
}
SCALES = (*TAUS, *(1 - 10.0**-k for k in (3, 4, 6, 8, 10)))
# facts -> predicates; each table has its number of objects, all of which occur
PREDICATES = {20: 4, 100: 5, 500: 10, 2000: 20, 4000: 40}
OBJECTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 50, 64, 80, 100, 128, 160, 200,
           256, 320, 500, 1000, 2000)  # fmt: skip
LARGEST = [(4000, 3000), (4000, 4000)]
VERDICTS = ("proved", "refuted", "undecided", "too large")


def run(smoke: bool) -> Tables:
    """A row for each database, construction, format and tau."""
    # the longest first
    tables = LARGEST + [(n, v) for n in PREDICATES for v in OBJECTS if v <= n <= 2000]
    papers, tables = ([0, 1, 2], [(20, 2), (20, 4)]) if smoke else (list(range(548)), tables)
    with bar() as tell:
        found = {
            "paper": rows_of("formats-paper", of_paper, papers, tell, in_process=smoke),
            "tables": rows_of("formats-tables", of_table, tables, tell, in_process=smoke),
        }
    return {
        key: pd.DataFrame([row for one in of for row in one["rows"]]) for key, of in found.items()
    }


def of_paper(number: int) -> dict[str, Any]:
    """The rows of one of the paper's databases."""
    name, db = _papers()[number]
    return {"rows": _rows(name, db, FORMATS)}


@cache
def _papers() -> list[tuple[str, Database]]:
    plan = paper_plan(0, PLAIN)
    return list({run.database_id: run.database for run in plan.runs}.items())


def of_table(size: tuple[int, int]) -> dict[str, Any]:
    """The rows of a table with a number of facts and of objects."""
    facts, objects = size
    tried: list[NumberFormat] = [
        format for format, (_, _, most) in FORMATS.items() if objects <= most
    ]
    return {"rows": _rows(f"table-{facts}-{objects}", table(facts, objects), tried)}


def table(facts: int, objects: int) -> Database:
    """A table whose cells are drawn evenly from its objects, each of which occurs."""
    rng = np.random.default_rng([facts, objects])
    cells = rng.integers(objects, size=facts)
    cells[rng.permutation(facts)[:objects]] = np.arange(objects)
    n = PREDICATES[facts]
    return Database.from_triples(
        [(f"s{i // n}", f"p{i % n}", f"o{v}") for i, v in enumerate(cells.tolist())]
    )


def _rows(name: str, db: Database, formats: Iterable[NumberFormat]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for way, write in WAYS.items():
        written = {tau: write(db, tau) for tau in SCALES}
        even = [balanced(layer) for layer in written.values()]
        bits = stored_bits(written[0.99], db)
        for format in formats:
            width, digits, _ = FORMATS[format]
            retuned = _Retuned(even, format, db)
            for tau in TAUS:
                layer = rounded(written[tau], format)
                first = _verdict(None if layer is None else certified_recall(layer, db, tau))
                again = first if first["verdict"] == "proved" else _verdict(retuned(tau))
                rows.append(
                    {
                        "database_id": name, "way": way, "format": format, "tau": str(tau),
                        "n_triples": db.n_triples, "n_objects": len(db.object_ids),
                        "n_tokens": db.n_tokens, "digits": digits,
                        "n_weights": bits.n_all_parameters,
                        "bits_of_weights": width * bits.n_all_parameters,
                        "bits_content": bits.content, "as_written": first["verdict"], **again,
                    }
                )  # fmt: skip
    return rows


@dataclass
class _Retuned:
    """The best of some layers in a format, which is certified once for all tau."""

    layers: Sequence[AttentionLayer]
    format: NumberFormat
    db: Database

    @cached_property
    def _layer(self) -> AttentionLayer | None:
        return best(self.layers, self.format, self.db)

    @cached_property
    def _recall(self) -> CertifiedRecall | None:
        return None if self._layer is None else certified_recall(self._layer, self.db, TAUS[0])

    def __call__(self, tau: float) -> CertifiedRecall | None:
        found = None if self._recall is None else self._recall.at(tau)
        if found is None or self._layer is None or not found.n_undecided:
            return found
        return certified_recall(self._layer, self.db, tau)


def _verdict(found: CertifiedRecall | None) -> dict[str, Any]:
    if found is None:
        return {"verdict": "too large", "n_proved": 0, "n_refuted": 0, "n_undecided": 0,
                "least_margin": None}  # fmt: skip
    refuted = "refuted" if found.n_refuted else "undecided"
    return {
        "verdict": "proved" if found.memorises else refuted, "n_proved": found.n_proved,
        "n_refuted": found.n_refuted, "n_undecided": found.n_undecided,
        "least_margin": found.least_margin,
    }  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares of the paper's databases, and sizes of tables, that are provably held."""
    return {
        "paper": _by(tables["paper"], _shares),
        "tables": _by(tables["tables"], _sizes),
        "facts": {key: int(of["n_triples"].max()) for key, of in tables.items()},
        "undecided_facts": int(sum(of["n_undecided"].sum() for of in tables.values())),
    }


def _by(table: pd.DataFrame, what: Callable[[pd.DataFrame], dict[str, Any]]) -> dict[str, Any]:
    """A conclusion for each construction, format and tau."""
    found: dict[str, Any] = {}
    for way in WAYS:
        for format in FORMATS:
            some = table[(table["way"] == way) & (table["format"] == format)]
            found.setdefault(way, {})[format] = {
                tau: what(part) for tau, part in some.groupby("tau")
            }
    return found


def _shares(part: pd.DataFrame) -> dict[str, Any]:
    held = part[part["verdict"] == "proved"]
    return {
        "as_written": with_mean(part["as_written"] == "proved", part[["database_id"]]),
        "retuned": with_mean(part["verdict"] == "proved", part[["database_id"]]),
        **{kind.replace(" ", "_"): int((part["verdict"] == kind).sum()) for kind in VERDICTS},
        "most_objects_proved": _whole(held["n_objects"].max()),
        # bits of a database to a bit of the weights
        "content_a_bit": None if held.empty else
        float((held["bits_content"] / held["bits_of_weights"]).median()),
    }  # fmt: skip


def _sizes(part: pd.DataFrame) -> dict[str, Any]:
    """Largest and smallest tables, first by objects and then by facts."""
    ordered = part.sort_values(["n_objects", "n_triples"])
    proved, refuted = (ordered[ordered["verdict"] == kind] for kind in ("proved", "refuted"))
    fails = ordered.loc[ordered["verdict"] != "proved", "n_objects"].min()
    below = ordered[~(ordered["n_objects"] >= fails)]
    return {
        "all_proved_up_to_objects": _whole(below["n_objects"].max()),
        "largest_proved": None if proved.empty else _size(proved.iloc[-1]),
        "smallest_refuted": None if refuted.empty else _size(refuted.iloc[0]),
        "most_objects_tried": int(ordered["n_objects"].max()),
        **{kind.replace(" ", "_"): int((part["verdict"] == kind).sum()) for kind in VERDICTS},
    }


def _size(row: pd.Series) -> dict[str, int]:
    return {"facts": int(row["n_triples"]), "objects": int(row["n_objects"])}


def _whole(number: float) -> int | None:
    return None if pd.isna(number) else int(number)


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares of the paper's databases by format; objects of tables by significant bits."""
    figure = Figure(figsize=(WIDTH, 3.9))
    left, right = figure.subplots(1, 2)
    for number, way in enumerate(WAYS):
        for tau, shift, hollow in (("0.51", -0.1, True), ("0.99", 0.1, False)):
            place = [i + shift + 0.08 * (number - 0.5) for i in range(len(FORMATS))]
            estimates(
                left, place, [found["paper"][way][each][tau]["retuned"] for each in FORMATS],
                colour=COLOURS[number], marker=MARKERS[number], hollow=hollow,
                label=f"{way}, tau = {tau}",
            )  # fmt: skip
            _objects(right, found["tables"][way], tau, number, hollow)
    n = tables["paper"]["database_id"].nunique()
    half, full = (
        percent(found["paper"]["query-key"][each]["0.99"]["retuned"])
        for each in ("float16", "float32")
    )
    left.set_xticks(range(len(FORMATS)), [each.replace("float8_", "fp8\n") for each in FORMATS])
    left.set(
        title=f"Query-key at tau = 0.99: {full} of {n} databases\nprovably held in float32, {half} "
        "in float16",
        ylabel="share of databases provably held", ylim=(-0.04, 1.06),
    )  # fmt: skip
    digits = np.array([digits for _, digits, _ in FORMATS.values()])
    right.plot(digits, 2.0 ** (digits / 2), "--", color=REFERENCE, linewidth=1,
               label="2^(significant bits / 2)")  # fmt: skip
    right.set_yscale("log", base=2)
    right.yaxis.set_major_formatter("{x:g}")
    right.set_xticks(digits, [str(each) for each in digits])
    right.set(
        title="Objects up to which every table tried is held:\nabout 2^(significant bits / 2)",
        xlabel="significant bits of the format", ylabel="objects",
    )  # fmt: skip
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return {"held": figure}


def _objects(axes: Axes, of: dict[str, Any], tau: str, number: int, hollow: bool) -> None:
    """The objects up to which every table is held, for each format that holds some."""
    reached = [
        (digits, of[each][tau]["all_proved_up_to_objects"])
        for each, (_, digits, _) in FORMATS.items()
        if tau in of[each] and of[each][tau]["all_proved_up_to_objects"]
    ]
    x, y = np.array(reached, dtype=np.float64).reshape(-1, 2).T
    axes.plot(
        x + 0.3 * (number - 0.5), y, MARKERS[number], color=COLOURS[number],
        markerfacecolor="white" if hollow else COLOURS[number],
        label=f"{list(WAYS)[number]}, tau = {tau}",
    )  # fmt: skip


if __name__ == "__main__":
    main("formats", run, numbers, plot)
