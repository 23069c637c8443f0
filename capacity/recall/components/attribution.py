"""`fact_attribution`: which components of a language model bring which facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import require_choice, require_integer
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.display import briefly_shown
from capacity.optional import needed_by
from capacity.progress import Progress, bar
from capacity.recall.components.judging import brought, calibrated, contrasted, runners_up
from capacity.recall.components.prompts import (
    PREDICATE,
    REST,
    SOURCES,
    SUBJECT,
    Asking,
    Prompts,
    prompts_of,
)
from capacity.recall.models import asked
from capacity.recall.questions import Candidates
from capacity.recall.templates import TemplatesLike

Contrast: TypeAlias = Literal["runner-up", "mean"]
_FACT = ["fact", "subject", "predicate", "object", "template"]
_PLACE = ["component", "layer", "head"]
_FROM = [f"from_{name}" for name in SOURCES]


@briefly_shown
@dataclass(frozen=True)
class FactAttribution:
    """Parts of the logits of facts' objects, by component and by source.

    Attributes
    ----------
    table : DataFrame
        One row per fact, template and component, with the columns

        * ``fact``: number of the fact in `facts`; ``subject``, ``predicate``, ``object``: names of
          its terms; ``template``;
        * ``component``: ``embedding``, ``head``, ``attention_bias`` (a layer's b_O),
          ``feed_forward``, ``mixers``, ``bias`` (of norms) or ``output_bias``; ``layer`` and
          ``head``: its place, missing where it has none;
        * ``part``: its part of the contrast; the sum over components is the model's;
        * ``from_subject``, ``from_predicate``, ``from_rest``: for heads, how much of that comes
          from the subject's tokens, from the other words of the template, and from special tokens;
        * ``right``: whether the component alone brings the fact: the object's logit is above those
          of all wrong candidates; ``right_calibrated``: the same for logits minus their mean over
          the subjects of the predicate, missing if there is one subject.
    sums : DataFrame
        One row per fact, template and sum of components, with ``part``, ``right`` and
        ``right_calibrated`` as in `table`. ``sum`` is ``model``, all of it; ``embedding``;
        ``heads``; ``subject``, ``predicate`` and ``rest``: what heads take from these tokens;
        ``subject + predicate``; ``feed_forward`` (with mixers); and ``biases``.
    facts : Database
        The facts that were asked for.
    model : str
        Class of the model.
    contrast : {"runner-up", "mean"}
        What is subtracted from the object's logit.
    off : float
        Largest distance of a sum of parts from the model's logit, as a share of the sum of
        absolute parts.
    notes : tuple of str
        What a reader has to know: numbers of candidates, and templates that were made.
    """

    table: pd.DataFrame = field(repr=False)
    sums: pd.DataFrame = field(repr=False)
    facts: Database
    model: str
    contrast: Contrast
    off: float
    notes: tuple[str, ...]

    @property
    def known(self) -> pd.DataFrame:
        """The facts and templates for which the model is right, one row each."""
        rows = self.sums[(self.sums["sum"] == "model") & self.sums["right"]]
        return rows[_FACT].reset_index(drop=True)

    def by_component(self, *, known: bool = True) -> pd.DataFrame:
        """Summarise the components, the largest mean part first.

        Parameters
        ----------
        known : bool
            Take the facts that the model knows alone.

        Returns
        -------
        DataFrame
            One row per predicate and component: mean ``part``, ``from_subject``,
            ``from_predicate`` and ``from_rest``; shares ``right`` and ``right_calibrated`` of the
            facts that it brings alone; ``n``, their number.
        """
        rows = self._chosen(self.table, known)
        keys = ["predicate", *_PLACE]
        found = rows.groupby(keys, sort=False, dropna=False, as_index=False).agg(
            **{name: (name, "mean") for name in ("part", *_FROM, "right", "right_calibrated")},
            n=("part", "size"),
        )
        return found.sort_values("part", ascending=False, ignore_index=True, kind="stable")

    def by_layer(self, *, known: bool = True) -> pd.DataFrame:
        """Sum the parts of each layer.

        Parameters
        ----------
        known : bool
            Take the facts that the model knows alone.

        Returns
        -------
        DataFrame
            One row per predicate and layer: the mean over facts of the summed parts of ``heads``,
            ``feed_forward`` (with mixers) and ``biases``, and ``from_subject``,
            ``from_predicate`` and ``from_rest`` of the heads.
        """
        rows = self._chosen(self.table, known)
        rows = rows[rows["layer"].notna()]
        kind = rows["component"].map(_KIND)
        n = rows.groupby("predicate")["fact"].agg(lambda of: len(rows.loc[of.index, _FACT]
                                                                 .drop_duplicates()))  # fmt: skip
        keys = [rows["predicate"], rows["layer"]]
        summed = rows["part"].groupby([*keys, kind]).sum().unstack().fillna(0.0)
        summed = summed.reindex(columns=["heads", "feed_forward", "biases"], fill_value=0.0)
        summed[_FROM] = rows[_FROM].groupby(keys).sum()
        return summed.div(n, axis=0, level="predicate").reset_index().rename_axis(columns=None)

    def by_sum(self, *, known: bool = True) -> pd.DataFrame:
        """Summarise what heads take from the subject, from the predicate, and from both.

        Parameters
        ----------
        known : bool
            Take the facts that the model knows alone.

        Returns
        -------
        DataFrame
            One row per predicate and sum of components: mean ``part``, and shares ``right`` and
            ``right_calibrated`` of the facts that it brings alone.
        """
        rows = self._chosen(self.sums, known)
        return rows.groupby(["predicate", "sum"], sort=False, as_index=False).agg(
            part=("part", "mean"),
            right=("right", "mean"),
            right_calibrated=("right_calibrated", "mean"),
            n=("part", "size"),
        )

    def matrices(self, *, known: bool = True) -> dict[str, pd.DataFrame]:
        """Arrange the mean parts of heads and feed-forwards for `capacity.plots.plot_matrices`.

        Parameters
        ----------
        known : bool
            Take the facts that the model knows alone.

        Returns
        -------
        dict of str to DataFrame
            For each predicate, one row per layer, and one column per head and for feed-forwards
            (with mixers), which is missing where a layer has none.
        """
        rows = self._chosen(self.table, known)
        rows = rows[rows["component"].isin(["head", "feed_forward", "mixers"])]
        column = rows["head"].astype("string").fillna("feed-forward").rename("head")
        found: dict[str, pd.DataFrame] = {}
        for predicate, of in rows.groupby("predicate", sort=False):
            means = of["part"].groupby([of["layer"], column.loc[of.index]], sort=False).mean()
            found[str(predicate)] = means.unstack(sort=False).sort_index()
        return found

    def heads(self, n: int = 1, *, known: bool = True) -> list[tuple[int, int]]:
        """Return the heads with the largest mean part over facts, as pairs of layer and head.

        Parameters
        ----------
        n : int
            Number of heads.
        known : bool
            Take the facts that the model knows alone.
        """
        require_integer("n", n)
        rows = self._chosen(self.table, known)
        rows = rows[rows["component"] == "head"]
        means = rows.groupby(["layer", "head"])["part"].mean().sort_values(ascending=False)
        return [(int(layer), int(head)) for layer, head in means.index[:n]]

    def _chosen(self, rows: pd.DataFrame, known: bool) -> pd.DataFrame:
        return rows.merge(self.known[["fact", "template"]]) if known else rows


_KIND = {"head": "heads", "feed_forward": "feed_forward", "mixers": "feed_forward",
         "attention_bias": "biases", "bias": "biases", "output_bias": "biases",
         "embedding": "embedding"}  # fmt: skip


def fact_attribution(
    model: Any,
    tokenizer: Any,
    db: DatabaseLike,
    templates: TemplatesLike | None = None,
    *,
    contrast: Contrast = "runner-up",
    candidates: Candidates = "predicate",
    labels: DatabaseLike | None = None,
    language: str | None = None,
    label_predicates: Sequence[str] = (),
    batch_size: int = 16,
    progress: Progress | None = None,
) -> FactAttribution:
    """Attribute what a language model knows to its heads, feed-forwards and embeddings.

    After the text before the object, the logit of the object's first token, less that of the best
    wrong candidate (or the mean over candidates), is a sum of what the components of the model
    write: direct logit attribution, with the scales of norms at their values. What components do
    through later ones isn't in it; `capacity.recall.ablation_test` measures that.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        A causal model with its head and its tokenizer, as ``load_pretrained(folder, head=True)``
        returns them. It is left as it was.
    db : Database, or what `capacity.database.as_database` takes
        The facts.
    templates : path, or mapping of str to str or list of str, optional
        Templates of predicates, as for `capacity.recall.recall`, with the subject before the
        object.
    contrast : {"runner-up", "mean"}
        What is subtracted from the object's logit: that of the wrong candidate which the model
        ranks first, or the mean over all candidates.
    candidates, labels, language, label_predicates : optional
        As for `capacity.recall.recall`. Candidates are compared by their first tokens.
    batch_size : int
        Number of prompts that are run together.
    progress : callable, optional
        Called with ``("prompts", done, total, None)``; by default a bar on a terminal.

    Returns
    -------
    FactAttribution
        Tables by component, by layer and by source.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidArgumentError
        If the model isn't causal, its head isn't linear but for a cap, or its residual stream
        can't be followed; if a template has no subject before its object, or all candidates begin
        with one token; and as `capacity.recall.recall`.
    MemoryBudgetError
        If the parts of the facts of one predicate would take more than 4 GiB.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    >>> words = "<s> Oslo Lima Norway Peru is in".split()
    >>> of_words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<s>"))
    >>> of_words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=of_words, bos_token="<s>")
    >>> config = GPT2Config(vocab_size=len(words), n_embd=8, n_layer=2, n_head=2)
    >>> facts = [("Oslo", "in", "Norway"), ("Lima", "in", "Peru")]
    >>> found = fact_attribution(GPT2LMHeadModel(config), tokenizer, facts,
    ...                          {"in": "{subject} is in {object}"})
    >>> found.table["component"].value_counts()["head"], found.off < 1e-5
    (np.int64(8), True)

    References
    ----------
    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Geva et al. 2023,
    "Dissecting Recall of Factual Associations in Auto-Regressive Language Models"; Chughtai,
    Cooney, Nanda 2024, "Summing Up the Facts", for the additive motif; Wong 2025, Remark 3.2.
    """
    require_choice("`contrast`", contrast, get_args(Contrast))
    batch_size = require_integer("batch_size", batch_size, most=2**12)
    with needed_by("fact_attribution"):
        from capacity.recall.components.logits import component_logits
        from capacity.transformer.activations.models.families import unwrapped
        from capacity.transformer.activations.models.pretrained import quietly
    how = Asking(templates, candidates, labels, language, label_predicates)
    facts, groups, notes = prompts_of(model, tokenizer, db, how, caller="fact_attribution")
    model = unwrapped(model)
    tables: list[pd.DataFrame] = []
    sums: list[pd.DataFrame] = []
    off, n_done = 0.0, 0
    total = sum(len(one.ids) for one in groups)
    with quietly(), asked(model), bar() as shown:
        report = progress or shown
        for prompts in groups:
            before = n_done

            def done(n: int, before: int = before) -> None:
                report("prompts", before + n, total, None)

            found = component_logits(model, prompts, batch_size=batch_size, report=done)
            n_done += len(prompts.ids)
            off = max(off, found.off)
            rivals = runners_up(found.logits, prompts) if contrast == "runner-up" else None
            rows = _facts_of(facts, prompts)
            tables.append(_by_component(found, prompts, rivals, rows))
            sums.append(_by_sum(found, prompts, rivals, rows))
    return FactAttribution(
        pd.concat(tables, ignore_index=True).astype({"right_calibrated": "boolean"}),
        pd.concat(sums, ignore_index=True).astype({"right_calibrated": "boolean"}),
        facts,
        type(model).__name__,
        contrast,
        off,
        notes,
    )


def _facts_of(facts: Database, prompts: Prompts) -> pd.DataFrame:
    rows = [(i, *(facts.name(t) for t in facts[i]), prompts.template.text) for i in
            prompts.facts.tolist()]  # fmt: skip
    return pd.DataFrame(rows, columns=_FACT)


def _judged(
    logits: NDArray[np.floating], prompts: Prompts, rivals: NDArray[np.int64] | None
) -> dict[str, Any]:
    """Columns of logits of the shape (n, n_prompts, n_tokens), flat in the order (n, n_facts)."""
    several = len(prompts.ids) > 1
    right = brought(calibrated(logits), prompts).reshape(-1) if several else pd.NA
    return {
        "part": contrasted(logits, prompts, rivals).astype(np.float64).reshape(-1),
        "right": brought(logits, prompts).reshape(-1),
        "right_calibrated": right,
    }


def _by_component(
    found: Any, prompts: Prompts, rivals: NDArray[np.int64] | None, rows: pd.DataFrame
) -> pd.DataFrame:
    n_facts = len(rows)
    places = pd.DataFrame(found.components, columns=_PLACE).astype(
        {"layer": "Int64", "head": "Int64"}
    )
    table = pd.concat([rows] * len(places), ignore_index=True)
    table[_PLACE] = places.loc[places.index.repeat(n_facts)].reset_index(drop=True)
    table = table.assign(**_judged(found.parts, prompts, rivals))
    is_head = (table["component"] == "head").to_numpy()
    sources = contrasted(found.by_source, prompts, rivals).astype(np.float64)
    for at, name in enumerate(_FROM):
        table[name] = np.nan
        table.loc[is_head, name] = sources[:, at].reshape(-1)
    return table[[*_FACT, *_PLACE, "part", *_FROM, "right", "right_calibrated"]]


def _by_sum(
    found: Any, prompts: Prompts, rivals: NDArray[np.int64] | None, rows: pd.DataFrame
) -> pd.DataFrame:
    kinds = np.array([_KIND[one.name] for one in found.components])

    def of(kind: str) -> NDArray[np.floating]:
        return found.parts[kinds == kind].sum(0)

    sources = found.by_source.sum(0)
    every = {
        "model": found.logits,
        "embedding": of("embedding"),
        "heads": of("heads"),
        "subject": sources[SUBJECT],
        "predicate": sources[PREDICATE],
        "rest": sources[REST],
        "subject + predicate": sources[SUBJECT] + sources[PREDICATE],
        "feed_forward": of("feed_forward"),
        "biases": of("biases"),
    }
    table = pd.concat([rows] * len(every), ignore_index=True)
    table["sum"] = np.repeat(list(every), len(rows))
    return table.assign(**_judged(np.stack(list(every.values())), prompts, rivals))
