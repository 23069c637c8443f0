"""Published schemes are read, and proved with the number of terms that their names say."""

from __future__ import annotations

import gzip
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from capacity.errors import DecompositionFormatError, InvalidArgumentError
from capacity.rank import (
    rank_interval,
    read_decomposition,
    verify,
    verify_decomposition,
    write_decomposition,
)
from capacity.rank.schemes.files import read_scheme
from capacity.tensor import SparseTensor, matrix_multiplication, polynomial_product, read_tensor

DATA = Path(__file__).parent / "data"
ENDS = ("*.json", "*_L.sms", "*.m", "*.mpl", "*.exp")
FILES = sorted(path for end in ENDS for path in DATA.glob(f"*/{end}"))
STRUCTURED = [path for path in FILES if path.name.endswith(".factors.json")]
COMPLEX = [path for path in FILES if "complex" in path.name]
PRODUCTS = [path for path in FILES if path not in STRUCTURED + COMPLEX and "2o2o2" not in path.name]
# numbers of terms that names have behind the sizes; that of 2x3x3_tensor.mpl is in its last line
_NAMES = (r"(\d+)x(\d+)x(\d+)_m?(\d+)", r"(\d)(\d)(\d)m(\d+)", r"-(\d)(\d)(\d)-(\d+)")


def promised(path: Path) -> tuple[SparseTensor, int]:
    """Return the tensor and the number of terms that a file's name says."""
    if path.name == "2x3x3_tensor.mpl":
        return matrix_multiplication(2, 3, 3), 15
    found = next(m for pattern in _NAMES if (m := re.search(pattern, path.name)))
    n, m, p, rank = map(int, found.groups())
    return matrix_multiplication(n, m, p), rank


@pytest.mark.parametrize("path", PRODUCTS, ids=lambda path: path.name)
def test_a_scheme_for_matrices_is_proved(path: Path) -> None:
    tensor, rank = promised(path)
    for factors in (read_decomposition(path), read_decomposition(path, tensor)):
        assert factors.rank == rank
        assert verify_decomposition(tensor, factors).proved


@pytest.mark.parametrize("path", STRUCTURED, ids=lambda path: path.name)
def test_a_scheme_for_structured_matrices_is_proved(path: Path) -> None:
    kind, rank = re.fullmatch(r"(\w+-\d)_le(\d+)\.factors\.json", path.name).groups()  # type: ignore[union-attr]
    (file,) = path.parent.glob(f"{kind}_*.tns")
    tensor = read_tensor(file)
    factors = read_decomposition(path, tensor)
    assert factors.rank == int(rank)
    assert verify_decomposition(tensor, factors).proved


@pytest.mark.parametrize("path", COMPLEX, ids=lambda path: path.name)
def test_a_complex_scheme_is_proved_over_c_alone(path: Path, tmp_path: Path) -> None:
    tensor, rank = promised(path)
    factors = read_decomposition(path)
    assert factors.is_complex
    assert factors.rank == rank
    assert verify_decomposition(tensor, factors).proved
    # a published scheme over Q has as few terms
    real = rank_interval(tensor, start=factors, methods=["spanning tree"])
    assert real.upper > rank
    interval = real.over("C")
    assert interval.upper == rank
    assert interval.certificates.upper.field == "C"
    assert verify(interval, tensor).proved
    for field in ("R", "Q"):
        assert interval.over(field).upper > rank
        false = replace(interval.certificates.upper, field=field)
        assert not verify(false, tensor).proved
    (written,) = write_decomposition(interval.decomposition(), tmp_path / "again.json")
    assert verify_decomposition(tensor, read_decomposition(written)).proved
    with pytest.raises(InvalidArgumentError, match=r"complex numbers is written in one of .*json"):
        write_decomposition(factors, tmp_path / "again.npz")


def test_there_are_many() -> None:
    assert (len(PRODUCTS), len(STRUCTURED), len(COMPLEX)) == (36, 24, 2)


def test_it_is_told_whose_c_is_transposed() -> None:
    # AlphaEvolve's convention is p x n, and PLinOpt's matrix P has the rows of C
    assert read_scheme(DATA / "alphaevolve-CC-BY-4.0" / "2x4x5_32.json")[1]
    assert not read_scheme(DATA / "plinopt-CeCILL-B" / "3x3x6_40_L.sms")[1]


def test_three_files_are_found_by_any_of_them_and_taken_in_any_order(tmp_path: Path) -> None:
    folder = DATA / "plinopt-CeCILL-B"
    names = [f"2x2x2_7_DPS-smallrat-12.2034_{part}.sms" for part in "LRP"]
    by_one = read_decomposition(folder / names[2])
    in_order = read_decomposition([folder / names[i] for i in (2, 0, 1)])
    for first, second in zip(by_one.matrices, in_order.matrices, strict=True):
        assert (first == second).all()
    shutil.copy(folder / names[0], tmp_path)
    with pytest.raises(DecompositionFormatError, match=r"_R\.sms"):
        read_decomposition(tmp_path / names[0])


def test_a_short_product_is_one_of_polynomials_without_the_top() -> None:
    # modulo x^3, products of degrees 0 to 2 are the first three slices of the full product
    full = polynomial_product(3, 3)
    short = SparseTensor(
        full.indices[full.indices[:, 2] < 3], full.values[full.indices[:, 2] < 3], (3, 3, 3)
    )
    path = DATA / "plinopt-CeCILL-B" / "2o2o2_5_shortproduct_L.sms"
    factors = read_decomposition(path, short)
    assert factors.rank == 5
    assert verify_decomposition(short, factors).proved


def test_the_text_of_products_and_sums_says_what_the_matrices_say(tmp_path: Path) -> None:
    import json

    path = DATA / "perminov-MIT" / "3x4x5_m47_Z.json"
    whole = json.loads(path.read_text())
    texts = {name: whole[name] for name in ("n", "m", "multiplications", "elements")}
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    (tmp_path / "texts.txt").write_text("\n".join(texts["multiplications"] + texts["elements"]))
    for name in ("texts.json", "texts.txt"):
        factors = read_decomposition(tmp_path / name)
        assert factors.rank == 47
        assert verify_decomposition(matrix_multiplication(3, 4, 5), factors).proved


def test_a_file_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    raw = (DATA / "perminov-MIT" / "2x3x3_m15_ZT.json").read_bytes()
    path.write_bytes(gzip.compress(raw))
    assert read_decomposition(path).rank == 15
    path.write_bytes(gzip.compress(raw)[:-20])
    with pytest.raises(DecompositionFormatError, match="gzip"):
        read_decomposition(path)


def test_the_scheme_of_the_how_to_is_strassens(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "own-tensor.md").read_text()
    text = page.split("%%writefile strassen.txt\n")[1].split("```")[0]
    (tmp_path / "strassen.txt").write_text(text)
    product = matrix_multiplication(2, 2, 2)
    factors, turned = read_scheme(tmp_path / "strassen.txt")
    assert (factors.rank, turned) == (7, False)
    assert verify_decomposition(product, factors).proved
