"""The command line takes tensors, and facts of any number of columns."""

import gzip
import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest

from capacity.database import load
from capacity.tensor import (
    SparseTensor,
    complex_numbers,
    from_dense,
    read_tensor,
    w_state,
    write_tensor,
)
from tests.commands import run, run_json
from tests.oracles import EXAMPLES

FIGURE_1 = str(EXAMPLES / "figure-1.ttl")


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("capacity: ")
    assert len(err) < 400
    return err


@pytest.fixture
def complex_file(tmp_path: Path) -> Path:
    """The product of two complex numbers, which has rank 3."""
    path = tmp_path / "complex.npy"
    write_tensor(complex_numbers(), path)
    return path


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """Eight facts of four columns: the bits a, b, c and their product."""
    path = tmp_path / "products.tsv"
    bits = np.ndindex(2, 2, 2)
    path.write_text("".join(f"a{a}\tb{b}\tc{c}\t{a * b * c}\n" for a, b, c in bits))
    return path


def test_a_tensor_is_printed_as_the_contracts_object(
    capsys: pytest.CaptureFixture[str], complex_file: Path
) -> None:
    assert run_json(capsys, "rank", complex_file) == {
        "source": "complex.npy",
        "sha256": hashlib.sha256(complex_file.read_bytes()).hexdigest(),
        "tensor_sha256": complex_numbers().sha256,
        "entries": 4,
        "order": 3,
        "shape": [2, 2, 2],
        "bounds": {"entries": 4, "paper": 4, "slices": [4, 4, 4], "unfoldings": [2, 2, 2]},
        # the second slice is a rotation, which has no real eigenvector
        "rank": {"lower": 3, "upper": 3, "closed": True, "cited": [], "lower_by": "pencil",
                 "upper_by": "pencil"},
        "effective_rank": None,
        "estimate": None,
    }  # fmt: skip


# a matrix of rank 2; W of order 4 has rank 4, and its unfoldings rank 2
OTHER_ORDERS = {
    2: (from_dense(np.arange(12).reshape(3, 4)), [2], [2, 2], 2),
    4: (w_state(4), [4] * 6, [2] * 4, 4),
}


@pytest.mark.parametrize("order", OTHER_ORDERS)
@pytest.mark.parametrize("name", ["T.npy", "T.tns", "T.npy.gz", "T.TNS.GZ"])
def test_tensors_of_other_orders_are_bounded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, order: int, name: str
) -> None:
    tensor, slices, unfoldings, rank = OTHER_ORDERS[order]
    write_tensor(tensor, tmp_path / name.lower())
    path = (tmp_path / name.lower()).rename(tmp_path / name)
    got = run_json(capsys, "rank", path)
    assert (got["order"], got["shape"]) == (order, list(tensor.shape))
    assert got["bounds"]["slices"] == slices
    assert got["bounds"]["unfoldings"] == unfoldings
    assert (got["rank"]["lower"], got["rank"]["upper"]) == (rank, rank)


@pytest.mark.slow
def test_a_tensor_reads_well_for_people(
    capsys: pytest.CaptureFixture[str], complex_file: Path, tmp_path: Path
) -> None:
    code, out, _ = run(capsys, "rank", complex_file, "--effective", "--estimate")
    assert code == 0
    assert "complex.npy: SparseTensor(2 x 2 x 2, 4 entries from -1 to 1)" in out
    assert "  entries                  4\n" in out
    assert "facts" not in out
    assert "triples" not in out
    assert "no certificate" in out
    write_tensor(w_state(4), tmp_path / "w.tns")
    code, out, _ = run(capsys, "rank", tmp_path / "w.tns", "--effective", "--estimate")
    assert code == 0
    assert "  estimate  " in out
    # two of four modes are fixed in a matrix slice
    assert "sums of slice ranks      4   smallest of 6 choices" in out
    assert "unfolding ranks          2 2 2 2" in out


def test_the_format_says_what_a_name_does_not(
    capsys: pytest.CaptureFixture[str],
    complex_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = complex_file.rename(complex_file.with_name("complex"))
    assert run_json(capsys, "rank", other, "--format", "NPY")["entries"] == 4

    class Input:
        buffer = io.BytesIO(gzip.compress(b"1 1 5\n2 2 7\n"))

    monkeypatch.setattr("sys.stdin", Input)
    got = run_json(capsys, "rank", "-", "--format", "tns")
    assert (got["source"], got["shape"]) == ("-", [2, 2])


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "w.mtx"])
def test_a_tensor_on_standard_input_is_told_by_its_beginning(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = np.array([[1, 2], [0, 5]])
    path = tmp_path / name
    if name == "w.npy":
        np.save(path, matrix)
    elif name == "w.npz":
        np.savez(path, matrix)
    else:
        path.write_text(
            "%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 1\n1 2 2\n2 2 5\n"
        )

    def given(of: Path) -> None:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": io.BytesIO(of.read_bytes())}))

    want = run_json(capsys, "rank", path, "--certificate", tmp_path / "c.json")
    given(path)
    assert run_json(capsys, "rank", "-") == {**want, "source": "-"}
    given(path)
    assert run_json(capsys, "verify", tmp_path / "c.json", "-")["proved"]


def test_facts_on_standard_input_are_what_they_were(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = EXAMPLES / "figure-1.ttl"
    for command in ("rank", "describe"):
        want = run_json(capsys, command, path)
        monkeypatch.setattr(
            "sys.stdin", type("Input", (), {"buffer": io.BytesIO(path.read_bytes())})
        )
        assert run_json(capsys, command, "-") == {**want, "source": "-"}


WRONG: dict[str, tuple[bytes, str, str]] = {
    "floats": (b"", "floats.npy", "Entries must be integers"),
    "a decimal": (b"1 1 1 0.5\n", "T.tns", "T.tns, line 1 (read as tns): a value must be an int"),
    "no tensor": (b"\0" * 100, "T.npy", "T.npy: the file is binary"),
    "nothing": (b"", "T.tns", "T.tns: the file is empty"),
    "cut short": (b"", "short.npy", "short.npy (read as npy): its header promises 64 bytes"),
    "one mode": (b"1 5\n2 7\n", "T.tns", "T.tns: A tensor whose rank is bounded must have two"),
    "large": (b"1 1 9999999999\n", "T.tns", "T.tns: A tensor whose rank is bounded must have ent"),
    "missing": (b"", "none.tns", "none.tns: no such file"),
    "a broken stream": (b"\x1f\x8b1", "T.tns.gz", "T.tns.gz: the gzip stream is broken"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("command", ["rank", "verify"])
def test_a_wrong_file_is_one_message_that_names_it(
    capsys: pytest.CaptureFixture[str], complex_file: Path, case: str, command: str
) -> None:
    content, name, message = WRONG[case]
    path = complex_file.with_name(name)
    if case == "floats":
        np.save(path, [[0.5, 1]])
    elif case == "cut short":
        path.write_bytes(complex_file.read_bytes()[:-8])
    elif case != "missing":
        path.write_bytes(content)
    before = []
    if command == "verify":
        before = [complex_file.with_name("c.json")]
        run(capsys, "rank", complex_file, "--certificate", before[0])
    err = refused(capsys, command, *before, path)
    assert message in err
    assert name in err


@pytest.mark.parametrize("option", [("--multi", "keep"), ("--arity", "4")])
def test_options_of_facts_are_refused_for_a_tensor(
    capsys: pytest.CaptureFixture[str], complex_file: Path, option: tuple[str, str]
) -> None:
    certificate = complex_file.with_name("c.json")
    run(capsys, "rank", complex_file, "--certificate", certificate)
    for command in (["rank", complex_file], ["verify", certificate, complex_file]):
        err = refused(capsys, *command, *option)
        assert f"complex.npy: {option[0]} is about files of facts" in err
        assert f"Omit {option[0]}" in err


def test_certificates_of_a_tensor_are_verified_for_it_alone(
    capsys: pytest.CaptureFixture[str], complex_file: Path, tmp_path: Path
) -> None:
    certificate = tmp_path / "c.json"
    code, _, _ = run(capsys, "rank", complex_file, "--effective", "--certificate", certificate)
    assert code == 0
    got = run_json(capsys, "verify", certificate, complex_file)
    assert got == {
        "proved": True,
        "certificates": [
            {"quantity": quantity, "side": side, "value": 3, "entries": 4, "proved": True,
             "reason": None, "cited": []}
            # all four fibers have an entry
            for quantity in ("rank", "effective_rank") for side in ("lower", "upper")
        ],
        "lower": 3,
        "upper": 3,
        "reason": None,
    }  # fmt: skip
    code, out, _ = run(capsys, "verify", certificate, complex_file)
    assert code == 0
    assert "lower bound 3 of the rank, for the tensor of 4 entries: proved" in out
    # the same entries in another file
    write_tensor(read_tensor(complex_file), tmp_path / "complex.tns")
    assert run_json(capsys, "verify", certificate, tmp_path / "complex.tns")["proved"]
    # another tensor, and facts
    write_tensor(-complex_numbers(), tmp_path / "other.npy")
    err = refused(capsys, "verify", certificate, tmp_path / "other.npy")
    assert "c.json: The certificate must be for the tensor" in err
    err = refused(capsys, "verify", certificate, FIGURE_1)
    assert "c.json: The certificate must be for the facts" in err
    err = refused(capsys, "verify", certificate, FIGURE_1, "--multi", "keep")
    assert "one is about a tensor" in err
    # a bound that isn't proved
    ends = json.loads(certificate.read_text())
    ends[1]["value"] = 2
    certificate.write_text(json.dumps(ends))
    code, out, _ = run(capsys, "verify", certificate, complex_file)
    assert code == 1
    assert "upper bound 2 of the rank, for the tensor of 4 entries: not proved" in out


def test_a_certificate_of_facts_is_none_of_their_tensor_but_the_tensors_is_one_of_the_facts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, certificate = tmp_path / "D.tns", tmp_path / "c.json"
    write_tensor(load(FIGURE_1).tensor(), path)
    run(capsys, "rank", FIGURE_1, "--certificate", certificate)
    # tokens aren't known to a tensor
    assert "it is for the facts" in refused(capsys, "verify", certificate, path)
    run(capsys, "rank", path, "--certificate", certificate)
    code, out, _ = run(capsys, "verify", certificate, FIGURE_1)
    assert code == 0
    assert "lower bound 5 of the rank, for all 8 facts (their tensor): proved" in out
    got = run_json(capsys, "verify", certificate, FIGURE_1)
    assert {(one["multi"], one["facts"], one["of"]) for one in got["certificates"]} == {
        (None, 8, 8)
    }


def test_the_zero_tensor_has_rank_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, certificate = tmp_path / "0.npy", tmp_path / "c.json"
    write_tensor(SparseTensor(np.zeros((0, 3)), [], (2, 2, 2)), path)
    got = run_json(capsys, "rank", path, "--effective", "--certificate", certificate)
    assert (got["rank"]["lower"], got["rank"]["upper"]) == (0, 0)
    assert run_json(capsys, "verify", certificate, path)["proved"]


def test_facts_of_four_columns_are_bounded_and_verified(
    capsys: pytest.CaptureFixture[str], products: Path, tmp_path: Path
) -> None:
    certificate = tmp_path / "c.json"
    got = run_json(capsys, "rank", products, "--arity", "4", "--effective", "--certificate",
                   certificate)  # fmt: skip
    db = load(products, arity=4)
    # 0 everywhere, and where all bits are 1 the object 1 instead: two simple tensors
    rank = {"lower": 2, "upper": 2, "closed": True, "cited": [], "lower_by": "unfolding",
            "upper_by": got["rank"]["upper_by"]}  # fmt: skip
    assert got == {
        "source": "products.tsv",
        "sha256": hashlib.sha256(products.read_bytes()).hexdigest(),
        "facts_sha256": db.facts_sha256,
        "multi": "keep",
        "facts": 8,
        "arity": 4,
        "shape": [2, 2, 2, 2],
        "functional": True,
        "multi_valued_pairs": 0,
        "selection": None,
        # two bits fixed: rank 2 for (1, 1), 1 for three others; a bit and the object: 1, 0, 2, 1
        "bounds": {"facts": 8, "paper": 5, "slices": [5, 5, 4, 5, 4, 4], "unfoldings": [2] * 4},
        "rank": rank,
        "effective_rank": rank,
        "estimate": None,
    }
    code, out, err = run(capsys, "verify", certificate, products, "--arity", "4")
    assert (code, err) == (0, "")
    assert "upper bound 2 of the rank, for all 8 facts (multi=keep): proved" in out
    code, out, _ = run(capsys, "rank", products, "--arity", "4")
    assert code == 0
    assert "8 facts of arity 4: 2 x 2 x 2 x 2" in out
    assert "  facts                    8\n" in out


def test_another_number_of_columns_is_told(
    capsys: pytest.CaptureFixture[str], products: Path
) -> None:
    assert "products.tsv, line 1 (read as tsv): a row must hold" in refused(
        capsys, "rank", products
    )
    assert "figure-1.ttl" in refused(capsys, "rank", FIGURE_1, "--arity", "4")
    assert "`--arity` must be at least 2" in refused(capsys, "rank", products, "--arity", "1")
    assert "needs predicates" in refused(
        capsys, "rank", products, "--arity", "4", "--multi", "majority"
    )


def test_a_rank_over_a_field_and_a_border_rank_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # two products over C
    rank = run_json(capsys, "rank", "complex:", "--field", "C")["rank"]
    assert (rank["field"], rank["lower"], rank["upper"]) == ("C", 2, 3)
    # W is a limit of tensors of rank 2
    code, out, _ = run(capsys, "rank", "w:3", "--border")
    assert code == 0
    assert out.startswith("The border rank is between 2 and 3: ")
    assert "  border rank              [2, 3]   certified\n" in out
    assert "no other kind of argument bounds the border rank" in out
    assert "no border rank" in refused(capsys, "rank", "w:3", "--border", "--effective")
    assert "'Q', 'R', 'C'" in refused(capsys, "rank", "w:3", "--field", "F_2")


TEXTS = {
    "FROSTT": b"1 1 2 1\n1 2 1 1\n2 1 1 1\n",
    "decimals": b"1 1 2 1.0\n1 2 1 1.0\n2 1 1 1\n",
    "comments": b"\n# a W state\n\n 1  1 2  1 \n1 2 1 1\n2 1 1 1\n",
    "a mark, lines of Windows": b"\xef\xbb\xbf1 1 2 1\r\n1 2 1 1\r\n2 1 1 1\r\n",
    "gzip": gzip.compress(b"1 1 2 1\n1 2 1 1\n2 1 1 1\n"),
    "shape": b"# shape: 2 2 2\n1 1 2 1\n1 2 1 1\n2 1 1 1\n",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["-", "w.txt", "w"])
def test_the_text_of_a_tensor_is_told_by_its_first_line(
    text: str,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    def given() -> None:
        if name == "-":
            held = type("Input", (), {"buffer": io.BytesIO(TEXTS[text])})
            monkeypatch.setattr("sys.stdin", held)
        else:
            Path(name).write_bytes(TEXTS[text])

    given()
    got = run_json(capsys, "rank", name, "--certificate", "c.json")
    assert (got["shape"], got["rank"]["lower"], got["source"]) == ([2, 2, 2], 3, name)
    given()
    assert run_json(capsys, "verify", "c.json", name)["proved"]


MATRIX = b"1 1 5\n2 2 7\n"


@pytest.mark.parametrize("name", ["-", "m.txt"])
def test_three_integers_in_a_line_may_be_of_a_matrix_or_a_fact(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.txt").write_bytes(MATRIX)

    def given(held: bytes) -> None:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": io.BytesIO(held)}))

    given(MATRIX)
    err = refused(capsys, "rank", name)
    assert f"{name}: three integers" in err
    assert "--format tns" in err
    given(MATRIX)
    assert run_json(capsys, "rank", name, "--format", "tns")["shape"] == [2, 2]
    # a shape tells
    given(b"# shape: 2 3\n" + MATRIX)
    assert run_json(capsys, "rank", "-")["shape"] == [2, 3]


@pytest.mark.parametrize(
    "text",
    ["1\t1\t5\n2\t2\t7\n", "# 1 1 1 1\na\tp\tx\nb\tp\ty\n",
     "# shape: 2 2\n@prefix x: <x:> .\nx:a x:p x:b .\n"],
    ids=["integers by tabs", "a comment", "a comment on a shape"],
)  # fmt: skip
def test_facts_arent_taken_for_a_tensor(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": io.BytesIO(text.encode())}))
    code, out, _ = run(capsys, "rank", "-", "--json")
    assert code == 0
    assert json.loads(out)["triples"] == text.count("\n") - text.count("#") - text.count("@")
