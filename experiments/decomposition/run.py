"""e = i + h + f + c: what inputs, heads, feed-forwards and biases have in BERTs' embeddings.

    python -m experiments.decomposition.run --run     (eight minutes on one core)
    python -m experiments.decomposition.run --plot

Mickus, Paperno & Constant (2022): Figures 2 and 3, Table 2 and Appendix B. MiniLM on tweets and the
BERT of reactions, pretrained and finetuned, stand in for BERT-base, its finetuned variants, and
Europarl. Of the three the pretrained one has a masked-LM head. Reactions can't be had, so that
`measures.reactions` writes some from molecules. What is concluded is in `conclusions`.
"""

from __future__ import annotations

import pandas as pd

import experiments.decomposition.measures as measures
from capacity.progress import bar
from experiments.common.harness import Tables, main
from experiments.common.models import Smiles, minilm, molecules, reaction_bert, tweets
from experiments.decomposition.conclusions import numbers
from experiments.decomposition.measures import AFTER, BEFORE, ENGLISH, EPOCHS, SEEDS, SIZES
from experiments.decomposition.plots import plot


def run(smoke: bool) -> Tables:
    """Both models on their texts; with the masked-LM head, reactions and molecules."""
    groups, size, asked = (2, 24, 20) if smoke else SIZES
    english, tokenizer = minilm()
    before, after, smiles = reaction_bert("pretrained"), reaction_bert("finetuned"), Smiles()
    texts = tweets()["text"].sample(groups * size, random_state=0).tolist()
    words = tokenizer(texts, padding=True, return_tensors="pt")
    atoms = smiles.encode(measures.reactions(groups * size // 4))
    kinds = {"reactions": measures.reactions(asked), "molecules": molecules(2 * asked)}
    with bar() as tell:
        measured = {
            name: [
                measures.measure(model, one)
                for one in measures.in_groups(inputs, groups, name, tell)
            ]
            for name, model, inputs in (
                (ENGLISH, english, words),
                (BEFORE, before, atoms),
                (AFTER, after, atoms),
            )
        }
        default, learned = [], []
        for kind, some in kinds.items():
            table, questions = measures.answer(before, smiles, some, groups, kind, tell)
            default.append(table.assign(text=kind))
            learned += [
                measures.learn(questions, seed, 2 if smoke else EPOCHS).assign(text=kind)
                for seed in measures.told(SEEDS, f"learning from {kind}", tell)
            ]
    few = [(ENGLISH, english, words, size // 3), (BEFORE, before, atoms, size // 12)]
    return {
        "linear": pd.concat(
            measures.linear(of).assign(model=name) for name, of in measured.items()
        ),
        "importance": pd.concat(
            measures.importance(of).assign(model=name) for name, of in measured.items()
        ),
        "correlation": measures.correlation(measured[BEFORE], measured[AFTER]),
        "heads": pd.concat(measures.heads(of).assign(model=name) for name, of in measured.items()),
        "default": pd.concat(default),
        "learned": pd.concat(learned),
        "ranks": pd.concat(
            measures.ranks(model, {key: x[:n] for key, x in inputs.items()}).assign(model=name)
            for name, model, inputs, n in few
        ),
    }


if __name__ == "__main__":
    main("decomposition", run, numbers, plot)
