"""Encoders trained to classify tweets, in place of those that Bhardwaj et al. (2021) trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import torch

from capacity.transformer import EncoderClassifier, EncoderConfig, train_classifier
from capacity.transformer.encoder.config import Combine
from capacity.transformer.encoder.training import ClassifierTraining, Labelled
from capacity.transformer.encoder.vocabulary import Vocabulary, words_of
from experiments.common.models import tweets

COMBINE: dict[str, Combine] = {"Con": "concatenate", "Add": "add"}
N_HEADS = 8
# Table 1 of the paper: test accuracies at d_head_qk = 1, 2, 4 ... 256, concatenated and added
PAPERS = {
    "IMDB": ("884 888 886 888 846 824 803 788 755", "888 885 887 884 886 882 877 832 825"),
    "TREC": ("836 836 840 822 823 764 786 706 737", "841 842 835 842 841 836 809 809 771"),
    "SST": ("643 625 627 609 603 582 574 573 554", "599 618 628 633 628 629 592 581 586"),
    "SNLI": ("675 674 673 672 662 659 659 655 648", "683 677 674 676 673 669 663 664 655"),
    "Yelp": ("913 911 907 898 879 862 857 849 837", "914 915 916 914 915 916 910 909 891"),
    "DBPedia": ("979 977 977 971 966 961 957 951 949", "979 978 979 977 978 973 970 969 964"),
    "Sogou": ("915 907 898 900 893 888 868 858 838", "915 908 906 904 913 914 910 906 899"),
    "AG News": ("906 903 904 904 886 877 870 870 869", "902 908 907 906 897 899 901 897 893"),
    "Yahoo": ("695 690 684 664 644 627 616 597 574", "697 695 696 693 693 694 688 649 683"),
    "Amazon": ("924 925 923 922 900 892 887 882 873", "925 923 925 924 924 920 907 896 889"),
}


@dataclass(frozen=True, eq=False)
class Texts:
    """Labelled texts in three parts, as tokens."""

    n_words: int
    n_positions: int
    train: Labelled
    validation: Labelled
    test: Labelled


def papers_accuracies(name: str) -> pd.DataFrame:
    """The paper's Table 1 for "Con" or "Add": a row a set of texts, a column a d_head_qk."""
    row = list(COMBINE).index(name)
    table = {texts: [int(x) / 1000 for x in of[row].split()] for texts, of in PAPERS.items()}
    return pd.DataFrame.from_dict(table, orient="index", columns=[2**i for i in range(9)])


@cache
def distinct_tweets() -> pd.DataFrame:
    """All tweets but repeated ones: the same words must not be learnt and asked."""
    table = tweets()
    words = pd.Series([" ".join(words_of(text)) for text in table["text"]], index=table.index)
    return table[~words.duplicated()]


@cache
def sentences(seed: int, smoke: bool) -> Texts:
    """Single tweets: 12,000 to learn, 3,000 to choose the epoch, 3,000 to test."""
    sizes = (300, 100, 100) if smoke else (12_000, 3000, 3000)
    table = distinct_tweets().sample(sum(sizes), random_state=seed)
    return _texts(table, sizes, n_positions=64)


def documents(smoke: bool) -> Texts:
    """Tweets of one class put together: 1 to 30, and 45 in the texts whose ranks are taken."""
    sizes = (20, 10, 4) if smoke else (3000, 300, 100)
    table, rng = distinct_tweets().sample(frac=1, random_state=0), np.random.default_rng(0)
    pools = (table[:30_000], table[30_000:33_500], table[33_500:])
    rows = []
    for pool, size, (least, most) in zip(pools, sizes, ((1, 30), (1, 30), (45, 45)), strict=True):
        texts = [pool.loc[pool["sentiment"] == c, "text"].to_numpy() for c in range(3)]
        for c in rng.integers(3, size=size):
            drawn = rng.choice(texts[c], rng.integers(least, most + 1))
            rows.append({"text": " ".join(drawn), "sentiment": c})
    return _texts(pd.DataFrame(rows), sizes, n_positions=512)


def _texts(table: pd.DataFrame, sizes: Sequence[int], n_positions: int) -> Texts:
    # so that the unknown word is learnt as well, words must come twice
    vocabulary = Vocabulary.of_texts(table["text"].iloc[: sizes[0]], at_least=2)
    parts: list[Labelled] = []
    for start, end in pairwise(np.cumsum([0, *sizes])):
        part = table.iloc[start:end]
        tokens, mask = vocabulary.encode(part["text"].tolist(), n_positions)
        parts.append((tokens, torch.tensor(part["sentiment"].to_numpy()), mask))
    return Texts(len(vocabulary), n_positions, *parts)


def trained(
    texts: Texts, name: str, d_head_qk: int, d_model: int, *, epochs: int, seed: int
) -> tuple[EncoderClassifier, ClassifierTraining]:
    """An encoder of 8 heads, trained as in section 6 but for the number of epochs."""
    config = EncoderConfig(texts.n_words, 3, texts.n_positions, d_model, N_HEADS, d_head_qk,
                           4 * d_model, COMBINE[name])  # fmt: skip
    model = EncoderClassifier(config, seed=seed)
    tokens, labels, mask = texts.train
    training = train_classifier(model, tokens, labels, mask=mask, epochs=epochs, seed=seed,
                                validation=texts.validation)  # fmt: skip
    return model, training
