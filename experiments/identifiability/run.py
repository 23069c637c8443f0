"""Is attention unique, and what does that cost? The claims of Bhardwaj et al. (2021).

    python -m experiments.identifiability.run --run     (eleven minutes on two cores)
    python -m experiments.identifiability.run --plot

For IMDB and nine other sets stand tweets of three classes: one by one for Table 1; put together, to
documents of one class, for ranks, which need long texts. Encoders for ranks have the paper's sizes
(d_model 512, 8 heads, d_head_qk 64), those for Table 1 a quarter of it (d_model 128). MiniLM, 6
layers of 12 heads with d_head_qk = d_head_vo = 32, is a pretrained model beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import torch

from capacity.progress import bar
from capacity.transformer import ActivationCache, EncoderClassifier, capture
from capacity.transformer.encoder.training import accuracy
from experiments.common.harness import Tables, by_processes, main
from experiments.common.models import minilm
from experiments.identifiability.conclusions import numbers
from experiments.identifiability.encoders import (
    COMBINE,
    distinct_tweets,
    documents,
    sentences,
    trained,
)
from experiments.identifiability.measures import (
    boundary,
    defects,
    first_head,
    logits,
    ranks,
    stages,
    witness,
)
from experiments.identifiability.plots import plot

LENGTHS = {
    "Con": (16, 32, 48, 64, 65, 66, 80, 96, 128, 192, 256, 384, 512),
    "Add": (16, 32, 64, 66, 96, 128, 192, 256, 320, 384, 448, 480, 496, 512),
    "MiniLM": (8, 16, 24, 32, 33, 34, 48, 64, 96, 128, 192, 256),
    "small Con": (18, 20, 24, 32, 40),
}
# for Figure 5: of more than d_head_vo + 1 tokens
LONGER = {"Con": (66, 72, 80, 96, 112, 128), "MiniLM": (34, 40, 48, 64, 96, 128)}
QUERY_KEY = (1, 2, 4, 8, 16, 32, 64, 128)
# near the boundary that is counted for d_head_vo = 16
NEAR = (2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16)
SEEDS = range(5)
EPOCHS = 8


def run(smoke: bool) -> Tables:
    """Ranks and P4 of trained encoders and of MiniLM, and Table 1."""
    jobs: list[Callable[[], Tables]] = [partial(of_large, name, smoke) for name in COMBINE]
    jobs += [partial(of_minilm, smoke)]
    jobs += [partial(of_small, d, smoke) for d in (NEAR[::7] if smoke else NEAR)]
    jobs += [
        partial(one_accuracy, name, d, seed, smoke)
        for seed in (SEEDS[:2] if smoke else SEEDS)
        for d in (QUERY_KEY[::7] if smoke else QUERY_KEY)
        for name in COMBINE
    ]
    found: dict[int, Tables] = {}
    with bar() as tell:
        for number, tables in by_processes("identifiability", _call, jobs, in_process=smoke):
            found[number] = tables
            tell("trainings and analyses", len(found), len(jobs))
    parts: dict[str, list[pd.DataFrame]] = {"boundary": [boundary()]}
    for number in sorted(found):
        for key, table in found[number].items():
            parts.setdefault(key, []).append(table)
    return {key: pd.concat(of, ignore_index=True) for key, of in parts.items()}


def _call(job: Callable[[], Tables]) -> Tables:
    torch.set_num_threads(1)
    return job()


def of_large(name: str, smoke: bool) -> Tables:
    """Ranks in an encoder of the paper's sizes; if heads are concatenated, P4 as well."""
    texts = documents(smoke)
    d, epochs = (64, 1) if smoke else (512, 4)
    model, training = trained(texts, name, d // 8, d, epochs=epochs, seed=0)
    tokens = texts.test[0]
    lengths = LENGTHS[name][:: 6 if smoke else 1]
    best = max(training.validation_accuracies)
    tables = {
        "documents": pd.DataFrame([{"model": name, "validation_accuracy": best}]),
        "ranks": pd.concat(
            ranks(name, first_head(model.capture(part[:, :n])), first=4 * i)
            for n in lengths
            for i, part in enumerate(tokens.split(4))
        ),
        "heads": pd.concat(ranks(name, model.capture(tokens[:4, :n])) for n in lengths),
    }
    if name == "Add":
        before = EncoderClassifier(model.config, seed=0)
        tables["stages"] = pd.concat(
            stages(of.capture(tokens[i : i + 4, :n])).assign(weights=weights)
            for weights, of in (("trained", model), ("initial", before))
            for n in lengths
            for i in range(0, 4 if smoke else 20, 4)
        )
        return tables
    tables["logits"] = pd.concat(
        logits(name, model.capture(tokens[i : i + 1, :n]), i, [(0, 0)], draws=5)
        for n in LONGER[name][:: 6 if smoke else 1]
        for i in range(1 if smoke else 20)
    )
    if not smoke:
        longer = model.capture(tokens[:1, : LONGER[name][0]])
        tables["witnesses"] = witness(name, longer, 0, 0, steps=3)
    return tables


def of_minilm(smoke: bool) -> Tables:
    """Ranks in all 72 heads, ranks of logits, and other attention in one head of each layer."""
    name, (model, tokenizer) = "MiniLM", minilm()
    texts = distinct_tweets()["text"].sample(frac=1, random_state=1).tolist()

    def caught(i: int, n: int) -> ActivationCache:
        text = " ".join(texts[25 * i : 25 * i + 25])
        return capture(
            model, dict(tokenizer(text, return_tensors="pt", truncation=True, max_length=n))
        )

    n_texts, n_layers = (1, 1) if smoke else (20, 6)
    lengths, longer = (of[name][:: 6 if smoke else 1] for of in (LENGTHS, LONGER))
    some = [(layer, head) for layer in range(6) for head in range(12)][:: 12 if smoke else 1]
    return {
        "heads": pd.concat(
            ranks(name, caught(i, n), first=i) for n in lengths for i in range(n_texts)
        ),
        "logits": pd.concat(
            logits(name, caught(i, n), i, some, draws=1)
            for n in longer
            for i in range(min(n_texts, 5))
        ),
        "witnesses": pd.concat(
            witness(name, caught(0, 40), layer, 0, steps=1 if smoke else 6)
            for layer in range(n_layers)
        ),
        "defects": defects(name, caught(0, 40), some[::9]),
    }


def of_small(d_head_qk: int, smoke: bool) -> Tables:
    """P4 in a small Con encoder, d_head_vo = 16, in heads that training made."""
    name, texts = "small Con", sentences(0, smoke)
    model, _ = trained(texts, "Con", d_head_qk, 128, epochs=1 if smoke else 3, seed=0)
    tokens, _, mask = texts.test
    rows = tokens[mask][:80].view(2, 40)
    heads = [(0, head) for head in range(1 if smoke else 4)]
    tables = {
        "defects": pd.concat(
            defects(name, model.capture(rows[i : i + 1, :n]), heads)
            for n in LENGTHS[name][:: 4 if smoke else 1]
            for i in range(len(rows))
        )
    }
    if d_head_qk == max(NEAR):
        at = model.capture(rows[:1, :24])
        tables["witnesses"] = pd.concat(witness(name, at, 0, head, steps=30) for head in range(8))
    return tables


def one_accuracy(name: str, d_head_qk: int, seed: int, smoke: bool) -> Tables:
    """One run of Table 1."""
    texts = sentences(seed, smoke)
    epochs = 2 if smoke else EPOCHS
    model, training = trained(texts, name, d_head_qk, 128, epochs=epochs, seed=seed)
    tokens, labels, mask = texts.test
    row = {
        "heads": name,
        "d_head_qk": d_head_qk,
        "seed": seed,
        "n_parameters": model.config.n_parameters,
        "accuracy": accuracy(model, tokens, labels, mask),
        "best_epoch": training.best_epoch,
        "epochs": epochs,
        "majority": float((labels == texts.train[1].mode().values).float().mean()),
    }
    return {"accuracy": pd.DataFrame([row])}


if __name__ == "__main__":
    main("identifiability", run, numbers, plot)
