"""Artefacts of completion, and what foretells that held-out facts are completed.

    python -m experiments.completion.run --run     (a quarter of an hour on two cores)
    python -m experiments.completion.run --plot

L. Z. Wong, 'Generalization is hallucination' through the lens of tensor completions (arXiv
2502.17305, 24 February 2025), a position paper. Its full text couldn't be read: a search gave its
abstract, its introduction and the beginning of its section 2 (arxiv.org/html/2502.17305v1), and
summaries by others. Its claims, and where each was read:

* a model completes the tensor of its data, and *artefacts*, novel sentences that it predicts with
  high probability, come of that; on toy models and datasets they are many, and more when models are
  smaller; generalisations and hallucinations both are artefacts (the paper's introduction);
* the models were trained on random datasets of triples; artefacts are often 5 to 20 times the
  training triples, stay many in models with many parameters, and fall with overfitting; the error
  of generalisation is lower where the effective rank of training and test data together is close to
  that of the training data (arxivlens.com, a summary written by a machine: second hand);
* artefacts come of fibers that aren't observed and of a limited rank, and what is a generalisation
  is for data outside to say (sciencestack.ai, a summary);
* a tensor represents a database if both agree on its pairs, and the effective rank is the least
  rank of one that does (the author's first paper, 2502.05076, section 2.1, in full).

Its thresholds, split, layers, rank estimator and the pairs that it counts among weren't found.
So several of each are counted here, and each claim is tested under each of them. No verdict here is
about the paper's own numbers.

Fixed before the run, after a pilot on other databases that tried the code and its times:

* the databases, `data.CELLS`: of the paper's kind; structured ones whose copies between
  predicates can or can't be completed; own objects, whose effective rank is their number whatever
  is held out; group tables and Latin squares; and small ones, whose effective ranks are searched
  longest. A tenth and three tenths of the facts are held out;
* layers from too small to far too large, `LAYERS`, two recipes, one start; each taught the facts
  alone, and, where 20 pairs have no fact, with half of these pairs taught to be "unknown"; and in
  databases of the paper's kind layers that go on to the end of the epochs (best recipe);
* counts are exact, over all pairs of a subject and a predicate, and in databases of the paper's
  kind over all pairs of tokens too. Every interval is over databases; layers are a fixed list.

Hypotheses, as the claims are read:

1. In databases of the paper's kind the mean number of artefacts a training triple is from 5 to 20,
   for either set of pairs, by argmax or at 0.95. Over subjects and predicates it can't be above
   n_subjects n_predicates / n_triples - 1, whatever the layer: that bound is told beside it.
2. It falls as layers grow: the slope on log2 of all parameters, within databases, is below zero, at
   argmax and 0.95, among all layers and among those that recall all that they were taught.
3. It falls when training goes on after everything is recalled.
4. Of layers that recall everything taught, more test facts are right where less is added to the
   effective rank: logistic regression, a constant for each layer and share, standardised measures;
   and it tells something beside its rivals (`foretold.RIVALS`): the log-likelihood of
   databases of other folds rises. What is added is known exactly where both intervals close;
   elsewhere the difference of upper ends is an estimate, and stands beside the most that
   certificates allow, and the least. Where they say that nothing is added, test facts are right
   more often than by an answer that looks at the predicate alone.
5. The probability of "unknown" tells untaught pairs from facts, and from facts held out, with an
   area under the ROC curve above one half, and better than the lack of confidence of the same layer
   that wasn't taught the token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from capacity import LayerConfig, Recipe
from capacity.evaluator import auroc, completion_artefacts, pair_logits
from capacity.layer import AttentionLayer, train
from capacity.progress import bar
from experiments.common.harness import BEST, PLAIN, Tables, main, rows_of
from experiments.completion import conclusions, plots
from experiments.completion.data import (
    CELLS,
    SHARES,
    UNKNOWN,
    Split,
    can_be_unknown,
    database_of,
    held_out_of,
    measures_of,
    split_of,
)

RECIPES = {"plain": PLAIN, "best": BEST}
LAYERS = {
    each.name: each
    for each in (
        LayerConfig(2, 1, 1, 1),
        LayerConfig(3, 2, 2, 2),
        LayerConfig(4, 2, 2, 2),
        LayerConfig(4, 4, 2, 2),
        LayerConfig(6, 6, 2, 2),
        LayerConfig(8, 8, 4, 4),
    )
}
THRESHOLDS = ("argmax", 0.5, 0.75, 0.95, 0.99)
EPOCHS = 2000
# fewer pairs without a fact have no area under a curve
LEAST_PAIRS = 10
# (cell, database, epochs, step through the layers)
Task = tuple[int, int, int, int]


def run(smoke: bool) -> Tables:
    """A row for each layer, and one for each database and share held out."""
    numbers = [i for i, _ in enumerate(CELLS)]
    if smoke:
        # one cell of each block, or two
        numbers = [0, 2, 11, 20, 26, 29]
    tasks: list[Task] = [
        (number, i, 200 if smoke else EPOCHS, 5 if smoke else 1)
        for number in numbers
        for i in range(2 if smoke else CELLS[number].count)
    ]
    with bar() as tell:
        found = rows_of("completion", rows_of_task, tasks, tell, in_process=smoke)
    return {
        key: pd.DataFrame([row for each in found for row in each[key]])
        for key in ("runs", "splits")
    }


def rows_of_task(task: Task) -> dict[str, Any]:
    """All layers of one database, and what is known of it before they are trained."""
    number, i, epochs, every = task
    torch.set_num_threads(1)
    cell, db = CELLS[number], database_of(number, i)
    name = f"{number}-{i}"
    held_out = held_out_of(db, number, i)
    effort = "standard" if cell.block == "small" else "quick"
    if epochs < EPOCHS:
        # bounds without a search, for the tests
        effort = "none"
    about = {"block": cell.block, "structure": cell.structure, "copies": cell.copies,
             "density": db.n_triples / (db.shape[0] * db.shape[1])}  # fmt: skip
    splits = [{"database_id": name, **about, **row} for row in measures_of(db, held_out, effort)]
    rows: list[dict[str, Any]] = []
    for share in SHARES:
        for taught in ("facts", "unknown") if can_be_unknown(db) else ("facts",):
            split = split_of(db, held_out[share], unknown=taught == "unknown", seed=i)
            for kind, layer in ((k, of) for k in RECIPES for of in list(LAYERS.values())[::every]):
                ends = ["recalled"]
                if (cell.block, taught, kind, share) == ("paper", "facts", "best", SHARES[0]):
                    ends.append("last epoch")
                rows.extend(
                    {
                        "database_id": name, "held_out": share, "layer_id": layer.name,
                        "kind": kind, "taught": taught, "until": until,
                        **_row(layer, split, kind, until, epochs, i, cell.block == "paper"),
                    }
                    for until in ends
                )  # fmt: skip
    return {"runs": rows, "splits": splits}


def _row(
    config: LayerConfig, split: Split, kind: str, until: str, epochs: int, seed: int, any_pair: bool
) -> dict[str, Any]:
    """Train one layer, and count what it says of each group of pairs."""
    db = split.train
    layer = AttentionLayer(config, db.n_tokens, seed=seed)
    stop = {} if until == "recalled" else {"stop_tau": 0}
    done = train(layer, db, Recipe(**{**RECIPES[kind], "epochs": epochs, **stop}))
    row: dict[str, Any] = {
        "trained_for": done.epochs,
        "n_all_parameters": sum(weight.numel() for weight in layer.parameters()),
    }
    token = next((i for i, term in enumerate(db.tokens) if term.text == UNKNOWN), None)
    facts = db.token_triples.astype(np.int64)
    facts = facts if token is None else facts[facts[:, 2] != token]
    if not all(bool(torch.isfinite(weight).all()) for weight in layer.parameters()):
        # a diverged layer has no answers; the table has NaN
        return row
    named = None if token is None else UNKNOWN
    for among in ("roles", "tokens") if any_pair else ("roles",):
        said = completion_artefacts(layer, db, thresholds=THRESHOLDS, among=among, unknown=named)
        row[f"pairs_{among}"] = said.n_pairs
        row |= {f"artefacts_{among}_{_short(t)}": said.artefacts[t] for t in THRESHOLDS}
        row["n_facts"] = said.n_facts
    of_facts, of_test = (pair_logits(layer, group[:, :2]) for group in (facts, split.test))
    row["facts_argmax"] = float((_ranks(of_facts, facts[:, 2]) == 1).mean())
    ranks = _ranks(of_test, split.test[:, 2])
    right = _log_p(of_test)[np.arange(len(ranks)), split.test[:, 2]]
    row |= {
        "test_right": int((ranks == 1).sum()), "test_right_p95": int((right >= np.log(0.95)).sum()),
        "test_mrr": float((1 / ranks).mean()),
    }  # fmt: skip
    if len(split.nothing) >= LEAST_PAIRS:
        row |= _told_apart(of_facts, of_test, pair_logits(layer, split.nothing), token)
    return row


def _told_apart(
    of_facts: NDArray[np.float64],
    of_test: NDArray[np.float64],
    of_nothing: NDArray[np.float64],
    token: int | None,
) -> dict[str, float]:
    """Areas under the ROC curve of untaught pairs against facts, and the shares said unknown."""
    groups = {"facts": of_facts, "test": of_test, "nothing": of_nothing}
    logs = {name: _log_p(z) for name, z in groups.items()}
    row: dict[str, float] = {}
    for against in ("facts", "test"):
        row[f"auroc_unsure_{against}"] = auroc(-logs["nothing"].max(1), -logs[against].max(1))
        if token is not None:
            row[f"auroc_unknown_{against}"] = auroc(
                logs["nothing"][:, token], logs[against][:, token]
            )
    if token is not None:
        row |= {
            f"unknown_said_to_{name}": float((z.argmax(1) == token).mean())
            for name, z in groups.items()
        }
    return row


def _ranks(z: NDArray[np.float64], objects: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rank of each object's logit among all tokens, the middle one of equals."""
    own = np.take_along_axis(z, objects[:, None], axis=1)
    return 1 + (z > own).sum(axis=1) + ((z == own).sum(axis=1) - 1) / 2


def _log_p(z: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _short(threshold: str | float) -> str:
    return threshold if isinstance(threshold, str) else f"p{round(100 * threshold)}"


def numbers(tables: Tables) -> dict[str, Any]:
    """Artefacts, what foretells completion, and how well "unknown" is told."""
    return conclusions.conclusions(tables["runs"], tables["splits"])


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Artefacts by layer, test facts by what is added, and areas under the curve."""
    return plots.figures(tables["runs"], tables["splits"], found)


if __name__ == "__main__":
    main("completion", run, numbers, plot)
