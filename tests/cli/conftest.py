"""A folder as the examples of ``--help`` presuppose it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from capacity.cli import _run
from tests.oracles import EXAMPLES, ROOT

PLAN = """
[databases]
synthetic = { count = 2, seed = 0, max_triples = 12 }
[layers]
d_model = [2]
n_heads = [1]
d_head_qk = [1]
d_head_vo = [1, 2]
[recipe]
epochs = 5
"""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT and its tokenizer, as save_pretrained writes them."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("pretrained") / "model"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *["the", "court", "said", "that", "new"],
             *["antibiotics", "work", "against", "bacteria", "."]]  # fmt: skip
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(vocab_size=len(words), hidden_size=12, num_hidden_layers=2,
                        num_attention_heads=3, intermediate_size=8,
                        max_position_embeddings=64)  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small GPT-2 with its head, and its tokenizer."""
    from tests.recall.tiny_language_models import gpt2

    folder = tmp_path_factory.mktemp("language") / "language-model"
    model, tokenizer = gpt2()
    model.float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


TEMPLATES = """
born_in = ["{subject} was born in {object}.", "{object} is where {subject} was born."]
currency = "In {subject} people pay by {object}."
"""


@pytest.fixture(scope="session")
def workplace(
    tmp_path_factory: pytest.TempPathFactory, model_folder: Path, language_model: Path
) -> Path:
    """A folder with the repository's examples, and what other commands have made."""
    folder = tmp_path_factory.mktemp("workplace")
    shutil.copytree(EXAMPLES, folder / "examples")
    shutil.copytree(ROOT / "experiments" / "configs", folder / "experiments" / "configs")
    shutil.copytree(model_folder, folder / "model")
    shutil.copytree(language_model, folder / "language-model")
    (folder / "templates.toml").write_text(TEMPLATES)
    # W, of rank 3
    np.save(folder / "tensor.npy", np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]))
    # its three entries, in the order 001, 010, 100
    ones = {"u": [[1, 1, 0], [0, 0, 1]], "v": [[1, 0, 1], [0, 1, 0]], "w": [[0, 1, 1], [1, 0, 0]]}
    (folder / "scheme.json").write_text(json.dumps(ones))
    (folder / "plan.toml").write_text(PLAN)
    figure_1 = str(folder / "examples" / "figure-1.ttl")
    for made in (
        ["sweep", str(folder / "plan.toml"), "--out", str(folder / "demo")],
        ["rank", figure_1, "--certificate", str(folder / "rank.json")],
        ["dimension", figure_1, "--certificate", str(folder / "dimension.json")],
    ):
        assert _run(made) == 0
    return folder
