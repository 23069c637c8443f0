"""Effective attention beside the norm-based analysis of Kobayashi et al. (2020).

    python -m experiments.effective_attention.norms --run     (a minute on one core)
    python -m experiments.effective_attention.norms --plot

Sun and Marasovic (2021, section 4) leave a formal study of both to future work: analysis by norms
needs no singular values, and reports that what [CLS] contributes is small, which effective
attention doesn't. The norm of a head's token j in row i is A_ij |v_j W_O|, with the bias in v_j;
here each row of norms is divided by its sum. Effective attention is the projection of A onto the
column space of the values (plain), by absolute values. Fixed before the run: MiniLM on `SENTENCES`
pairs of tweets of 64 tokens (two times d_head_vo), a BERT of reactions, pretrained and finetuned,
on as many reactions; rows of tokens that are no delimiters; every layer and head.

* H1: norms can take the place of effective attention: Spearman's rho over the tokens of a row, in
  the mean over rows, heads, layers and sentences, is `ENOUGH` or more;
* H2: norms order tokens more as effective attention does than plain attention does: the difference
  of the two rho is above zero;
* H3: norms put a smaller share on [CLS] than effective attention does, and H4: on [SEP].

*Holds here* if the whole interval, over sentences and layers, lies on that side; each model has its
own verdicts.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from capacity.evaluator import mean_interval
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.transformer import ActivationCache, capture, effective_attention, token_shares
from capacity.transformer.effective.statistics import normalised
from experiments.common.conclusions import verdict
from experiments.common.drawing import estimates, headline, told
from experiments.common.harness import Tables, main
from experiments.common.models import CLS, SEP, minilm, reaction_bert
from experiments.common.texts import KINDS, OTHER, PUNCTUATION, Sentence, reactions, tweet_pairs

SENTENCES, TOKENS, ENOUGH = 32, 64, 0.9
MODELS = {
    "MiniLM": "minilm",
    "reactions, pretrained": "pretrained",
    "reactions, finetuned": "finetuned",
}
PAIRS = (("effective", "norms"), ("standard", "effective"), ("standard", "norms"))


def run(smoke: bool) -> Tables:
    """A row for each sentence and layer of each model."""
    n = 1 if smoke else SENTENCES
    model, tokenizer = minilm()
    jobs = [("MiniLM", model, i, each) for i, each in enumerate(tweet_pairs(tokenizer, n, TOKENS))]
    written = list(enumerate(reactions(n)))
    for kind in ("pretrained", "finetuned"):
        bert = reaction_bert(kind)
        jobs += [(f"reactions, {kind}", bert, i, each) for i, each in written]
    rows: list[dict[str, Any]] = []
    with bar() as tell, torch.no_grad():
        for done, (name, of, i, sentence) in enumerate(jobs, start=1):
            found = of_sentence(sentence, capture(of, sentence.inputs))
            rows += [{"model": name, "sentence": i, **row} for row in found]
            tell("sentences", done, len(jobs))
    return {"sentences": pd.DataFrame(rows)}


def of_sentence(sentence: Sentence, at: ActivationCache) -> list[dict[str, Any]]:
    """Means over heads and rows: rank correlations of three kinds of attention, and shares."""
    kinds = {kind: sentence.are(kind) for kind in KINDS}
    asked = sentence.are(PUNCTUATION, OTHER)
    found: list[dict[str, Any]] = []
    effective = effective_attention(at, "plain").layers
    for number, layer in enumerate(at.layers):
        patterns = {
            "standard": layer.pattern,
            "effective": normalised(effective[number].pattern),
            "norms": norm_shares(layer.pattern, layer.v, layer.W_O),
        }
        row: dict[str, Any] = {"layer": number + 1}
        for one, other in PAIRS:
            rho = rank_correlation(patterns[one], patterns[other])
            row[f"rho of {one} and {other}"] = float(rho.mean(1)[asked].mean())
        for name, pattern in patterns.items():
            shares = token_shares(pattern, kinds, asked).groupby("kind")["share"].mean()
            row |= {f"{name} on {kind}": float(shares[kind]) for kind in KINDS}
        found.append(row)
    return found


def norm_shares(pattern: Tensor, v: Tensor, W_O: Tensor) -> Tensor:
    """A_ij |v_j W_O|, (batch, heads, n, n), with rows that sum to one."""
    sizes = torch.einsum("bhnv,hvd->bhnd", v, W_O).norm(dim=-1)
    weighed = pattern * sizes[:, :, None]
    return weighed / weighed.sum(-1, keepdim=True)


def rank_correlation(one: Tensor, other: Tensor) -> Tensor:
    """Spearman's rho of the last axes, of numbers without ties."""
    a, b = (x.argsort(-1).argsort(-1).double() for x in (one, other))
    n = one.shape[-1]
    return 1 - 6 * (a - b).square().sum(-1) / (n * (n * n - 1))


def numbers(tables: Tables) -> dict[str, Any]:
    """Means with intervals for each model, and a verdict for each hypothesis."""
    return {
        MODELS[str(name)]: _of_model(part)
        for name, part in tables["sentences"].groupby("model", sort=False)
    }


def _of_model(table: pd.DataFrame) -> dict[str, Any]:
    def mean(values: pd.Series[float]) -> dict[str, Any]:
        interval = mean_interval(values, table[["sentence", "layer"]])
        return {"mean": values.mean(), "interval": interval, "n_runs": len(values)}

    rho = {f"{one} and {other}": table[f"rho of {one} and {other}"] for one, other in PAIRS}
    closer = mean(rho["effective and norms"] - rho["standard and effective"])
    less = {
        key: mean(table[f"norms on {kind}"] - table[f"effective on {kind}"])
        for key, kind in (("cls", CLS), ("sep", SEP), ("punctuation", PUNCTUATION))
    }
    alike = mean(rho["effective and norms"])
    return {
        "sentences": table["sentence"].nunique(),
        "layers": table["layer"].nunique(),
        "rho": {name: mean(values) for name, values in rho.items()},
        "norms_closer_than_standard": closer,
        "shares": {
            name: {
                key: mean(table[f"{name} on {kind}"])
                for key, kind in (("cls", CLS), ("sep", SEP), ("punctuation", PUNCTUATION))
            }
            for name in ("standard", "effective", "norms")
        },
        "norms_less_effective": less,
        "hypotheses": {
            "H1": verdict(alike["interval"][0] >= ENOUGH),
            "H2": verdict(closer["interval"][0] > 0),
            "H3": verdict(less["cls"]["interval"][1] < 0),
            "H4": verdict(less["sep"]["interval"][1] < 0),
        },
    }


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Rank correlations, and shares on delimiters and punctuation."""
    figure = Figure(figsize=(WIDTH, 3.6))
    left, right = figure.subplots(1, 2)
    models = [found[key] for key in MODELS.values()]
    for number, (one, other) in enumerate(PAIRS):
        at = [place + 0.12 * (number - 1) for place in range(len(models))]
        of = [each["rho"][f"{one} and {other}"] for each in models]
        estimates(
            left, at, of, colour=COLOURS[number], marker=MARKERS[number],
            label=f"{one}, {other}",
        )  # fmt: skip
    left.set(ylabel="Spearman's rho over the tokens of a row", ylim=(-0.2, 1))
    left.set_xticks(range(len(models)), [name.replace(", ", "\n") for name in MODELS])
    left.set_title("order of the tokens", fontsize=9)
    left.legend(title="attention")
    for number, name in enumerate(("standard", "effective", "norms")):
        for kind, (key, hollow) in enumerate({"cls": False, "sep": True}.items()):
            at = [place + 0.12 * (number - 1) + 0.04 * kind for place in range(len(models))]
            estimates(
                right, at, [each["shares"][name][key] for each in models], colour=COLOURS[number],
                marker=MARKERS[number], hollow=hollow, label=f"{name}, [{key.upper()}]",
            )  # fmt: skip
    right.set(ylabel="share of the weight", ylim=(0, None))
    right.set_xticks(range(len(models)), [name.replace(", ", "\n") for name in MODELS])
    right.set_title("weight on delimiters", fontsize=9)
    right.legend()
    headline(
        figure,
        "Norms order tokens as effective attention does with a rho of\n"
        + ", ".join(told(each["rho"]["effective and norms"]) for each in models)
        + " ("
        + "; ".join(MODELS)
        + ")",
    )
    return {"correlations": figure}


if __name__ == "__main__":
    main("norms", run, numbers, plot)
