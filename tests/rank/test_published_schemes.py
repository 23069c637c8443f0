"""Published decompositions are found for products of matrices in any order, and check exactly."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from capacity.rank import rank_interval, verify
from capacity.rank.upper.published_schemes import FOLDER
from capacity.tensor import from_dense, named_tensor

FILES = sorted(FOLDER.glob("*.npz"))
METHOD = ["published scheme"]


def in_another_order(tensor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Other orders of modes and indices, and other signs."""
    tensor = tensor.transpose(rng.permutation(3))
    for mode in range(3):
        signs = rng.choice([-1, 1], tensor.shape[mode])
        order = rng.permutation(tensor.shape[mode])
        tensor = np.moveaxis(np.moveaxis(tensor, mode, -1)[..., order] * signs, -1, mode)
    return np.ascontiguousarray(tensor)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_file_bounds_its_tensor_in_any_order(path: Path) -> None:
    family, sizes, n_terms = path.stem.split("-")
    tensor = named_tensor(f"{family}:{sizes}").to_numpy()
    other = from_dense(in_another_order(tensor, np.random.default_rng(0)))
    interval = rank_interval(other, effort="quick", methods=METHOD)
    assert interval.upper == int(n_terms)
    assert interval.to_dict()["upper_by"] == "published scheme"
    verdict = verify(interval.certificates.upper, other)
    assert verdict.proved, verdict.reason


@pytest.mark.parametrize("sizes", ["x".join(order) for order in permutations("234")])
def test_products_of_another_format_have_none_of_it(sizes: str) -> None:
    # 2 x 3 x 4 isn't among the files, nor is anything of its shape
    interval = rank_interval(named_tensor(f"matrices:{sizes}"), effort="quick", methods=METHOD)
    assert interval.to_dict()["upper_by"] != "published scheme"


def test_another_tensor_of_the_shape_is_none() -> None:
    tensor = named_tensor("matrices:3x3x3").to_numpy().copy()
    place = tuple(np.argwhere(tensor)[0])
    tensor[place] = 2
    interval = rank_interval(from_dense(tensor), effort="quick", methods=METHOD)
    assert interval.to_dict()["upper_by"] != "published scheme"


def test_the_sources_list_every_file() -> None:
    sources = (FOLDER / "SOURCES.md").read_text()
    sizes = {path.stem.split("-")[1] for path in FILES}
    assert len(sizes) == len(FILES)
    assert all(each in sources for each in sizes)
