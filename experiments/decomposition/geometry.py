"""Norms change the size of what a sublayer writes, and biases the anisotropy: by how much.

    python -m experiments.decomposition.geometry --run     (two minutes on one core)
    python -m experiments.decomposition.geometry --plot

Mickus et al. (2022, section 3) suppose that f, the feed-forwards' term, is larger than h, the
heads', because its parts go through fewer norms, and that c, the biases', makes part of the
anisotropy of embeddings. Fixed before the run: MiniLM on tweets, the BERT of reactions before and
after finetuning on reactions, in `GROUPS` groups of `TEXTS` texts each, without [CLS] and [SEP].

* f over h: the mean over tokens of |f| / |h| in the last embeddings, and the same with the scales
  of all norms undone: the lengths of the sums of what all feed-forwards, and all heads, have
  written. H1: f is larger than h, and not so with the scales undone.
* anisotropy: the mean cosine of the embeddings of two tokens of different texts, after each layer,
  of e and of e - c; H2: in the mean over layers it is larger for e.

*Holds here* if the whole intervals, over groups of texts (Student's), lie on that side; each model
has its own verdicts. That the scales are what makes f larger is one explanation: without them f and
h are compared as if no norm followed any layer.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import normalize

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.transformer import ActivationCache, capture, decompose
from capacity.transformer.activations.records.cache import Written
from capacity.transformer.residual.additive_decomposition import CONSTANT, FEED_FORWARD, HEADS
from experiments.common.conclusions import over_few, verdict
from experiments.common.drawing import REFERENCE, estimates, headline, told
from experiments.common.harness import Tables, main
from experiments.common.models import Smiles, minilm, reaction_bert, tweets
from experiments.decomposition.measures import (
    AFTER,
    BEFORE,
    ENGLISH,
    Inputs,
    in_groups,
    reactions,
)

GROUPS, TEXTS = 10, 24
MODELS = {ENGLISH: "MiniLM", BEFORE: "pretrained", AFTER: "finetuned"}
WAYS = {"scaled": "as in the embeddings", "unscaled": "scales of norms undone"}


def run(smoke: bool) -> Tables:
    """A row for each model and group; and one for each layer of these."""
    groups, texts = (2, 4) if smoke else (GROUPS, TEXTS)
    english, tokenizer = minilm()
    some = tweets()["text"].sample(groups * texts, random_state=1).tolist()
    words: Inputs = tokenizer(some, padding=True, return_tensors="pt")
    atoms = Smiles().encode(reactions(groups * texts))
    models = {
        ENGLISH: (english, words),
        BEFORE: (reaction_bert("pretrained"), atoms),
        AFTER: (reaction_bert("finetuned"), atoms),
    }
    sizes: list[dict[str, Any]] = []
    cosines: list[dict[str, Any]] = []
    with bar() as tell, torch.no_grad():
        for name, (model, inputs) in models.items():
            for number, batch in enumerate(in_groups(inputs, groups, name, tell)):
                captured = capture(model, batch)
                kept = between_delimiters(captured.mask)
                group = {"model": name, "group": number}
                sizes.append(group | f_over_h(captured, kept))
                cosines += [
                    {**group, "layer": layer, "with_c": whole, "without_c": without}
                    for layer, (whole, without) in enumerate(anisotropies(captured, kept))
                ]
    return {"sizes": pd.DataFrame(sizes), "cosines": pd.DataFrame(cosines)}


def between_delimiters(mask: Tensor) -> Tensor:
    """Tokens that are neither the first nor the last of their text, (batch, n)."""
    last = mask.sum(1, keepdim=True) - 1
    places = torch.arange(mask.shape[1])
    return (places > 0) & (places < last)


def f_over_h(captured: ActivationCache, kept: Tensor) -> dict[str, float]:
    """Mean of |f| / |h| over tokens, in the last embeddings and with the scales of norms undone."""
    terms = decompose(captured).terms[-1]
    written = {
        name: sum(
            step.output for step in captured.steps
            if isinstance(step, Written) and step.term == name
        )
        for name in ("heads", "feed_forward")
    }  # fmt: skip
    scaled = _lengths(terms[FEED_FORWARD], kept) / _lengths(terms[HEADS], kept)
    unscaled = _lengths(written["feed_forward"], kept) / _lengths(written["heads"], kept)
    return {"scaled": float(scaled.mean()), "unscaled": float(unscaled.mean())}


def _lengths(x: Any, kept: Tensor) -> Tensor:
    return x[kept].norm(dim=-1)


def anisotropies(captured: ActivationCache, kept: Tensor) -> list[tuple[float, float]]:
    """Mean cosine of tokens of different texts after each layer, of e and of e - c."""
    split = decompose(captured)
    return [
        (mean_cosine(terms.sum(0), kept), mean_cosine(terms.sum(0) - terms[CONSTANT], kept))
        for terms in split.terms
    ]


def mean_cosine(x: Tensor, kept: Tensor) -> float:
    """Mean cosine of two vectors of different texts; `kept` (batch, n) chooses those of each."""
    units = normalize(x.double(), dim=-1) * kept[..., None]
    of_texts, counts = units.sum(1), kept.sum(1).double()
    # all pairs less those of one text
    total = of_texts.sum(0).square().sum() - of_texts.square().sum()
    return float(total / (counts.sum().square() - counts.square().sum()))


def numbers(tables: Tables) -> dict[str, Any]:
    """Both ratios and both cosines by model, and a verdict for each hypothesis."""
    sizes, cosines = tables["sizes"], tables["cosines"]
    found: dict[str, Any] = {}
    for name, kind in MODELS.items():
        of = sizes[sizes["model"] == name]
        ratios = {way: over_few(of[way]) for way in WAYS}
        by_group = cosines[cosines["model"] == name].groupby("group")[["with_c", "without_c"]]
        means = by_group.mean()
        less = over_few(means["with_c"] - means["without_c"])
        found[kind] = {
            "f_over_h": ratios,
            "cosine": {key: over_few(means[key]) for key in means},
            "cosine_that_c_adds": less,
            "hypotheses": {
                "H1": verdict(
                    ratios["scaled"]["interval"][0] > 1 > ratios["unscaled"]["interval"][1]
                ),
                "H2": verdict(less["interval"][0] > 0),
            },
        }
    return {"groups": int(sizes["group"].nunique()), **found}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes by model, and cosines by layer."""
    figure = Figure(figsize=(WIDTH, 3.4))
    left, right = figure.subplots(1, 2)
    places = range(len(MODELS))
    for number, (way, label) in enumerate(WAYS.items()):
        at = [place + 0.1 * (number - 0.5) for place in places]
        of = [found[kind]["f_over_h"][way] for kind in MODELS.values()]
        estimates(left, at, of, colour=COLOURS[number], marker=MARKERS[number], label=label)
    left.axhline(1, color=REFERENCE, linewidth=0.8, label="equal")
    left.set(ylabel="|f| / |h|", ylim=(0, None))
    left.set_xticks(places, list(MODELS.values()))
    left.set_title("sizes", fontsize=9)
    left.legend()
    for (name, kind), colour in zip(MODELS.items(), COLOURS, strict=False):
        of_model = tables["cosines"][tables["cosines"]["model"] == name]
        by_layer = of_model.groupby("layer")[["with_c", "without_c"]].mean()
        right.plot(by_layer.index, by_layer["with_c"], "o-", color=colour, ms=3, label=kind)
        right.plot(by_layer.index, by_layer["without_c"], "o--", color=colour, ms=3, mfc="white")
    right.set(xlabel="layer", ylabel="mean cosine")
    right.set_title("solid: e, dashed: e - c", fontsize=9)
    right.legend()
    ratios, less = found["MiniLM"]["f_over_h"], found["pretrained"]["cosine_that_c_adds"]
    headline(
        figure,
        f"In MiniLM f is {told(ratios['scaled'])} times as long as h, {told(ratios['unscaled'])} "
        f"times with the scales of norms undone;\nin rxnfp the cosine of tokens falls by "
        f"{told(less)} without c",
    )
    return {"sizes": figure}


if __name__ == "__main__":
    main("geometry", run, numbers, plot)
