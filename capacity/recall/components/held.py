"""Tables of logits over subjects and candidates: facts that they hold, and their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import require_integer
from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.evaluator.columns import threshold_column
from capacity.evaluator.laws.size_law import HeldSize, held_size
from capacity.layer.model.config import LayerConfig, layer_rank_assumed
from capacity.layer.recall import check_tau
from capacity.recall.components.judging import brought, calibrated, log_probabilities
from capacity.recall.components.prompts import Prompts

# a table of fewer terms holds nearly all facts if it holds this share of them
NEARLY = 0.95


@briefly_shown
@dataclass(frozen=True, eq=False)
class HeldTable:
    """Logits that a component writes after the prompts of one predicate by one template.

    Attributes
    ----------
    prompts : Prompts
        The prompts.
    read : str
        What was read: ``attention``, ``subject``, ``embeddings`` or ``feed_forward``.
    logits : (n_prompts, n_tokens)
        Logits of the candidates' first tokens.
    """

    prompts: Prompts
    read: str
    logits: NDArray[np.floating]

    @cached_property
    def calibrated(self) -> NDArray[np.floating]:
        """Logits minus their mean over subjects; themselves if there is one subject."""
        logits = self.logits.astype(np.float64)
        return calibrated(logits) if len(logits) > 1 else logits

    @cached_property
    def _svd(self) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]:
        return np.linalg.svd(self.calibrated, full_matrices=False)

    @property
    def rank(self) -> int:
        """Numerical rank of the calibrated logits: of a head at most d_head_vo."""
        s = self._svd[1]
        least = s[0] * max(self.logits.shape) * np.finfo(self.logits.dtype).eps
        return int((s > least).sum())

    def of_rank(self, r: int) -> NDArray[np.floating]:
        """Return the sum of the r largest terms of the calibrated logits' SVD."""
        u, s, v = self._svd
        return (u[:, :r] * s[:r]) @ v[:r]

    def is_held(self, logits: NDArray[np.floating] | None = None) -> NDArray[np.bool_]:
        """Mark the facts whose object alone is the best of the candidates, shape (n_facts,)."""
        return brought(self.calibrated if logits is None else logits, self.prompts)

    def share(self, logits: NDArray[np.floating], tau: float) -> float:
        """Return the share of the facts whose object has a probability of at least tau."""
        return float((log_probabilities(logits, self.prompts) >= np.log(tau)).mean())

    @cached_property
    def shares_by_rank(self) -> NDArray[np.float64]:
        """Share of the facts that the r largest terms hold, for r from 1 to the rank."""
        ranks = range(1, self.rank + 1)
        return np.array([self.is_held(self.of_rank(r)).mean() for r in ranks])

    @property
    def n_directions(self) -> int:
        """Least r from which on the r largest terms hold 95 % of what all of them hold."""
        enough = self.shares_by_rank >= NEARLY * self.is_held().mean()
        few = np.flatnonzero(~enough)
        return min(int(few[-1]) + 2 if len(few) else 1, self.rank)


@briefly_shown
@dataclass(frozen=True, eq=False)
class HeldTables:
    """Facts that a component of a language model holds: tables of logits by predicate and template.

    Attributes
    ----------
    tables : tuple of HeldTable
        For each predicate and template, one by what was read: of heads ``attention``, ``subject``
        and ``embeddings`` (`head_table`), else ``feed_forward``.
    facts : Database
        The facts that were asked for.
    component : str
        Where it is.
    shape : LayerConfig or None
        A plain attention layer of the same sizes; None for a feed-forward.
    notes : tuple of str
        What a reader has to know.
    """

    tables: tuple[HeldTable, ...] = field(repr=False)
    facts: Database
    component: str
    shape: LayerConfig | None
    notes: tuple[str, ...]

    @property
    def rank_assumed(self) -> int | None:
        """d_model + n_heads d_head_vo, Wong 2025, equation (9); None for a feed-forward."""
        return None if self.shape is None else layer_rank_assumed(self.shape)

    @property
    def size_by_law(self) -> HeldSize | None:
        """Number of triples that a layer of this shape holds by the law of small layers.

        `capacity.evaluator.held_size` predicts it; real heads are beyond what it was fitted to.
        """
        return None if self.shape is None else held_size(self.shape)

    def logits(self, predicate: str, read: str | None = None) -> pd.DataFrame:
        """Return the first table of a predicate, with subjects as index and candidates as columns.

        Parameters
        ----------
        predicate : str
            Name of the predicate.
        read : str, optional
            What was read; by default what the model attended to.
        """
        one = next(
            t for t in self.tables
            if t.prompts.predicate == predicate and read in (None, t.read)
        )  # fmt: skip
        return pd.DataFrame(one.logits, list(one.prompts.subjects), list(one.prompts.texts))

    def summary(self, tau: float = 0.95) -> pd.DataFrame:
        """Summarise the tables.

        Parameters
        ----------
        tau : float
            Least probability of the object, strictly between 0.5 and 1.

        Returns
        -------
        DataFrame
            One row per predicate, template and ``read``: numbers of ``facts`` and ``candidates``;
            ``chance``, 1 / candidates; ``accuracy``, the share of the facts whose object has the
            largest logit, and ``accuracy_calibrated``, the same for logits minus their mean over
            subjects; ``p95``, the share with a probability of at least tau, calibrated; ``held``,
            the number of facts that the calibrated logits hold; ``rank``, their numerical rank; and
            ``directions``, the number of terms of their SVD that hold 95 % of ``held``.
        """
        check_tau(tau)
        rows = []
        for one in self.tables:
            held = one.is_held()
            rows.append({
                "predicate": one.prompts.predicate,
                "template": one.prompts.template.text,
                "read": one.read,
                "facts": len(held),
                "candidates": len(one.prompts.tokens),
                "chance": 1 / len(one.prompts.tokens),
                "accuracy": float(one.is_held(one.logits).mean()),
                "accuracy_calibrated": float(held.mean()),
                threshold_column(tau): one.share(one.calibrated, tau),
                "held": int(held.sum()),
                "rank": one.rank,
                "directions": one.n_directions,
            })  # fmt: skip
        return pd.DataFrame(rows)

    def by_rank(self, ranks: Sequence[int] | None = None, tau: float = 0.95) -> pd.DataFrame:
        """Tabulate what the largest terms of each table hold.

        Parameters
        ----------
        ranks : sequence of int, optional
            Numbers of terms; by default 1, 2, 4, ..., and the rank.
        tau : float
            Least probability of the object, strictly between 0.5 and 1.

        Returns
        -------
        DataFrame
            One row per predicate, template, ``read`` and number of terms ``r``, with
            ``accuracy_calibrated`` and, such as ``p95``, the share with a probability of tau.
        """
        check_tau(tau)
        asked_for = None if ranks is None else [require_integer("ranks", r) for r in ranks]
        rows = []
        for one in self.tables:
            powers = [2**i for i in range(one.rank.bit_length())]
            for r in asked_for or sorted({*powers, one.rank}):
                logits = one.of_rank(r)
                rows.append({
                    "predicate": one.prompts.predicate,
                    "template": one.prompts.template.text,
                    "read": one.read,
                    "r": r,
                    "accuracy_calibrated": float(one.is_held(logits).mean()),
                    threshold_column(tau): one.share(logits, tau),
                })  # fmt: skip
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        """Return a sentence for each predicate: how many facts, in how many directions."""
        said = [
            f"{self.component} holds {int(one.is_held().sum())} of {len(one.prompts.facts)} facts "
            f"of {one.prompts.predicate} in {one.n_directions} directions (rank {one.rank}, "
            f"{len(one.prompts.tokens)} candidates)."
            for one in self.tables
            if one.read in ("attention", "feed_forward")
        ]
        law = self.size_by_law
        if law is not None:
            beyond = [one for one in law.outside if one != "triples"]
            predicted = (
                f"isn't fitted to such sizes ({', '.join(beyond)})" if beyond else f"predicts {law}"
            )
            said.append(
                f"A layer of this shape has the rank {self.rank_assumed} by equation (9), an "
                f"assumption; the law of small layers {predicted}."
            )
        return "\n".join(said)
