"""Measures of the four terms of tokens, and of what is answered from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from typing import Any

import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn.functional import cross_entropy

from capacity.transformer import (
    capture,
    constant_rank_bound,
    decompose,
    feed_forward_moments,
    feed_forward_r2,
    head_importance,
    output_head,
    partial_sum_accuracy,
)
from capacity.transformer.residual.additive_decomposition import TERMS
from capacity.transformer.residual.feed_forward import Moments
from capacity.transformer.residual.partial_sums import corrupted, subsets
from experiments.common.models import CLS, MASK, PAD, SEP, Smiles, molecules

Inputs = dict[str, Tensor]
Tell = Callable[[str, int, int], None]
LETTERS = "ihfc"
SUBSETS = list(subsets(len(TERMS)))
SUMS = [" + ".join(LETTERS[number] for number in chosen) for chosen in SUBSETS]
# how a product begins, and the two reactants that make it so
MADE_FROM = {
    "CC(=O)N": ("CC(=O)Cl", "N"),
    "CS(=O)(=O)N": ("CS(=O)(=O)Cl", "N"),
    "COc1": ("CI", "Oc1"),
    "CCOc1": ("CCI", "Oc1"),
    "COC(=O)": ("CO", "OC(=O)"),
    "CCOC(=O)": ("CCO", "OC(=O)"),
}
ENGLISH, BEFORE, AFTER = "MiniLM", "rxnfp pretrained", "rxnfp finetuned"
# groups of texts, tweets in each (and four times fewer reactions), reactions whose tokens are asked
SIZES = (20, 120, 2000)
# splits of the classifiers, and epochs of each
SEEDS = (0, 1, 2)
EPOCHS = 10
RATES = (1e-3, 1e-2)
BATCH = 512


def reactions(n: int) -> list[str]:
    """Acylations, alkylations and esterifications, ``reactant.reactant>>product``.

    The reactants are written from the product's first letters; no chemist has looked at them.
    """
    made = (
        f"{small}.{rest}{product[len(start) :]}>>{product}"
        for product in molecules(10 * n + 500, seed=1)
        for start, (small, rest) in MADE_FROM.items()
        if product.startswith(start)
    )
    return list(islice(made, n))


@dataclass(frozen=True, eq=False)
class Measured:
    """Measures of a group of texts: moments by layer, mu (layers, 4, tokens), (layers, heads)."""

    moments: list[Moments]
    importance: Tensor
    heads: Tensor


def measure(model: Any, inputs: Inputs) -> Measured:
    """Run a model on a group of texts."""
    captured = capture(model, inputs)
    return Measured(
        feed_forward_moments([captured]),
        decompose(captured).importance()[..., captured.mask],
        head_importance(captured)[..., captured.mask].mean(-1),
    )


def told(things: Any, what: str, tell: Tell) -> Iterator[Any]:
    """Go through things, and tell how far."""
    for done, thing in enumerate(things):
        tell(what, done, len(things))
        yield thing


def in_groups(inputs: Inputs, n: int, what: str, tell: Tell) -> Iterator[Inputs]:
    """Some groups of as many texts each, padded to their own longest."""
    for rows in told(torch.arange(len(inputs["input_ids"])).chunk(n), what, tell):
        longest = int(inputs["attention_mask"][rows].sum(1).max())
        yield {key: x[rows, :longest] for key, x in inputs.items()}


def linear(groups: list[Measured]) -> pd.DataFrame:
    """r^2 on each group of the maps fitted to either half of them."""
    half = len(groups) // 2
    halves = [range(half), range(half, len(groups))]
    rows = []
    for layer in range(len(groups[0].moments)):
        of = [group.moments[layer] for group in groups]
        for fitted in halves:
            whole = reduce(add, [of[number] for number in fitted])
            rows += [
                {"layer": layer + 1, "group": number, "tokens_fitted": whole.n_tokens,
                 "scored": "in sample" if number in fitted else "held out",
                 "r2": feed_forward_r2(whole, on)}
                for number, on in enumerate(of)
            ]  # fmt: skip
    return pd.DataFrame(rows)


def importance(groups: list[Measured]) -> pd.DataFrame:
    """Mean of mu over the tokens of each group, by layer and term."""
    return pd.DataFrame(
        {"layer": layer, "term": term, "group": number, "importance": mu.item(),
         "tokens": group.importance.shape[-1]}
        for number, group in enumerate(groups)
        for layer, of in enumerate(group.importance.mean(-1))
        for term, mu in zip(LETTERS, of, strict=True)
    )  # fmt: skip


def correlation(before: list[Measured], after: list[Measured]) -> pd.DataFrame:
    """Spearman's rho over the tokens of each group."""
    return pd.DataFrame(
        {"layer": layer, "term": LETTERS[term], "group": number,
         "rho": spearmanr(a.importance[layer, term], b.importance[layer, term]).statistic}
        for number, (a, b) in enumerate(zip(before, after, strict=True))
        for layer in range(1, len(a.importance))
        for term in range(len(TERMS))
    )  # fmt: skip


def heads(groups: list[Measured]) -> pd.DataFrame:
    """Mean of mu over all groups, by layer and head."""
    mean = torch.stack([group.heads for group in groups]).mean(0)
    return pd.DataFrame(
        {"layer": layer, "head": head, "importance": mu.item()}
        for layer, of in enumerate(mean, start=1)
        for head, mu in enumerate(of)
    )


@dataclass(frozen=True, eq=False)
class Questions:
    """Terms of the last embeddings, (questions, 4, d_model), targets, and the texts they are of."""

    terms: Tensor
    targets: Tensor
    texts: Tensor


def answer(
    model: Any, smiles: Smiles, written: list[str], groups: int, kind: str, tell: Tell
) -> tuple[pd.DataFrame, Questions]:
    """Number of right answers of the model's own head, and what it was asked."""
    head, generator = output_head(model), torch.Generator().manual_seed(0)
    special = torch.tensor([smiles.ids[word] for word in (PAD, CLS, SEP)])
    mask_token = smiles.ids[MASK]
    n_batches = max(groups, len(written) // 30)
    tables, parts, n_texts = [], [], 0
    for number, batch in enumerate(in_groups(smiles.encode(written), n_batches, kind, tell)):
        tokens = batch["input_ids"]
        read, chosen = corrupted(tokens, ~torch.isin(tokens, special), mask_token=mask_token,
                              d_vocab=len(smiles.words), generator=generator)  # fmt: skip
        split = decompose(capture(model, {**batch, "input_ids": read}))
        places = {"chosen": chosen, "masked": chosen & (read == mask_token)}
        tables += [
            partial_sum_accuracy(head, [(split, tokens, where)]).assign(
                sum=SUMS, places=name, group=number * groups // n_batches
            )
            for name, where in places.items()
        ]
        last = split.terms[-1][:, chosen].transpose(0, 1)
        parts.append((last, tokens[chosen], n_texts + chosen.nonzero()[:, 0]))
        n_texts += len(tokens)
    table = pd.concat(tables).assign(hits=lambda t: t["accuracy"] * t["n"])
    by_group = table.groupby(["sum", "places", "group"], sort=False)[["hits", "n"]].sum()
    return by_group.reset_index(), Questions(*map(torch.cat, zip(*parts, strict=True)))


def learn(asked: Questions, seed: int, epochs: int) -> pd.DataFrame:
    """Test accuracy of linear classifiers of each sum, and of saying the most frequent token."""
    return learned_answers(asked, seed, epochs)[0]


def learned_answers(asked: Questions, seed: int, epochs: int) -> tuple[pd.DataFrame, Tensor]:
    """The table of `learn`, and what each sum's classifier answers, (sums, questions of the test).

    Texts are split 80/10/10; validation chooses each classifier's learning rate and epoch. Words
    that aren't among the questions are left out: nothing would be learned of them.
    """
    generator = torch.Generator().manual_seed(seed)
    n_texts = int(asked.texts.max()) + 1
    tenth = (torch.randperm(n_texts, generator=generator) * 10 // n_texts)[asked.texts]
    train, valid, test = tenth < 8, tenth == 8, tenth == 9
    words, targets = asked.targets.unique(return_inverse=True)
    features = _z_scaled_sums(asked.terms, train)
    best, kept = torch.full((len(SUMS),), -1.0), torch.zeros(3, len(SUMS))
    answers = torch.zeros(len(SUMS), int(test.sum()), dtype=torch.int64)
    for rate in RATES:
        fits = _fits(features, targets, train, rate, generator)
        for epoch, (W, b) in enumerate(islice(fits, epochs), start=1):
            chosen, said = (torch.baddbmm(b, features[:, at], W).argmax(-1) for at in (valid, test))
            score, outcome = (
                (of == targets[at]).float().mean(1) for of, at in ((chosen, valid), (said, test))
            )
            now = torch.stack([outcome, *torch.tensor([rate, epoch]).expand(len(SUMS), 2).T])
            kept = torch.where(score > best, now, kept)
            answers = torch.where((score > best)[:, None], said, answers)
            best = torch.maximum(score, best)
    frequent = targets[train].bincount().argmax()
    table = pd.DataFrame(
        {"sum": SUMS, "seed": seed, "accuracy": kept[0], "rate": kept[1], "epoch": kept[2],
         "most_frequent": float((targets[test] == frequent).float().mean()),
         "n_train": int(train.sum()), "n_test": int(test.sum()), "n_words": len(words)}
    )  # fmt: skip
    return table, answers


def _z_scaled_sums(terms: Tensor, train: Tensor) -> Tensor:
    """All sums of terms, (15, questions, d_model), with mean 0 and deviation 1 in training."""
    of = torch.zeros(len(SUMS), len(TERMS))
    for row, chosen in enumerate(SUBSETS):
        of[row, list(chosen)] = 1
    features = torch.einsum("su,nud->snd", of, terms)
    features -= features[:, train].mean(1, keepdim=True)
    features /= features[:, train].std(1, keepdim=True)
    return features


def _fits(
    features: Tensor, targets: Tensor, train: Tensor, rate: float, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """After each epoch of AdamW, from 0: weights and biases of all classifiers, side by side."""
    sums, _, d_model = features.shape
    n_words, places = int(targets.max()) + 1, train.nonzero()[:, 0]
    W = torch.zeros(sums, d_model, n_words, requires_grad=True)
    b = torch.zeros(sums, 1, n_words, requires_grad=True)
    optimizer = torch.optim.AdamW([W, b], lr=rate)
    while True:
        for batch in places[torch.randperm(len(places), generator=generator)].split(BATCH):
            logits = torch.baddbmm(b, features[:, batch], W)
            # a mean for each classifier, and their sum, which keeps them apart
            loss = sums * cross_entropy(logits.mT, targets[batch].expand(sums, -1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield W.detach(), b.detach()


def ranks(model: Any, inputs: Inputs) -> pd.DataFrame:
    """Rank of c over tokens by layer, in float64, and how far the sum is from the model's e."""
    model = model.double()
    captured = capture(model, inputs)
    split = decompose(captured)
    with torch.no_grad():
        states = model.base_model(**inputs, output_hidden_states=True).hidden_states
    off = [
        float(((e - state)[split.mask]).abs().max() / state[split.mask].abs().max())
        for e, state in zip(split.embeddings, states, strict=True)
    ]
    model.float()
    bound = constant_rank_bound(captured)
    return pd.DataFrame(
        {"layer": range(len(bound)), "rank": split.constant_rank(), "bound": bound,
         # two for each sublayer so far
         "paper": [4 * layer for layer in range(len(bound))], "error": off,
         "tokens": int(split.mask.sum())}
    )  # fmt: skip
