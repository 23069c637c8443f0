"""Proofs for Lean are read back: their numbers are those of the tensor, and prove the ends."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from capacity import rank_interval
from capacity.errors import CertificateError, InvalidArgumentError
from capacity.rank import LeanProof, lean_proof
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.kinds.koszul import Koszul
from capacity.rank.verifier.serialization import load_certificates
from capacity.tensor import (
    SparseTensor,
    complex_numbers,
    from_dense,
    matrix_multiplication,
    w_state,
)
from tests.commands import run
from tests.tiers import examples

PRIME = 2**31 - 1
NUMBER = re.compile(r"-?\d+(?:/\d+)?")


def vectors(text: str) -> Any:
    """Nested lists of what is written as ``![...]``, with fractions, and tuples of places."""
    plain = text.replace("![", "[").replace("⟨", "").replace(", by decide⟩", "")
    return eval(NUMBER.sub(lambda found: f"Fraction('{found.group()}')", plain),
                {"Fraction": Fraction})  # fmt: skip


def defined(text: str, name: str) -> Any:
    (found,) = re.findall(rf"def {name} :[^\n]*:=\n  (!\[.*?\])\n\n", text, re.DOTALL)
    return vectors(found)


def array(text: str, name: str) -> Any:
    return np.array(defined(text, name), object)


def moved(text: str, tensor: Any) -> Any:
    """Follow the steps that make the part of a tensor, by what the file states of each."""
    (steps,) = re.findall(r"=> RankLE T r\) \?_\)\n    \((.*)\)\n", text)
    for step in reversed(re.findall(r"turned|swapped|mapped \(fun i x => \([PQR]", steps)):
        if step.startswith("mapped"):
            # sum over x of P i x * T x j l, at j, l, i
            P = array(text, step[-1])
            tensor = np.einsum("ix,xjl->jli", P, tensor)
        else:
            tensor = tensor.transpose((1, 2, 0) if step == "turned" else (0, 2, 1))
    return tensor


def stated(text: str, tensor: Any) -> Any:
    """The part of a tensor by the formula that the file has of its entries."""
    (entry,) = re.findall(r"part_entries : ∀ i j l, (.*) = partEntries i j l", text)
    if entry.startswith("entries"):
        modes = entry.split()[1:]
        return np.einsum(f"{''.join(modes)}->ijl", tensor)
    last, second, first = re.findall(r"[RQP] ([ijl]) [xyz]", entry)
    P, Q, R = (array(text, letter) for letter in "PQR")
    return np.einsum(f"{first}x,{second}y,{last}z,xyz->ijl", P, Q, R, tensor)


def flattening(text: str, part: Any) -> Any:
    """The minor, from the tensor and the places, by the definitions of the theorems' library."""
    rows, columns = defined(text, "rows"), defined(text, "columns")
    if "koszulLinear" not in text:
        return [[part[int(i), int(j), int(third)] for j, third in columns] for i in rows]

    def entry(row: Any, column: Any) -> Any:
        third, (p, q) = int(row[0]), map(int, row[1])
        assert p < q
        j, s = map(int, column)
        return part[p, j, third] if s == q else -part[q, j, third] if s == p else 0

    return [[entry(row, column) for column in columns] for row in rows]


def check(proof: LeanProof, tensor: SparseTensor) -> None:
    """Check that the numbers of a file prove the ends that it states."""
    text, whole = proof.text, array(proof.text, "entries")
    assert (whole == tensor.to_numpy()).all()
    assert text.count("(") == text.count(")")
    if proof.upper is not None:
        (r,) = re.findall(r"theorem rank_le : RankLE tensor (\d+)", text)
        A, B, C = (array(text, letter) for letter in "ABC")
        assert len(A) == len(B) == len(C) == int(r) == proof.upper
        assert (np.einsum("si,sj,sl->ijl", A, B, C) == whole).all()
    if proof.lower is not None:
        part = whole
        if "def partEntries" in text:
            part = array(text, "partEntries")
            assert (moved(text, whole) == part).all()
            assert (stated(text, whole) == part).all()
        minor = array(text, "minor")
        assert (flattening(text, part) == minor).all()
        m = len(minor)
        assert (minor @ array(text, "inverse") == np.eye(m, dtype=int)).all()
        (r,) = re.findall(r"theorem not_rank_le : ¬ RankLE tensor (\d+)", text)
        q = part.shape[0] - 1 if "koszulLinear" in text else 1
        assert int(r) * q < m
        assert proof.lower == int(r) + 1
    assert ("rank_eq" in text) == (proof.lower == proof.upper)


tensors = arrays.arrays(
    np.int64, st.tuples(*[st.integers(2, 4)] * 3), elements=st.integers(-2, 2)
).filter(np.any)


@settings(max_examples=examples(200, part=25), deadline=None)
@given(tensors)
def test_what_is_written_proves_the_ends(entries: Any) -> None:
    tensor = from_dense(entries)
    interval = rank_interval(tensor, methods=["Koszul flattening"])
    proof = lean_proof(interval.certificates, tensor)
    check(proof, tensor)
    argument = interval.certificates.lower.arguments[0]
    is_written = not isinstance(argument, Koszul) or argument.p == 1
    assert (proof.lower, proof.upper) == (interval.lower if is_written else None, interval.upper)
    assert len(proof.omitted) == (not is_written)


@settings(max_examples=examples(200, part=25), deadline=None)
@given(tensors, st.integers(0, 2), st.booleans(), st.data())
def test_each_mode_and_any_view_is_written(
    entries: Any, mode: int, is_changed: bool, data: st.DataObject
) -> None:
    tensor, bases = from_dense(entries), [None] * 3
    indices = [np.arange(n) for n in entries.shape]
    if is_changed:
        indices = [np.sort(data.draw(st.permutations(range(n)))[:2]) for n in entries.shape]
        bases = [data.draw(arrays.arrays(np.int64, (2, 2), elements=st.integers(-1, 1)))
                 for _ in range(3)]  # fmt: skip
    X = entries[np.ix_(*indices)]
    for m, P in enumerate(bases):
        X = X if P is None else np.moveaxis(np.tensordot(P, X, axes=(1, m)), 0, m)
    a = X.shape[mode]
    flat = independent_koszul(np.moveaxis(X, mode, 0))
    value = -(-int(np.linalg.matrix_rank(flat)) // (a - 1))
    if value == 0:
        return
    argument = Koszul(View(tuple(indices), tuple(bases)), mode, 1, PRIME, value)
    end = Certificate("rank", "lower", value, "test", (argument,), tensor.sha256)
    proof = lean_proof(end, tensor)
    assert (proof.lower, proof.upper) == (value, None)
    check(proof, tensor)


def independent_koszul(X: Any) -> Any:
    """Wedge products of the slices' index with each basis vector, column by column."""
    a, b, c = X.shape
    columns: list[Any] = []
    for j in range(b):
        for s in range(a):
            wedge = np.zeros((a, a, c))
            for i in range(a):
                wedge[i, s] += X[i, j]
                wedge[s, i] -= X[i, j]
            columns.append(wedge[np.triu_indices(a, 1)].ravel())
    return np.array(columns).T


def test_both_ends_of_matrices_and_their_field() -> None:
    tensor = matrix_multiplication(2, 2, 2)
    lower = rank_interval(tensor, methods=["Koszul flattening"]).certificates.lower
    upper = rank_interval(tensor).certificates.upper
    proof = lean_proof([lower, upper], tensor, name="Strassen")
    check(proof, tensor)
    assert (proof.lower, proof.upper) == (6, 7)
    assert proof.text.endswith("\nend «Strassen»\n")
    assert "Tensor Real 4 4 4" in proof.text
    over = [replace(end, field="Q") for end in (lower, upper)]
    assert "Tensor Rat 4 4 4" in lean_proof(over, tensor).text
    # of two ends of a side the better one is written
    weaker = rank_interval(tensor, methods=[]).certificates
    both = lean_proof([*weaker, lower, upper], tensor)
    assert (both.text, both.omitted) == (
        proof.text.replace("Strassen", "Capacity"),
        ("lower end 4: a better one is written.", "upper end 8: a better one is written."),
    )
    with pytest.raises(InvalidArgumentError, match="over one field"):
        lean_proof([lower, over[1]], tensor)
    # both ends meet
    diagonal = from_dense(np.eye(3, dtype=int)[:, :, None] * np.eye(3, dtype=int)[:, None])
    met = lean_proof(rank_interval(diagonal, methods=[]).certificates, diagonal)
    check(met, diagonal)
    assert "theorem rank_eq : BilinearComplexity.rank tensor = 3" in met.text


def test_what_can_not_be_written_is_refused_with_the_reason() -> None:
    W, C = w_state(3), complex_numbers()
    ends = rank_interval(W).certificates
    proof = lean_proof(ends, W)
    assert (proof.lower, proof.upper) == (None, 3)
    assert "lower end 3: it must rest on one argument; it adds up those of 2" in proof.omitted[0]
    with pytest.raises(InvalidArgumentError, match=r"among the certificates\. lower end 3"):
        lean_proof(ends.lower, W)
    with pytest.raises(InvalidArgumentError, match="kind 'pencil'"):
        lean_proof(rank_interval(C).certificates.lower, C)
    with pytest.raises(CertificateError, match="must be for the tensor"):
        lean_proof(ends.upper, C)
    with pytest.raises(InvalidArgumentError, match="the border rank"):
        lean_proof(rank_interval(W).border.certificates, W)
    with pytest.raises(InvalidArgumentError, match="as a namespace of Lean; got 'a b'"):
        lean_proof(ends, W, name="a b")
    zero = from_dense(np.zeros((2, 2, 2), int))
    nothing = lean_proof(rank_interval(zero).certificates, zero)
    assert (nothing.lower, nothing.upper) == (None, 0)
    assert "lower end 0: it must rest on one argument; it adds up those of 0" in nothing.omitted[0]
    cube = from_dense(np.ones((2, 2, 2, 2), int))
    with pytest.raises(InvalidArgumentError, match="must have three modes"):
        lean_proof(rank_interval(cube).certificates, cube)
    large = from_dense(np.eye(40, dtype=int)[:, :, None] * np.eye(40, dtype=int)[:, None])
    with pytest.raises(InvalidArgumentError, match="at most 50,000 numbers"):
        lean_proof(rank_interval(large, methods=[]).certificates, large)


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, written = tmp_path / "c.json", tmp_path / "proof.lean"
    koszul = ("--method", "Koszul flattening", "--certificate", found)
    assert run(capsys, "rank", "matrices:2x2x2", *koszul)[0] == 0
    code, out, err = run(capsys, "verify", found, "matrices:2x2x2", "--lean", written)
    assert (code, err) == (0, "")
    assert out.endswith(f"{written}: rank >= 6 and rank <= 8, for Lean 4\n")
    tensor = matrix_multiplication(2, 2, 2)
    proof = lean_proof(load_certificates(found), tensor)
    assert written.read_text("utf-8") == proof.text
    # what isn't written is told
    assert run(capsys, "rank", "w:3", "--certificate", found)[0] == 0
    code, out, _ = run(capsys, "verify", found, "w:3", "--lean", written)
    assert code == 0
    assert "rank <= 3, for Lean 4; not the lower end 3: it must rest on one argument" in out
    code, _, err = run(capsys, "verify", found, "matrices:2x2x2", "--lean", written)
    assert code == 2
    assert "must be for the tensor" in err
    # the file is as it was
    assert "at most 3" in written.read_text("utf-8")
