"""`ablation_test`: whether the heads that attribution names are those that a model needs.

Heads are chosen on one half of the subjects and judged on the facts of the other, beside random
heads of the same layers. Without either control an ablation shows little: heads that were chosen
and judged on the same facts look better than they are, and a model without some heads of a layer
may forget facts whichever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import Seed, generator, require_choice, require_integer, shown
from capacity.database.given_facts import DatabaseLike
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.laws.bootstrap import mean_interval
from capacity.optional import needed_by
from capacity.progress import Progress, bar
from capacity.recall.components.judging import contrasted, runners_up
from capacity.recall.components.prompts import Asking, Prompts, prompts_of
from capacity.recall.models import asked
from capacity.recall.questions import Candidates
from capacity.recall.templates import TemplatesLike

if TYPE_CHECKING:
    from capacity.recall.components.replaced import Outputs

Mode: TypeAlias = Literal["mean", "zero", "resample"]
# a layer, and the head in it
Head: TypeAlias = tuple[int, int]


@briefly_shown
@dataclass(frozen=True, eq=False)
class AblationTest:
    """Shares of facts that a model keeps without some of its heads, beside random ones.

    Attributes
    ----------
    table : DataFrame
        One row per number of heads, predicate and ``set``, which is ``chosen`` or ``random``:
        ``n_heads``; ``kept``, the share of the known facts of the judged half that the model
        without the heads is right about; ``low`` and ``high``, its 95 % bootstrap interval over
        subjects (and over random sets); ``least`` and ``most`` of the sets; ``n_sets``;
        ``n_facts``, of the judged half. The predicate ``all`` has all of them.
    heads : tuple of (int, int)
        Layer and head of the chosen heads, the largest mean part first.
    random : mapping of int to tuple
        For each number of heads, the random sets.
    mode : {"mean", "zero", "resample"}
        What heads write instead.
    chosen_on : tuple of str
        Subjects whose facts the heads were chosen by; empty if the heads were passed.
    model : str
        Class of the model.
    notes : tuple of str
        What a reader has to know.
    """

    table: pd.DataFrame = field(repr=False)
    heads: tuple[tuple[int, int], ...]
    random: dict[int, tuple[tuple[tuple[int, int], ...], ...]] = field(repr=False)
    mode: Mode
    chosen_on: tuple[str, ...] = field(repr=False)
    model: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Half:
    """Prompts of a predicate, with the facts that the model knows in the judged half."""

    prompts: Prompts
    outputs: Outputs
    judged: NDArray[np.int64]


def ablation_test(
    model: Any,
    tokenizer: Any,
    db: DatabaseLike,
    templates: TemplatesLike | None = None,
    *,
    n_heads: Sequence[int] = (1, 3),
    heads: Iterable[tuple[int, int]] | None = None,
    mode: Mode = "mean",
    n_random: int = 8,
    seed: Seed = 0,
    candidates: Candidates = "predicate",
    labels: DatabaseLike | None = None,
    language: str | None = None,
    label_predicates: Sequence[str] = (),
    batch_size: int = 16,
    progress: Progress | None = None,
) -> AblationTest:
    """Measure what a language model knows without the heads that bring its facts.

    The subjects are split into halves at random. On the first, heads are ranked by the mean of
    their parts (`fact_attribution`) over the facts that the model knows. On the second, the model
    is asked without the first of them, and without random sets of as many heads of the same layers
    (of the nearest layer, where too few are left).

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        A causal model with its head and its tokenizer. It is left as it was.
    db : Database, or what `capacity.database.as_database` takes
        The facts.
    templates : path, or mapping of str to str or list of str, optional
        As for `capacity.recall.fact_attribution`.
    n_heads : sequence of int
        Numbers of heads that are ablated together.
    heads : iterable of (int, int), optional
        Layer and head of heads to ablate, the first ones first, in place of those with the largest
        parts. Known facts of all subjects are then judged, and the first half alone are averaged
        or drawn from.
    mode : {"mean", "zero", "resample"}
        What heads write instead: their mean over the first half, at the same place of the
        template; nothing; or what they write there for another subject of the first half.
    n_random : int
        Number of random sets for each number of heads.
    seed : int or numpy.random.Generator
        Seed of the halves, the random sets, the resampled subjects and the intervals.
    candidates, labels, language, label_predicates, batch_size : optional
        As for `capacity.recall.fact_attribution`.
    progress : callable, optional
        Called with ``("sets of heads", done, total, None)``; by default a bar on a terminal.

    Returns
    -------
    AblationTest
        A table with intervals, and the heads.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidArgumentError
        If the model has no right answer in one of the halves, or fewer heads than twice those that
        are asked for; and as `capacity.recall.fact_attribution`.

    References
    ----------
    Michel, Levy, Neubig 2019, "Are Sixteen Heads Really Better than One?", for ablated heads; Chan
    et al. 2022, "Causal Scrubbing", for resampling.

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
    >>> found = ablation_test(model, tokenizer, facts, {"in": "{subject} is in {object}"},
    ...                       n_heads=[1], heads=[(0, 1)], n_random=2)
    >>> found.table[["set", "n_sets", "n_facts"]].values.tolist()
    [['chosen', 1, 1], ['random', 2, 1]]
    """
    require_choice("`mode`", mode, get_args(Mode))
    numbers = sorted({require_integer("n_heads", n) for n in n_heads})
    if not numbers:
        raise InvalidArgumentError("`n_heads` must have a number of heads; got none.")
    n_random = require_integer("n_random", n_random, most=2**12)
    batch_size = require_integer("batch_size", batch_size, most=2**12)
    rng = generator(seed)
    with needed_by("ablation_test"):
        from capacity.recall.components.replaced import Outputs, facts_right, like_random
        from capacity.transformer.activations.models.families import unwrapped
        from capacity.transformer.activations.models.pretrained import quietly
        from capacity.transformer.activations.patching import chosen_heads
    how = Asking(templates, candidates, labels, language, label_predicates)
    _, groups, notes = prompts_of(model, tokenizer, db, how, caller="ablation_test")
    model = unwrapped(model)
    passed = None if heads is None else _in_order(heads, chosen_heads)
    first = _first_half(groups, rng)
    total, n_done = 1 + len(numbers) * (n_random + 1), 0
    with quietly(), asked(model), bar() as shown_bar:
        report = progress or shown_bar
        report("sets of heads", 0, total, None)
        halves: list[_Half] = []
        parts: dict[Head, list[NDArray[np.floating]]] = {}
        for prompts in groups:
            rows = [i for i, s in enumerate(prompts.subjects) if s in first]
            known = facts_right(model, prompts, batch_size)
            in_first = np.isin(prompts.prompt, rows)
            if passed is None:
                for head, part in _parts(model, prompts, known & in_first, batch_size):
                    parts.setdefault(head, []).append(part)
            judged = np.flatnonzero(known & ~in_first if passed is None else known)
            halves.append(_Half(prompts, Outputs(model, prompts, rows, batch_size), judged))
        ranked = _ranked(parts) if passed is None else passed
        if not any(len(half.judged) for half in halves) or not ranked:
            raise InvalidArgumentError(
                f"The model must know facts of both halves of the subjects; {type(model).__name__} "
                "has none in one of them. Pass more facts, or other templates."
            )
        there = halves[0].outputs.n_heads
        _require_enough(numbers, ranked, there, is_given=passed is not None)
        random: dict[int, tuple[Any, ...]] = {}
        tables: list[pd.DataFrame] = []
        for n in numbers:
            chosen = tuple(ranked[:n])
            random[n] = tuple(tuple(like_random(chosen, there, rng)) for _ in range(n_random))
            for at, some in enumerate((chosen, *random[n])):
                n_done += 1
                report("sets of heads", n_done, total, None)
                tables += [
                    _kept(model, half, some, mode, rng, batch_size).assign(
                        n_heads=n, set="chosen" if at == 0 else "random", at=at
                    )
                    for half in halves
                ]
        report("sets of heads", total, total, None)
    return AblationTest(
        _summary(pd.concat(tables, ignore_index=True), rng),
        tuple(ranked[: numbers[-1]]),
        random,
        mode,
        tuple(sorted(first)) if passed is None else (),
        type(model).__name__,
        notes,
    )


def _in_order(heads: Iterable[Head], checked: Callable[[Iterable[Head]], object]) -> list[Head]:
    pairs = [*heads]
    checked(pairs)
    if not pairs or len(set(pairs)) < len(pairs):
        raise InvalidArgumentError(
            f"`heads` must be different pairs of a layer and a head; got {shown(pairs)}."
        )
    return pairs


def _first_half(groups: Sequence[Prompts], rng: np.random.Generator) -> set[str]:
    subjects = sorted({s for prompts in groups for s in prompts.subjects})
    if len(subjects) < 2:
        raise InvalidArgumentError(
            "The facts must have several subjects, which are split into halves; they have "
            f"{len(subjects)}."
        )
    return {subjects[i] for i in rng.permutation(len(subjects))[: (len(subjects) + 1) // 2]}


def _parts(
    model: Any, prompts: Prompts, wanted: NDArray[np.bool_], batch_size: int
) -> Iterator[tuple[Head, NDArray[np.floating]]]:
    """Yield the part of each head in the contrasts of the facts that are wanted."""
    from capacity.recall.components.logits import component_logits

    logits = component_logits(model, prompts, batch_size=batch_size)
    contrasts = contrasted(logits.parts, prompts, runners_up(logits.logits, prompts))
    for (name, layer, head), part in zip(logits.components, contrasts, strict=True):
        if name == "head" and layer is not None and head is not None:
            yield (layer, head), part[wanted]


def _ranked(parts: dict[Head, list[NDArray[np.floating]]]) -> list[Head]:
    of_facts = {head: np.concatenate(each) for head, each in parts.items()}
    if not all(len(part) for part in of_facts.values()):
        return []
    return sorted(of_facts, key=lambda head: -float(of_facts[head].mean()))


def _require_enough(
    numbers: list[int], ranked: list[Head], there: dict[int, int], *, is_given: bool
) -> None:
    for layer, head in ranked:
        if layer not in there or head >= there[layer]:
            raise InvalidArgumentError(
                f"`heads` must be heads of the model; it has none at layer {layer}, head {head}."
            )
    most = len(ranked) if is_given else sum(there.values())
    most = min(most, sum(there.values()) // 2)
    if numbers[-1] > most:
        raise InvalidArgumentError(
            f"`n_heads` must be at most {most}, so that there are as many other heads; got "
            f"{numbers[-1]}."
        )


def _kept(
    model: Any,
    half: _Half,
    heads: Sequence[Head],
    mode: Mode,
    rng: np.random.Generator,
    batch_size: int,
) -> pd.DataFrame:
    """Ask without some heads: one row per judged fact."""
    from capacity.recall.components.replaced import facts_right

    prompts = half.prompts
    context = half.outputs.context(model, heads, mode, rng)
    right = facts_right(model, prompts, batch_size, context)[half.judged]
    subjects = [prompts.subjects[i] for i in prompts.prompt[half.judged]]
    return pd.DataFrame({"predicate": prompts.predicate, "subject": subjects, "kept": right})


def _summary(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    summary = []
    several = rows["predicate"].nunique() > 1
    for (n, which), part in rows.groupby(["n_heads", "set"], sort=False):
        groups = [("all", part)] if several else []
        for predicate, some in [*groups, *part.groupby("predicate", sort=False)]:
            means = some.groupby("at")["kept"].mean()
            factors = some[["subject", "at"] if which == "random" else ["subject"]]
            low, high = mean_interval(some["kept"].astype(float), factors, seed=rng)
            summary.append({
                "n_heads": n, "predicate": predicate, "set": which,
                "kept": float(some["kept"].mean()), "low": low, "high": high,
                "least": float(means.min()), "most": float(means.max()),
                "n_sets": len(means), "n_facts": len(some) // len(means),
            })  # fmt: skip
    return pd.DataFrame(summary)
