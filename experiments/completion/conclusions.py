"""Conclusions on completion: artefacts, what foretells test facts, and the token "unknown"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.common.conclusions import slopes_of
from experiments.completion.foretold import (
    KEY,
    RANKS,
    certified,
    completion,
    mean_of,
    measures_of,
    ranks_known,
)

CLAIMED = (5, 20)
AT = ("argmax", "p95")


def conclusions(runs: pd.DataFrame, splits: pd.DataFrame) -> dict[str, Any]:
    """Answers to the five questions, and the tables behind them."""
    splits = splits.assign(**measures_of(splits))
    joined = runs.merge(splits, on=KEY)
    joined = joined[joined["facts_argmax"].notna()].reset_index(drop=True)
    stopped = joined[joined["until"] == "recalled"]
    plain = stopped[stopped["taught"] == "facts"]
    found = {
        "layers": len(runs), "diverged": len(runs) - len(joined),
        "databases": int(splits["database_id"].nunique()),
        "artefacts": _by_block(plain, _artefacts),
        "size": _by_block(plain, _slopes),
        "longer": _longer(joined),
        "ranks": {str(block): ranks_known(of) for block, of in splits.groupby("block")},
        "completion": _by_block(recalled(plain), completion),
        "certified": certified(recalled(plain)),
        "unknown": _by_block(_beside_unsure(stopped), _unknown),
        "facts_lost_to_unknown": _by_block(stopped, _lost),
    }  # fmt: skip
    return {"hypotheses": hypotheses(found), **found}


def hypotheses(found: dict[str, Any]) -> dict[str, Any]:
    """In how many comparisons the whole interval is above a hypothesis's boundary, or below it."""
    paper = found["artefacts"].get("paper", {})
    regressions = [of for kinds in found["completion"].values() for of in kinds.values()]
    unknown = [of for kinds in found["unknown"].values() for of in kinds.values()]
    constant = [one for one in found["certified"]["rows"] if one["added"] == "nothing"]
    return {
        "1: artefacts a triple": {
            f"{kind}, {among}, {at}": {
                **of[among][at]["ratio"], "claimed": list(CLAIMED),
                "most_there_can_be": of[among]["most_there_can_be"]["mean"],
            }
            for kind, of in paper.items() for among in ("roles", "tokens") for at in AT
        },
        "2: slope on log2 parameters, zero": {
            name: _sides([kinds[name] for of in found["size"].values()
                          for kinds in of.values() if name in kinds])
            for name in ("all, argmax", "all, p95", "recalled, argmax", "recalled, p95")
        },
        "3: change after all is recalled, zero": _sides(
            [found["longer"][among][at] for among in ("roles", "tokens") for at in AT]
        ),
        "4: effect of what is added to the rank, zero": _sides(
            [of["alone"][RANKS[0]] for of in regressions if RANKS[0] in of.get("alone", {})]
        ),
        "4: gain beside rivals, zero": _sides(
            [of["gain_of_rank_beside_rivals"] for of in regressions
             if of.get("gain_of_rank_beside_rivals")]
        ),
        "4: test facts less chance where nothing is added": _sides(
            [one["above_chance"] for one in constant]
        ),
        **{
            f"5: {name}": _sides([of["all"][column] for of in unknown], boundary)
            for name, column, boundary in (
                ("area against facts, one half", "auroc_unknown_facts", 0.5),
                ("area against test facts, one half", "auroc_unknown_test", 0.5),
                ("better than being unsure, facts", "better_than_unsure_facts", 0.0),
                ("better than being unsure, test", "better_than_unsure_test", 0.0),
            )
        },
    }  # fmt: skip


def _sides(of: list[dict[str, Any]], boundary: float = 0.0) -> dict[str, int]:
    ends = [one["interval"] for one in of if one["interval"] is not None]
    return {
        "above": sum(low > boundary for low, _ in ends),
        "below": sum(high < boundary for _, high in ends),
        "of": len(of),
    }


def recalled(runs: pd.DataFrame) -> pd.DataFrame:
    """The layers that recall all that they were taught, by argmax."""
    return runs[runs["facts_argmax"] == 1]


def _by_block(runs: pd.DataFrame, what: Any) -> dict[str, Any]:
    return {
        str(block): {str(kind): what(part) for kind, part in of.groupby("kind")}
        for block, of in runs.groupby("block")
    }


def _artefacts(part: pd.DataFrame) -> dict[str, Any]:
    sets = [among for among in ("roles", "tokens") if f"pairs_{among}" in part
            and part[f"pairs_{among}"].notna().all()]  # fmt: skip
    return {
        among: {
            "most_there_can_be": mean_of(part[f"pairs_{among}"] / part["n_facts"], part),
            **{
                at: {
                    "ratio": mean_of(_ratio(part, among, at), part),
                    "as_claimed": mean_of(_ratio(part, among, at).between(*CLAIMED), part),
                    # what the number of pairs doesn't decide
                    "of_the_pairs": mean_of(
                        part[f"artefacts_{among}_{at}"] / part[f"pairs_{among}"], part
                    ),
                    "by_layer": {
                        str(name): mean_of(_ratio(of, among, at), of)
                        for name, of in part.groupby("layer_id")
                    },
                }
                for at in ("argmax", "p50", "p75", "p95", "p99")
            },
        }
        for among in sets
    } | {"recalled": {str(name): mean_of(of["facts_argmax"] == 1, of)
                      for name, of in part.groupby("layer_id")}}  # fmt: skip


def _ratio(part: pd.DataFrame, among: str, at: str) -> pd.Series[float]:
    return part[f"artefacts_{among}_{at}"] / part["n_facts"]


def _slopes(part: pd.DataFrame) -> dict[str, Any]:
    """Change of the artefacts a triple for twice the parameters, within databases and shares."""
    found: dict[str, Any] = {}
    for name, of in (("all", part), ("recalled", recalled(part))):
        for at in AT:
            table = pd.DataFrame({
                "ratio": _ratio(of, "roles", at), "size": np.log2(of["n_all_parameters"]),
            })  # fmt: skip
            table -= table.groupby([of[key] for key in KEY]).transform("mean")
            table["database_id"] = of["database_id"]
            if table["size"].abs().max() > 0 and table["database_id"].nunique() > 2:
                slopes = slopes_of(table, "ratio ~ size - 1", ["size"], clusters=["database_id"])
                found[f"{name}, {at}"] = slopes["size"]
    return found


def _longer(runs: pd.DataFrame) -> dict[str, Any]:
    """Change of the artefacts a triple from the epoch at which all is recalled to the last."""
    last = runs[runs["until"] == "last epoch"]
    pairs = last.merge(
        recalled(runs[(runs["until"] == "recalled") & (runs["taught"] == "facts")]),
        on=[*KEY, "layer_id", "kind"], suffixes=("", "_before"),
    )  # fmt: skip
    # the others were at the last epoch already
    pairs = pairs[pairs["trained_for"] > pairs["trained_for_before"]]
    return {
        among: {
            at: mean_of(
                (pairs[f"artefacts_{among}_{at}"] - pairs[f"artefacts_{among}_{at}_before"])
                / pairs["n_facts"], pairs,
            )
            for at in AT
        }
        for among in ("roles", "tokens")
    } | {
        "test_facts_right": mean_of(
            (pairs["test_right"] - pairs["test_right_before"]) / pairs["n_test"], pairs
        )
    }  # fmt: skip


def _beside_unsure(runs: pd.DataFrame) -> pd.DataFrame:
    """Layers that were taught "unknown", with how unsure the same layers are that weren't."""
    unsure = [f"auroc_unsure_{against}" for against in ("facts", "test")]
    same = [*KEY, "layer_id", "kind"]
    plain = runs[runs["taught"] == "facts"]
    taught = runs[runs["taught"] == "unknown"].drop(columns=unsure)
    return taught.merge(plain[[*same, *unsure]], on=same)


def _unknown(part: pd.DataFrame) -> dict[str, Any]:
    """Areas under the curve, beside the hits at argmax, of all layers and those that recall all."""
    found: dict[str, Any] = {}
    for name, of in (("all", part), ("recalled", recalled(part))):
        columns = {
            **{f"auroc_{score}_{against}": of[f"auroc_{score}_{against}"]
               for score in ("unknown", "unsure") for against in ("facts", "test")},
            **{f"better_than_unsure_{against}":
               of[f"auroc_unknown_{against}"] - of[f"auroc_unsure_{against}"]
               for against in ("facts", "test")},
            **{f"said_to_{group}": of[f"unknown_said_to_{group}"]
               for group in ("facts", "test", "nothing")},
        }  # fmt: skip
        found[name] = {
            key: mean_of(values[values.notna()], of[values.notna()])
            for key, values in columns.items()
        }
    return found


def _lost(part: pd.DataFrame) -> dict[str, Any]:
    """Facts, and test facts, that are right with the token less those without it."""
    wide = part.pivot_table(
        index=[*KEY, "layer_id", "n_test"], columns="taught", values=["facts_argmax", "test_right"]
    ).dropna().reset_index()  # fmt: skip
    if not len(wide) or "unknown" not in wide["facts_argmax"]:
        return {}
    of = pd.DataFrame({"database_id": wide["database_id"]})
    return {
        "facts": mean_of(wide["facts_argmax"]["unknown"] - wide["facts_argmax"]["facts"], of),
        "test": mean_of(
            (wide["test_right"]["unknown"] - wide["test_right"]["facts"]) / wide["n_test"], of
        ),
    }
