"""`Recall`: what was asked, how a model answered, and which facts it knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import require_choice, shown
from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError

# of the templates of a fact: their mean, the best or the worst
Over: TypeAlias = Literal["mean", "best", "worst"]
_OVER = {"mean": "mean", "best": "max", "worst": "min"}
_FACT = ["subject", "predicate", "object"]


@briefly_shown
@dataclass(frozen=True)
class Recall:
    """Answers of a language model to questions about facts.

    Attributes
    ----------
    table : DataFrame
        One row per fact and template, as `capacity.recall.recall` found them, with the columns

        * ``fact``: number of the fact in `facts`; ``subject``, ``predicate``, ``object``: names of
          its terms, as `Database.name` writes them; ``template``;
        * ``score``: log-likelihood of the object; ``n_tokens``: number of its tokens;
        * ``rank``: 1 + the number of wrong candidates whose score is at least the object's;
        * ``probability``: softmax over the scores of the object and of the wrong candidates, so
          that other right answers of a multi-valued pair don't count against it;
        * ``probability_vocabulary``: exp(score), among all texts; for masked models it isn't a
          probability of the object;
        * ``margin``: score of the object minus that of the best wrong candidate;
        * ``answer``: best candidate; ``right``: whether it is a right answer of the pair;
        * ``greedy``: what the model writes in the object's place, with as many tokens as the object
          has, the first-ranked one at a time (a masked model: all at once); ``greedy_right``:
          whether it is the object;
        * ``n_right``: number of right answers of the pair; ``n_candidates``;
        * ``score_calibrated``, ``rank_calibrated``, ``probability_calibrated``,
          ``margin_calibrated``, ``answer_calibrated``, ``right_calibrated``: the same for scores
          minus their mean over the subjects of the predicate; missing if there is one subject.
    facts : Database
        The facts that were asked for.
    model : str
        Class of the model.
    method : str
        How answers were scored.
    notes : tuple of str
        What a reader has to know: templates that were made, predicates that weren't asked for,
        names that are ambiguous.
    n_continuations, n_scored : int
        Number of candidates of all questions, and of those that were scored.
    """

    table: pd.DataFrame = field(repr=False)
    facts: Database
    model: str
    method: str
    notes: tuple[str, ...]
    n_continuations: int
    n_scored: int

    def known(
        self,
        tau: float | Literal["argmax"] = "argmax",
        *,
        over: Over = "mean",
        calibrated: bool = False,
    ) -> Database:
        """Select the facts that the model knows.

        Parameters
        ----------
        tau : float or "argmax"
            Least probability of the object among candidates, between 0 and 1; or the object must
            have the rank 1.
        over : {"mean", "best", "worst"}
            What is compared with `tau` where a fact has several templates: the mean of its
            probabilities, the largest or the least. For ``argmax``: the rank must be 1 for at least
            half of the templates, for one, or for all.
        calibrated : bool
            Take the columns of calibrated scores.

        Returns
        -------
        Database
            A part of `facts`, which may be empty.

        Raises
        ------
        InvalidArgumentError
            If `tau` is out of range, or the answers lack what it needs.
        """
        rows = _known_rows(self.table, tau, over, calibrated=calibrated)
        if rows.any():
            return self.facts.subset(rows)
        none = np.empty((0, 3), np.int32)
        return Database.from_ids((), none, prefixes=self.facts.prefixes, allow_empty=True)

    def by_fact(self) -> pd.DataFrame:
        """Summarise the templates of each fact.

        Returns
        -------
        DataFrame
            One row per fact: ``n_templates``; mean, best and worst of ``probability``, and best and
            worst ``rank``; ``known``: share of templates for which the rank is 1; ``agreement``:
            share of templates with the most frequent answer.
        """
        return facts_in(self.table)

    def by_predicate(self, *, calibrated: bool = False) -> pd.DataFrame:
        """Summarise the facts of each predicate.

        Parameters
        ----------
        calibrated : bool
            Take the columns of calibrated scores.

        Returns
        -------
        DataFrame
            One row per predicate: number of ``facts``, of ``templates`` and of ``candidates``;
            ``known``, ``known_best`` and ``known_worst``: numbers of facts that `known` returns
            over templates; ``pairs`` and ``pairs_right``: number of pairs of a subject with the
            predicate, and mean over templates of the number of those whose answer is a right one;
            ``greedy_right``: share of rows whose greedy answer is the object.
        """
        return predicates_in(self.table, calibrated=calibrated)

    def by_template(self) -> pd.DataFrame:
        """Summarise the templates of each predicate.

        Returns
        -------
        DataFrame
            One row per predicate and template: number of ``facts`` and of ``candidates``;
            ``known`` and ``known_calibrated``: numbers of facts whose rank is 1 by the scores and
            by the calibrated ones, the latter missing where there are none; ``greedy_right``:
            number of facts whose greedy answer is the object; ``probability``: its mean, missing
            where only best answers were searched for.
        """
        return templates_in(self.table)


def facts_in(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise a table of answers by fact, as `Recall.by_fact` does.

    Parameters
    ----------
    table : DataFrame
        `Recall.table`, or one that was read from a file of it.
    """
    given = table.assign(known=(table["rank"] == 1).fillna(False))
    return given.groupby(["fact", *_FACT], sort=True, as_index=False).agg(
        n_templates=("template", "size"),
        probability_mean=("probability", "mean"),
        probability_best=("probability", "max"),
        probability_worst=("probability", "min"),
        rank_best=("rank", "min"),
        rank_worst=("rank", "max"),
        known=("known", "mean"),
        agreement=("answer", lambda of: of.value_counts(normalize=True).iloc[0]),
    )


def predicates_in(table: pd.DataFrame, *, calibrated: bool = False) -> pd.DataFrame:
    """Summarise a table of answers by predicate, as `Recall.by_predicate` does.

    Parameters
    ----------
    table : DataFrame
        `Recall.table`, or one that was read from a file of it.
    calibrated : bool
        Take the columns of calibrated scores.
    """
    right = "right_calibrated" if calibrated else "right"
    over: dict[str, Over] = {"known": "mean", "known_best": "best", "known_worst": "worst"}
    known = {
        name: _known_rows(table, "argmax", how, calibrated=calibrated) for name, how in over.items()
    }
    rows: list[dict[str, Any]] = []
    for predicate, of in table.groupby("predicate", sort=False):
        facts = of["fact"].unique()
        pairs = of.drop_duplicates(["subject", "template"])
        n_templates = of["template"].nunique()
        rows.append({
            "predicate": predicate,
            "facts": len(facts),
            "templates": n_templates,
            "candidates": int(of["n_candidates"].iloc[0]),
            **{name: int(rows_known[facts].sum()) for name, rows_known in known.items()},
            "pairs": len(pairs) // n_templates,
            "pairs_right": float(pairs[right].fillna(False).sum()) / n_templates,
            "greedy_right": float(of["greedy_right"].mean()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def templates_in(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise a table of answers by template, as `Recall.by_template` does.

    Parameters
    ----------
    table : DataFrame
        `Recall.table`, or one that was read from a file of it.
    """
    first = (table["rank"] == 1).fillna(False)
    has_calibrated = table["rank_calibrated"].notna()
    given = table.assign(
        known=first.astype(int),
        known_calibrated=(table["rank_calibrated"] == 1).astype("Float64").where(has_calibrated),
        greedy_right=table["greedy_right"].astype(int),
        probability=table["probability"].astype(float),
    )
    return given.groupby(["predicate", "template"], sort=False, as_index=False).agg(
        facts=("fact", "size"),
        candidates=("n_candidates", "first"),
        known=("known", "sum"),
        known_calibrated=("known_calibrated", lambda of: of.sum(min_count=1)),
        greedy_right=("greedy_right", "sum"),
        probability=("probability", "mean"),
    )


def _known_rows(
    table: pd.DataFrame, tau: float | Literal["argmax"], over: Over, *, calibrated: bool
) -> NDArray[np.bool_]:
    require_choice("`over`", over, _OVER)
    end = "_calibrated" if calibrated else ""
    if tau == "argmax":
        values, least = (table[f"rank{end}"] == 1).fillna(False).astype(float), 0.5
    elif not isinstance(tau, int | float) or not 0 < tau < 1:
        raise InvalidArgumentError(
            "`tau` must be a probability between 0 and 1, or 'argmax' for the best answer; got "
            f"{shown(tau)}."
        )
    else:
        values, least = table[f"probability{end}"].astype(float), float(tau)
    needs = table["probability_calibrated" if calibrated else "probability"]
    if needs.isna().any() and (calibrated or tau != "argmax"):
        raise InvalidArgumentError(
            "`known` must have the scores of all candidates for a probability, and those of "
            "several subjects for calibrated scores; they are missing. Ask with answers='all', "
            "or omit `tau` and `calibrated`."
        )
    of_facts = values.groupby(table["fact"]).agg(_OVER[over])
    return of_facts.to_numpy() >= least
