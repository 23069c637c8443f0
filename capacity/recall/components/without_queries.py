"""`mean_attention`: what a model knows if a layer's queries and keys carry nothing.

Each prompt of a template is run with the mean attention of other prompts, place by place, so that a
layer attends in the same way whatever the subject is, and its values and outputs alone can bring a
fact. In the attention layers of this library the pattern after a pair (k, q) is a number that
queries and keys compute (Wong 2025, equation (5)); this shows whether such a number matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from capacity.checks import Seed, generator, require_integer
from capacity.database.given_facts import DatabaseLike
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.laws.bootstrap import mean_interval
from capacity.optional import needed_by
from capacity.progress import Progress, bar
from capacity.recall.components.prompts import Asking, prompts_of
from capacity.recall.models import asked
from capacity.recall.questions import Candidates
from capacity.recall.templates import TemplatesLike

if TYPE_CHECKING:
    from numpy.typing import NDArray


@briefly_shown
@dataclass(frozen=True, eq=False)
class MeanAttention:
    """Shares of facts that a model keeps with the mean attention of other prompts.

    Attributes
    ----------
    table : DataFrame
        One row per predicate and layer: ``layer``, missing for all layers together; ``kept``, the
        share of the facts that the model knows which it is still right about; ``low`` and
        ``high``, a 95 % bootstrap interval over subjects; ``n_facts``.
    model : str
        Class of the model.
    notes : tuple of str
        What a reader has to know.
    """

    table: pd.DataFrame = field(repr=False)
    model: str
    notes: tuple[str, ...]


def mean_attention(
    model: Any,
    tokenizer: Any,
    db: DatabaseLike,
    templates: TemplatesLike | None = None,
    *,
    layers: Sequence[int] | None = None,
    seed: Seed = 0,
    candidates: Candidates = "predicate",
    labels: DatabaseLike | None = None,
    language: str | None = None,
    label_predicates: Sequence[str] = (),
    batch_size: int = 16,
    progress: Progress | None = None,
) -> MeanAttention:
    """Measure what a language model knows with mean attention in one layer at a time, and in all.

    The subjects are split into halves at random, and the prompts of each half are run with the mean
    attention of the other half. Tokens are aligned by their places: those of the template, and
    those of the subject by their distance from its end.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        A causal model with its head and its tokenizer. It is left as it was.
    db : Database, or what `capacity.database.as_database` takes
        The facts.
    templates : path, or mapping of str to str or list of str, optional
        As for `capacity.recall.fact_attribution`.
    layers : sequence of int, optional
        Layers, counted from 0; by default all that attend.
    seed : int or numpy.random.Generator
        Seed of the halves and of the intervals.
    candidates, labels, language, label_predicates, batch_size : optional
        As for `capacity.recall.fact_attribution`.
    progress : callable, optional
        Called with ``("layers", done, total, None)``; by default a bar on a terminal.

    Returns
    -------
    MeanAttention
        A table by layer.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidArgumentError
        If there is no such layer, if a predicate has one subject, or the model has no right
        answer; and as `capacity.recall.fact_attribution`.

    Examples
    --------
    >>> import torch
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    >>> words = "<s> Oslo Lima Paris Norway Peru France is in".split()
    >>> of_words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<s>"))
    >>> of_words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=of_words, bos_token="<s>")
    >>> _ = torch.manual_seed(0)
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=8, n_layer=2, n_head=2))
    >>> facts = [("Oslo", "in", "Norway"), ("Lima", "in", "Peru"), ("Paris", "in", "France")]
    >>> found = mean_attention(model, tokenizer, facts, {"in": "{subject} is in {object}"})
    >>> found.table["layer"].tolist()
    [0, 1, <NA>]
    """
    batch_size = require_integer("batch_size", batch_size, most=2**12)
    rng = generator(seed)
    with needed_by("mean_attention"):
        from capacity.recall.components.patterns import Patterns
        from capacity.recall.components.replaced import facts_right
        from capacity.transformer.activations.models.families import unwrapped
        from capacity.transformer.activations.models.pretrained import quietly
    how = Asking(templates, candidates, labels, language, label_predicates)
    _, groups, notes = prompts_of(model, tokenizer, db, how, caller="mean_attention")
    model = unwrapped(model)
    rows: list[dict[str, Any]] = []
    with quietly(), asked(model), bar() as shown:
        report = progress or shown
        for number, prompts in enumerate(groups):
            if len(prompts.ids) < 2:
                raise InvalidArgumentError(
                    f"Each predicate must have several subjects; {prompts.predicate:.60} has one. "
                    "Exclude it."
                )
            known = facts_right(model, prompts, batch_size)
            if not known.any():
                continue
            patterns = Patterns(model, prompts, _halves(len(prompts.ids), rng), batch_size)
            chosen = _chosen(layers, patterns.layers)
            subjects = np.array(prompts.subjects)[prompts.prompt[known]]
            sets: list[Iterable[int]] = [*([one] for one in chosen), chosen]
            for at, some in enumerate(sets):
                report("layers", number * len(sets) + at, len(groups) * len(sets), None)
                right = facts_right(model, prompts, batch_size, patterns.context(model, [*some]))
                kept = right[known].astype(float)
                low, high = mean_interval(kept, subjects, seed=rng)
                rows.append({
                    "predicate": prompts.predicate,
                    "template": prompts.template.text,
                    "layer": chosen[at] if at < len(chosen) else None,
                    "kept": float(kept.mean()),
                    "low": low,
                    "high": high,
                    "n_facts": len(kept),
                })  # fmt: skip
    if not rows:
        raise InvalidArgumentError(
            f"The model must know some of the facts; {type(model).__name__} knows none. Pass "
            "others, or other templates."
        )
    table = pd.DataFrame(rows).astype({"layer": "Int64"})
    return MeanAttention(table, type(model).__name__, notes)


def _halves(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign n prompts to two halves, 0 and 1."""
    return rng.permutation(n) % 2


def _chosen(layers: Sequence[int] | None, there: Sequence[int]) -> list[int]:
    if layers is None:
        return list(there)
    chosen = [require_integer("layers", one, least=0) for one in layers]
    odd = [one for one in chosen if one not in there]
    if odd or not chosen:
        raise InvalidArgumentError(
            f"`layers` must be layers that attend, from {there[0]} to {there[-1]}; got "
            f"{odd[0] if odd else 'none'}."
        )
    return chosen
