"""Conclusions about what SmolLM2-135M knows, and the verdicts on its hypotheses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from capacity.evaluator import mean_interval
from experiments.common.conclusions import slopes_of, verdict

# predicates with several objects for a subject
MULTIPLE = ("neighbour",)
WITHIN, SHORT, KEPT, HALF = 0.05, 0.025, 0.8, 0.5
# layers of the model, of which the last third is late
N_LAYERS = 30
TERMS = {"log2_frequency": "H4", "n_tokens": "H5", "log10_population": "H6"}
FACT = ["store", "predicate", "subject", "object"]


def known_of(answers: pd.DataFrame, how: str) -> pd.DataFrame:
    """One row for each fact, with ``known``: first by at least half of the templates.

    Parameters
    ----------
    answers : DataFrame
        One row for each fact and template.
    how : {"plain", "calibrated"}
        By which scores.
    """
    rank = answers["rank" if how == "plain" else "rank_calibrated"]
    given = answers.assign(known=(rank == 1).astype(float))
    kept = [name for name in ("frequency", "population") if name in given]
    rows = given.groupby(FACT, sort=False, as_index=False).agg(
        known=("known", "mean"), n_tokens=("n_tokens", "first"),
        **{name: (name, "first") for name in kept},
    )  # fmt: skip
    return rows.assign(known=rows["known"] >= HALF)


def numbers(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Conclude which facts are known, their size, the components that bring them, and verdicts."""
    answers = tables["answers"]
    stores = {
        str(store): {str(q): of_predicate(part) for q, part in of.groupby("predicate", sort=False)}
        for store, of in answers.groupby("store", sort=False)
    }
    totals = {str(store): _total(of) for store, of in answers.groupby("store", sort=False)}
    parts = parts_of(tables["parts"])
    decides = what_decides(known_of(answers[answers["store"] == "countries"], "plain"))
    where = _where(tables)
    found = {
        "stores": stores, "totals": totals, "parts": parts, "decides": decides, **where,
        "off": float(tables["checks"]["off"].max()),
    }  # fmt: skip
    return {**found, "hypotheses": dict(_hypotheses(found))}


def share(values: pd.Series[Any], groups: pd.Series[Any]) -> dict[str, Any]:
    """A mean, and its interval over subjects."""
    if not len(values):
        return {"mean": None, "interval": None, "n": 0}
    v = values.astype(float)
    return {"mean": v.mean(), "interval": mean_interval(v, groups), "n": len(v)}


def of_predicate(rows: pd.DataFrame) -> dict[str, Any]:
    """Known facts of a predicate, and the right answers by template."""
    return {
        "facts": int(rows["object"].groupby(rows["subject"]).nunique().sum()),
        "candidates": int(rows["n_candidates"].iloc[0]),
        **{how: _known(rows, how) for how in ("plain", "calibrated")},
        "templates": {
            str(template): {
                "plain": float((of["rank"] == 1).mean()),
                "calibrated": float((of["rank_calibrated"] == 1).mean()),
                "greedy": float(of["greedy_right"].mean()),
                "probability": float(of["probability"].mean()),
            }
            for template, of in rows.groupby("template", sort=False)
        },
    }


def _known(rows: pd.DataFrame, how: str) -> dict[str, Any]:
    facts = known_of(rows, how)
    return share(facts["known"], facts["subject"])


def _total(rows: pd.DataFrame) -> dict[str, Any]:
    plain, calibrated = (known_of(rows, how) for how in ("plain", "calibrated"))
    more = calibrated["known"].astype(float) - plain["known"].astype(float)
    return {
        "subjects": rows["subject"].nunique(),
        "facts": len(plain),
        "plain": share(plain["known"], plain["subject"]),
        "calibrated": share(calibrated["known"], calibrated["subject"]),
        "calibrated_less_plain": share(more, plain["subject"]),
    }


def parts_of(table: pd.DataFrame) -> dict[str, Any]:
    """Measures of what is known beside random parts, by store, scores and match."""
    found: dict[str, Any] = {}
    for row in table.to_dict("records"):
        of = found.setdefault(row["store"], {}).setdefault(row["how"], {"known": row["n_known"]})
        of.setdefault(row["match"], {})[row["measure"]] = {
            "known": row["known"],
            "random": {"mean": row["mean"], "interval": [row["low"], row["high"]]},
            "ratio": row["known"] / row["mean"] if row["mean"] else None,
            "share_at_most": row["share_at_most"], "open": row["n_open"], "draws": row["draws"],
        }  # fmt: skip
    return found


def what_decides(facts: pd.DataFrame) -> dict[str, Any]:
    """Slopes of the log-odds that a fact is known."""
    shares = facts.groupby("predicate")["known"].transform("mean")
    some = facts[(shares > 0) & (shares < 1)].assign(
        known=lambda of: of["known"].astype(float),
        log2_frequency=lambda of: np.log2(of["frequency"]),
        log10_population=lambda of: np.log10(of["population"]),
    )
    formula = f"known ~ C(predicate) + {' + '.join(TERMS)}"
    return {
        "predicates": sorted(map(str, some["predicate"].unique())),
        **slopes_of(some, formula, TERMS, clusters=["subject"], logistic=True),
    }


def _where(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Conclude which parts of the logits heads and feed-forwards bring, and which are needed."""
    known = tables["largest"][tables["largest"]["known"].astype(bool)]
    late = known["layer"] >= N_LAYERS * 2 / 3
    return {
        "late": share(late, known["subject"]),
        "brings": {
            str(q): {
                "asked": int((tables["largest"]["predicate"] == q).sum()),
                "known": len(of),
                "layers": {str(a): int(n) for a, n in of["layer"].value_counts().items()},
                "heads": _heads(of),
            }
            for q, of in known.groupby("predicate", sort=False)
        },
        "components": {
            str(q): _components(of)
            for q, of in tables["components"].groupby("predicate", sort=False)
        },
        "held": [
            {key: row[key] for key in ("predicate", "place", "facts", "candidates", "held",
                                       "accuracy_calibrated", "p95", "rank", "directions",
                                       "rank_assumed")}
            for row in tables["held"].to_dict("records")
            if row["read"] in ("attention", "feed_forward")
        ],
        "sums": _sums(tables["sums"]),
        "ablated": [f"{row.layer}.{row.head}" for row in tables["ablated"].itertuples()],
        "ablation": {
            str(n): {
                str(q): {str(row["set"]): _kept(row) for row in part.to_dict("records")}
                for q, part in of.groupby("predicate", sort=False)
            }
            for n, of in tables["ablation"].groupby("n_heads")
        },
        "mean_attention": {
            str(q): {
                "all" if pd.isna(row["layer"]) else str(int(row["layer"])): _kept(row)
                for row in of.to_dict("records")
            }
            for q, of in tables["mean"].groupby("predicate", sort=False)
        },
    }  # fmt: skip


def _kept(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the share of facts that are kept, with its interval."""
    return {"mean": row["kept"], "interval": [row["low"], row["high"]], "n": row["n_facts"]}


def _heads(of: pd.DataFrame) -> dict[str, int]:
    """How many known facts have each head as their largest, the three most frequent."""
    names = of["layer"].astype(int).astype(str) + "." + of["head"].astype(int).astype(str)
    return {str(name): int(n) for name, n in names.value_counts().head(3).items()}


def _components(of: pd.DataFrame) -> dict[str, Any]:
    """The largest heads and feed-forwards by their mean part of known facts."""
    heads = of[of["component"] == "head"].nlargest(3, "part")
    forward = of[of["component"] == "feed_forward"]
    return {
        "heads": [
            {"head": f"{row.layer:.0f}.{row.head:.0f}", "part": row.part,
             "from_subject": row.from_subject, "from_predicate": row.from_predicate,
             "right_calibrated": row.right_calibrated}
            for row in heads.itertuples()
        ],
        "all_heads": of[of["component"] == "head"]["part"].sum(),
        "all_feed_forwards": forward["part"].sum(),
        "feed_forwards": [
            {"layer": f"{row.layer:.0f}", "part": row.part} for row in
            forward.nlargest(2, "part").itertuples()
        ],
    }  # fmt: skip


def _sums(table: pd.DataFrame) -> dict[str, Any]:
    """Shares of all facts that sums of components bring among the objects of all predicates."""
    return {
        str(name): {
            "right": share(of["right"], of["subject"]),
            "calibrated": share(of["right_calibrated"].astype(float), of["subject"]),
        }
        for name, of in table.groupby("sum", sort=False)
    }


def _hypotheses(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Verdicts by the rules that were fixed before the run."""
    of = found["parts"]["countries"].values()
    lengths = [each["answers"]["description_length"]["ratio"] for each in of]
    yield "H1", verdict(all(abs(ratio - 1) <= WITHIN for ratio in lengths))
    shorter = [each["predicate"]["description_length"]["share_at_most"] for each in of]
    yield "H2", verdict(all(one <= SHORT for one in shorter))
    yield "H3", _above(found["totals"]["countries"]["calibrated_less_plain"], 0)
    for term, name in TERMS.items():
        slope = found["decides"].get(term)
        sign = -1 if name == "H5" else 1
        ends = [np.nan] if slope is None else [sign * end for end in slope["interval"]]
        yield name, verdict(min(ends) > 0)
    largest = found["ablation"][max(found["ablation"], key=int)]["all"]
    yield "H7", verdict(largest["chosen"]["interval"][1] < largest["random"]["interval"][0])
    yield "H8", _above(found["late"], HALF)
    capitals = [row for row in found["held"] if row["predicate"] == "capital"]
    yield "H9", verdict(capitals[0]["held"] >= HALF * found["brings"]["capital"]["known"])
    yield "H10", _above(found["mean_attention"]["capital"]["all"], KEPT, equal=True)


def _above(one: dict[str, Any], least: float, *, equal: bool = False) -> str:
    """Return the verdict of an interval that must lie above a number."""
    low = one["interval"][0]
    return verdict(low >= least if equal else low > least)
