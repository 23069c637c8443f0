"""Write the facts of some synsets of WordNet 3.0 beside this file.

    python -m experiments.size.wordnet.extract FOLDER

FOLDER holds data.noun, as Debian's package wordnet-base installs it in /usr/share/wordnet. The
synsets are `SYNSETS` nouns drawn at random; their facts are the pointers of `POINTERS` to other
nouns, and the lexicographer's file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

SYNSETS = 2500
# wndb(5WN): symbols of pointers
POINTERS = {
    "@": "hypernym", "@i": "instance hypernym", "#m": "member holonym", "#s": "substance holonym",
    "#p": "part holonym", "%m": "member meronym", "%s": "substance meronym", "%p": "part meronym",
    ";c": "topic", ";r": "region", "!": "antonym",
}  # fmt: skip
FACTS = Path(__file__).with_name("facts.parquet")


def facts_of(data: Path) -> Iterator[tuple[str, str, str]]:
    """Facts of the chosen synsets; each is called by its first word and its offset."""
    lines = [line for line in data.read_text().splitlines() if not line.startswith(" ")]
    fields = {line[:8]: line.split(" | ")[0].split() for line in lines}
    names = {offset: f"{of[4]}.{offset}" for offset, of in fields.items()}
    chosen = np.random.default_rng(28).choice(sorted(fields), SYNSETS, replace=False)
    for offset in sorted(chosen.tolist()):
        of = fields[offset]
        yield names[offset], "lexicographer file", of[1]
        # words, each with a number, in hexadecimal; then pointers, in decimal
        start = 4 + 2 * int(of[3], 16)
        for i in range(int(of[start])):
            symbol, target, kind, _ = of[start + 1 + 4 * i : start + 5 + 4 * i]
            if symbol in POINTERS and kind == "n":
                yield names[offset], POINTERS[symbol], names[target]


if __name__ == "__main__":
    rows = pd.DataFrame(
        facts_of(Path(sys.argv[1]) / "data.noun"), columns=["subject", "predicate", "object"]
    )
    rows.drop_duplicates().to_parquet(FACTS, index=False, compression="zstd")
