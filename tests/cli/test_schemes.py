"""The command line checks published schemes, and starts from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity.tensor import complex_numbers, matrix_multiplication, write_tensor
from tests.cli.test_tensors import refused
from tests.commands import run, run_json
from tests.rank.schemes.test_published import DATA

SCHEME = DATA / "perminov-MIT" / "3x3x3_m23_Z.json"


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """The product of two 3 x 3 matrices."""
    path = tmp_path / "product.tns"
    write_tensor(matrix_multiplication(3, 3, 3), path)
    return path


def test_a_scheme_is_checked_and_its_convention_said(
    capsys: pytest.CaptureFixture[str], product: Path
) -> None:
    assert run(capsys, "verify", SCHEME, product) == (
        0,
        "upper bound 23 of the rank by a scheme (the file has C transposed), for the tensor of 27 "
        "entries: proved\n",
        "",
    )
    found = run_json(capsys, "verify", SCHEME, product)
    assert (found["proved"], found["lower"], found["upper"]) == (True, None, 23)
    # PLinOpt's P isn't transposed, and the three files are named by one
    sms = DATA / "plinopt-CeCILL-B" / "3x3x3_23_58_L.sms"
    assert "transposed" not in run(capsys, "verify", sms, product)[1]


def test_a_wrong_scheme_is_not_proved(
    capsys: pytest.CaptureFixture[str], product: Path, tmp_path: Path
) -> None:
    whole = json.loads(SCHEME.read_text())
    whole["u"][0] = [2 * x for x in whole["u"][0]]
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(whole))
    code, out, _ = run(capsys, "verify", wrong, product)
    assert code == 1
    assert "not proved" in out


def test_a_scheme_of_another_shape_and_one_of_facts_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "complex.npy"
    write_tensor(complex_numbers(), path)
    assert "the tensor has (2, 2, 2)" in refused(capsys, "verify", SCHEME, path)
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tb\tc\n")
    assert "matrices:3x3x3" in refused(capsys, "verify", SCHEME, facts)


def test_a_search_starts_from_a_scheme(capsys: pytest.CaptureFixture[str], product: Path) -> None:
    found = run_json(capsys, "rank", product, "--start", SCHEME)
    assert found["rank"]["upper"] == 23
    wrong = DATA / "perminov-MIT" / "3x3x4_m29_Z.json"
    assert "`factors`" in refused(capsys, "rank", product, "--start", wrong)


def test_a_name_stands_for_a_tensors_file(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "rank", "matrices:2x2x2")
    assert (found["source"], found["sha256"], found["shape"]) == ("matrices:2x2x2", None, [4, 4, 4])
    assert run(capsys, "verify", SCHEME, "matrices:3x3x3")[0] == 0
    assert "Did you mean `matrices`" in refused(capsys, "rank", "matrixes:2x2x2")
    assert "--multi is about" in refused(capsys, "rank", "w:3", "--multi", "first")


def test_a_file_of_that_name_is_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w:3").write_text("a\tb\tc\n")
    assert run_json(capsys, "rank", "w:3", "--format", "tsv")["triples"] == 1


def test_a_complex_scheme_bounds_the_rank_over_c_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scheme = DATA / "alphaevolve-CC-BY-4.0" / "4x4x4_48_complex.json"
    assert run(capsys, "verify", scheme, "matrices:4x4x4") == (
        0,
        "upper bound 48 of the rank over C by a scheme (the file has C transposed), for the tensor "
        "of 64 entries: proved\n",
        "",
    )
    row = run_json(capsys, "verify", scheme, "matrices:4x4x4", "--json")["certificates"][0]
    assert (row["field"], row["proved"]) == ("C", True)
    # without the published scheme over Q, which has as few terms
    alone = ("--method", "spanning tree")
    command = ("rank", "matrices:4x4x4", "--start", scheme, *alone, "--json")
    over_r, over_c = (run_json(capsys, *command, *more)["rank"] for more in ((), ("--field", "C")))
    # naively 64 over R: the scheme isn't real
    assert over_r["upper"] == 64
    assert (over_c["upper"], over_c["upper_by"]) == (48, "the given start")
    path = tmp_path / "c.json"
    assert run(capsys, *command[:-1], "--field", "C", "--certificate", path)[0] == 0
    code, out, _ = run(capsys, "verify", path, "matrices:4x4x4")
    assert code == 0
    assert "upper bound 48 of the rank over C" in out
