"""Does effective attention disregard [SEP] but not [CLS]? The claims of Sun and Marasovic (2021).

    python -m experiments.effective_attention.run --run     (one minute on one core)
    python -m experiments.effective_attention.run --plot

For BERT-base on GLUE stand MiniLM (d_head_vo 32) on pairs of tweets, and a BERT of reactions
(d_head_vo 64), before and after finetuning, on molecules of MOSES. Every sentence has more tokens
than d_head_vo: up to that effective attention is attention. Rows are those of tokens that aren't
delimiters unless it says otherwise; heads are averaged first.
"""

from __future__ import annotations

from collections import defaultdict

import pandas as pd
import torch

from capacity.progress import bar
from capacity.transformer import capture
from experiments.common.harness import Tables, main
from experiments.common.models import minilm, reaction_bert
from experiments.common.texts import reactions, tweet_pairs
from experiments.effective_attention.conclusions import numbers
from experiments.effective_attention.measures import (
    cosines,
    example,
    of_sentence,
    times,
    with_padding,
)
from experiments.effective_attention.plots import TEXTS, plot

SHORT, LONG, PRETRAINED, FINETUNED = TEXTS
TWEETS = {64: SHORT, 128: LONG}
CELL = ["texts", "attention", "layer", "kind"]


def run(smoke: bool) -> Tables:
    """Every sentence in its models, under three kinds of attention; then padding, and times."""
    n = 1 if smoke else 32
    model, tokenizer = minilm()
    berts = {PRETRAINED: reaction_bert("pretrained"), FINETUNED: reaction_bert("finetuned")}
    jobs = [
        (i, sentence, {name: model})
        for length, name in TWEETS.items()
        for i, sentence in enumerate(tweet_pairs(tokenizer, n, length))
    ] + [(i, sentence, berts) for i, sentence in enumerate(reactions(n))]
    parts: dict[str, list[pd.DataFrame]] = defaultdict(list)
    with bar() as tell, torch.no_grad():
        for done, (i, sentence, models) in enumerate(jobs, start=1):
            caught = {name: capture(of, sentence.inputs) for name, of in models.items()}
            for name, captured in caught.items():
                for key, table in of_sentence(sentence, captured).items():
                    parts[key].append(table.assign(texts=name, sentence=i))
            if models is berts:
                parts["cosine"].append(cosines(*caught.values()).assign(sentence=i))
            tell("sentences", done, len(jobs))
        tables = {key: _coarse(pd.concat(of, ignore_index=True)) for key, of in parts.items()}
        first = jobs[0][1]
        of_first = tables["shares"][tables["shares"]["texts"] == TWEETS[64]]
        at = capture(model, first.inputs)
        tables["example"] = _coarse(example(of_first, at, first))
        tables["padding"] = with_padding(model, tokenizer, n)
        timed = {
            TWEETS[128]: (model, jobs[n : 2 * n]),
            FINETUNED: (berts[FINETUNED], jobs[2 * n :]),
        }
        tables["times"] = pd.concat(
            times(of, [s.inputs for _, s, _ in some[:8]], 1 if smoke else 5).assign(texts=name)
            for name, (of, some) in timed.items()
        )
    for key, values in (("shares", ["share", "weight"]), ("final", ["largest"])):
        every = tables.pop(key).groupby
        for by in ("sentence", "head"):
            means = every([*CELL, by], sort=False, as_index=False)[values].mean()
            tables[f"{key}-by-{by}"] = _coarse(means)
    return tables


def _coarse(table: pd.DataFrame) -> pd.DataFrame:
    """Real numbers to multiples of 2^-13, which take a third of the room."""
    real = table.select_dtypes("number").columns.difference(table.select_dtypes("int").columns)
    return table.assign(**{name: (table[name] * 2**13).round() / 2**13 for name in real})


if __name__ == "__main__":
    main("effective_attention", run, numbers, plot)
