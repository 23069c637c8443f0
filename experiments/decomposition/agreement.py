"""How often classifiers of two sums of terms answer the same, on the task that is here.

    python -m experiments.decomposition.agreement --run     (five minutes on one core)
    python -m experiments.decomposition.agreement --plot

Mickus et al. (2022, Figures 4 and 5) report that classifiers of different sums of the terms i, h, f
and c agree to a high degree on word senses and names, all but those of i, c and i + c; and more so
for finetuned models. Their corpora aren't to be had here. The task here is to name corrupted tokens
of reactions, as in section 4: linear classifiers of the 15 sums of the last embeddings' terms, by
the same splits, rates and epochs, of a BERT of reactions before and after it was finetuned to
classify them. Fixed before the run: `REACTIONS` reactions, `EPOCHS` epochs, `SPLITS` splits.

* H1: the mean agreement with the other sums is least for i, c and i + c, in every split (the
  pretrained model);
* H2: sums other than these three agree on half of the answers or more (the pretrained model);
* H3: they agree more in the finetuned model than in the pretrained one.

*Holds here* if that is so (H1), or the whole interval over splits (Student's) lies on that side.
Two classifiers that are right often must agree: beside each agreement is the one that their shares
of each answer would have if they answered independently.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

from capacity.plots.theme import WIDTH
from capacity.progress import bar
from capacity.transformer import capture, decompose
from capacity.transformer.residual.partial_sums import corrupted
from experiments.common.conclusions import over_few, verdict
from experiments.common.drawing import headline, percent
from experiments.common.harness import Tables, main
from experiments.common.models import CLS, MASK, PAD, SEP, Smiles, reaction_bert
from experiments.decomposition.measures import (
    AFTER,
    BEFORE,
    SUMS,
    Questions,
    in_groups,
    learned_answers,
    reactions,
)

REACTIONS, EPOCHS, SPLITS = 600, 10, 5
STATIC = ("i", "c", "i + c")
PAIRS = list(combinations(range(len(SUMS)), 2))
MODELS: dict[str, Literal["pretrained", "finetuned"]] = {BEFORE: "pretrained", AFTER: "finetuned"}


def run(smoke: bool) -> Tables:
    """A row for each model, split and pair of sums; and the accuracy of each sum."""
    smiles = Smiles()
    written = reactions(40 if smoke else REACTIONS)
    splits, epochs = (2, 2) if smoke else (SPLITS, EPOCHS)
    pairs: list[pd.DataFrame] = []
    accuracies: list[pd.DataFrame] = []
    with bar() as tell:
        for number, (name, kind) in enumerate(MODELS.items()):
            asked = questions(reaction_bert(kind), smiles, written, name, tell)
            for seed in range(splits):
                tell("splits", number * splits + seed, len(MODELS) * splits)
                table, answers = learned_answers(asked, seed, epochs)
                accuracies.append(table.assign(model=name))
                pairs.append(agreements(answers).assign(model=name, seed=seed))
    return {"pairs": pd.concat(pairs), "accuracies": pd.concat(accuracies)}


def questions(model: Any, smiles: Smiles, written: list[str], name: str, tell: Any) -> Questions:
    """Terms of the last embeddings at corrupted tokens; the same tokens for every model."""
    generator = torch.Generator().manual_seed(0)
    special = torch.tensor([smiles.ids[word] for word in (PAD, CLS, SEP)])
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    n_texts = 0
    for batch in in_groups(smiles.encode(written), max(2, len(written) // 30), name, tell):
        tokens = batch["input_ids"]
        read, chosen = corrupted(
            tokens, ~torch.isin(tokens, special), mask_token=smiles.ids[MASK],
            d_vocab=len(smiles.words), generator=generator,
        )  # fmt: skip
        split = decompose(capture(model, {**batch, "input_ids": read}))
        last = split.terms[-1][:, chosen].transpose(0, 1)
        parts.append((last, tokens[chosen], n_texts + chosen.nonzero()[:, 0]))
        n_texts += len(tokens)
    return Questions(*map(torch.cat, zip(*parts, strict=True)))


def agreements(answers: Tensor) -> pd.DataFrame:
    """Share of answers that two sums share, and that of independent ones with as many of each."""
    n_words = int(answers.max()) + 1
    shares = torch.stack([of.bincount(minlength=n_words) for of in answers]) / answers.shape[1]
    return pd.DataFrame(
        {
            "one": SUMS[a], "other": SUMS[b],
            "agreement": float((answers[a] == answers[b]).double().mean()),
            "independent": float(shares[a] @ shares[b]),
        }
        for a, b in PAIRS
    )  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Agreements by model, and a verdict for each hypothesis."""
    pairs, accuracies = tables["pairs"], tables["accuracies"]
    static = pairs["one"].isin(STATIC) | pairs["other"].isin(STATIC)
    by = {
        name: pairs[static == is_static].groupby(["model", "seed"])["agreement"].mean()
        for name, is_static in (("others", False), ("static", True))
    }
    found: dict[str, Any] = {
        kind: {
            "others": over_few(by["others"][name]),
            "with_i_c_or_both": over_few(by["static"][name]),
            "independent_others": over_few(
                pairs[~static & (pairs["model"] == name)].groupby("seed")["independent"].mean()
            ),
            "mean_agreement": {
                each: over_few(_with(pairs[pairs["model"] == name], each)) for each in SUMS
            },
            "accuracy": {
                str(each): over_few(part["accuracy"])
                for each, part in accuracies[accuracies["model"] == name].groupby("sum")
            },
        }
        for name, kind in MODELS.items()
    }
    more = over_few(by["others"][AFTER] - by["others"][BEFORE])
    lowest = _lowest(pairs[pairs["model"] == BEFORE])
    return {
        "splits": pairs["seed"].nunique(),
        "questions": int(accuracies[["n_train", "n_test"]].iloc[0].sum()),
        **found,
        "finetuned_less_pretrained": more,
        "splits_where_static_sums_agree_least": int(lowest),
        "hypotheses": {
            "H1": verdict(lowest == pairs["seed"].nunique()),
            "H2": verdict(found["pretrained"]["others"]["interval"][0] >= 0.5),
            "H3": verdict(more["interval"][0] > 0),
        },
    }


def _with(pairs: pd.DataFrame, name: str) -> pd.Series[float]:
    """Mean agreement of a sum with all others, by split."""
    some = pairs[(pairs["one"] == name) | (pairs["other"] == name)]
    return some.groupby("seed")["agreement"].mean()


def _lowest(pairs: pd.DataFrame) -> int:
    """The number of splits where i, c and i + c are the three that agree least."""
    means = pd.DataFrame({name: _with(pairs, name) for name in SUMS})
    return sum({*row.nsmallest(len(STATIC)).index} == {*STATIC} for _, row in means.iterrows())


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """The agreement of each pair of sums, of both models."""
    figure = Figure(figsize=(WIDTH, 4.2))
    panels = figure.subplots(1, 2)
    scale = ScalarMappable(Normalize(0, 1), "viridis")
    for axes, (name, kind) in zip(panels, MODELS.items(), strict=True):
        of = tables["pairs"]
        means = of[of["model"] == name].groupby(["one", "other"])["agreement"].mean()
        square = np.full((len(SUMS), len(SUMS)), np.nan)
        for a, b in PAIRS:
            square[a, b] = square[b, a] = means[SUMS[a], SUMS[b]]
        axes.imshow(square, norm=scale.norm, cmap=scale.cmap)
        axes.set_xticks(range(len(SUMS)), SUMS, rotation=90, fontsize=6)
        axes.set_yticks(range(len(SUMS)), SUMS, fontsize=6)
        axes.set_title(f"{kind}: {percent(found[kind]['others'])} without i, c, i + c")
    figure.colorbar(scale, ax=panels, label="share of equal answers", shrink=0.7)
    headline(
        figure,
        "Classifiers of sums of terms agree on corrupted tokens of reactions; those of i, c\n"
        f"and i + c with others on {percent(found['pretrained']['with_i_c_or_both'])}",
    )
    return {"sums": figure}


if __name__ == "__main__":
    main("agreement", run, numbers, plot)
