"""The catalogue of small bilinear maps: proved, consistent with what is published, and exported."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from capacity.rank import (
    load_certificates,
    read_decomposition,
    verify,
    verify_decomposition,
)
from capacity.tensor import named_tensor
from capacity.tensor.names import PAIRS
from experiments.common.harness import committed
from experiments.optimal.catalogue import (
    NINE,
    families,
    known_of,
    same_tensor,
    scheme_of,
    source_of,
    structured_products,
)
from experiments.optimal.export import export
from experiments.optimal.run import check, row_of

NAMES = [name for names in families().values() for name in names]


def test_every_tensor_is_in_the_table_once() -> None:
    table = committed("optimal", "tensors")
    assert table["name"].tolist() == NAMES
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.slow
def test_no_tensor_has_two_rows() -> None:
    of_three = [name for name in NAMES if named_tensor(name).order == 3]
    assert [pair for pair in itertools.combinations(of_three, 2) if same_tensor(*pair)] == []
    # all products of structured matrices are there, by one name or another
    named = structured_products()
    assert sum(len(others) + 1 for others in named.values()) == 2 * len(PAIRS)
    assert same_tensor("symmetric-wedge:2", "symmetric-symmetric:2")
    assert not same_tensor("symmetric-wedge:3", "symmetric-symmetric:3")


def test_no_end_contradicts_what_is_published() -> None:
    for row in committed("optimal", "tensors").to_dict("records"):
        assert row["lower"] <= row["upper"], row["name"]
        known, scheme = known_of(row["name"]), scheme_of(row["name"])
        if known is not None:
            assert row["lower"] <= known.upper, row["name"]
            assert row["upper"] >= known.lower, row["name"]
        if scheme is not None:
            assert row["upper"] <= row["published_upper"], row["name"]
            assert source_of(scheme) == row["published_by"]
        for word in ("rational", "complex", "border"):
            assert row[f"{word}_lower"] <= row[f"{word}_upper"], row["name"]
        assert row["complex_lower"] <= row["upper"]
        assert row["border_lower"] <= row["lower"]


def test_the_page_marks_what_is_proved_optimal() -> None:
    root = Path(__file__).parents[1] / "experiments" / "optimal"
    found = json.loads((root / "results" / "optimal.json").read_text(encoding="utf-8"))
    text = (root / "README.md").read_text(encoding="utf-8")
    assert text.count("**proved optimal**") == found["schemes_optimal"] > 10
    assert all(f"| `{name}`" in text for name in NAMES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 5))]
)
def test_rows_are_proved(part: int) -> None:
    for row in committed("optimal", "tensors").iloc[part::5].to_dict("records"):
        assert check(row), row["name"]


@pytest.mark.parametrize("name", ["w:4", NINE, "skew-general:3"])
def test_a_row_is_found_again(name: str) -> None:
    kept = committed("optimal", "tensors").set_index("name").loc[name]
    row = row_of(name)
    assert (row["lower"], row["upper"]) == (kept["lower"], kept["upper"])
    assert check(row)


def test_files_of_the_catalogue_are_read_and_proved(tmp_path: Path) -> None:
    name = "symmetric-symmetric:2"
    tensor = named_tensor(name)
    written = export(tmp_path, [name])
    assert {path.name for path in written} == {
        "symmetric-symmetric_2.certificates.json", "symmetric-symmetric_2.json",
        "symmetric-symmetric_2.npz", "symmetric-symmetric_2_L.sms",
        "symmetric-symmetric_2_P.sms", "symmetric-symmetric_2_R.sms",
    }  # fmt: skip
    assert verify(load_certificates(written[0]), tensor).proved
    for ending in (".json", ".npz", "_L.sms"):
        factors = read_decomposition(tmp_path / f"symmetric-symmetric_2{ending}", tensor)
        assert (factors.rank, verify_decomposition(tensor, factors).proved) == (5, True)


def test_an_end_without_terms_has_no_scheme_and_an_unknown_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = committed("optimal", "tensors")
    (name, *_) = table[table["upper_by"] == "pencil"]["name"].tolist() or ["w:4"]
    written = export(tmp_path, [name])
    assert written[0].name.endswith(".certificates.json")
    if len(written) == 1:
        assert name in capsys.readouterr().out
    with pytest.raises(SystemExit, match="The catalogue has no tensor nothing:3"):
        export(tmp_path, ["nothing:3"])
