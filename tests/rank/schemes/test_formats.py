"""Formats of schemes: each grammar is read exactly, and hostile files are refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import DecompositionFormatError, InvalidArgumentError
from capacity.rank import (
    SchemeFormat,
    read_decomposition,
    register_scheme_format,
    unregister_scheme_format,
)  # fmt: skip
from capacity.tensor import from_factors
from tests.tiers import examples

NUMBERS = st.fractions(-9, 9, max_denominator=9)


@st.composite
def drawn_factors(draw: st.DrawFn) -> list[np.ndarray[Any, Any]]:
    """Draw factors of a tensor that is no product of matrices: 2 x 3 x 5, with three terms."""
    # no n m, m p, n p are 2, 3, 5, and no side is the number of terms but 3
    return [
        np.array(draw(st.lists(NUMBERS, min_size=n * 4, max_size=n * 4)), object).reshape(n, 4)
        for n in (2, 3, 5)
    ]


def as_json(factors: list[Any]) -> dict[str, str]:
    rows = [[[str(x) for x in row] for row in of] for of in factors]
    return {"s.json": json.dumps(dict(zip("uvw", rows, strict=True)))}


def as_rows(factors: list[Any]) -> dict[str, str]:
    return as_json([of.T for of in factors])


def as_sms(factors: list[Any]) -> dict[str, str]:
    files = {}
    for part, of in zip("LRP", (factors[0].T, factors[1].T, factors[2]), strict=True):
        lines = [f"{i + 1} {j + 1} {x}" for (i, j), x in np.ndenumerate(of) if x]
        files[f"s_{part}.sms"] = "\n".join([f"{len(of)} {of.shape[1]} R", *lines, "0 0 0"])
    return files


def as_mathematica(factors: list[Any]) -> dict[str, str]:
    terms = [[[of[:, r].tolist()] for of in factors] for r in range(4)]
    return {"s.m": str([[[[str(x) for x in row] for row in one] for one in term] for term in terms])
            .replace("[", "{").replace("]", "}").replace("'", "")}  # fmt: skip


def as_maple(factors: list[Any]) -> dict[str, str]:
    triads = [
        "Triad([" + ", ".join(
            f"Matrix(1, {len(of)}, [[{','.join(map(str, of[:, r]))}]])" for of in factors
        ) + "])"
        for r in range(4)
    ]  # fmt: skip
    return {"s.mpl": f"T:=TriadSet([{', '.join(triads)}]):"}


def as_products(factors: list[Any]) -> dict[str, str]:
    def form(letter: str, column: Any) -> str:
        said = " ".join(f"{'-' if x < 0 else '+'} {abs(x)} {letter}_{i + 1}"
                        for i, x in enumerate(column) if x)  # fmt: skip
        return f"({said or '0'})"

    lines = [" ".join(form(*one) for one in zip("abc", columns, strict=True))
             for columns in zip(*(of.T for of in factors), strict=True)]  # fmt: skip
    return {"s.exp": "\n".join(lines)}


GRAMMARS = (as_json, as_rows, as_sms, as_mathematica, as_maple, as_products)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda one: one.__name__)
@settings(max_examples=examples(20), deadline=None)
@given(factors=drawn_factors())
def test_what_a_format_says_is_read(
    tmp_path_factory: pytest.TempPathFactory, grammar: Any, factors: list[Any]
) -> None:
    # products have no zero rows at the end
    for of in factors:
        of[-1, 0] = of[-1, 0] or 1
    folder = tmp_path_factory.mktemp("s")
    files = grammar(factors)
    for name, text in files.items():
        (folder / name).write_text(text)
    # the shape alone says which of the two ways of rows and columns is meant
    read = read_decomposition(
        folder / next(iter(files)), from_factors([[[1]] * 2, [[1]] * 3, [[1]] * 5])
    )
    for first, second in zip(read.matrices, factors, strict=True):
        assert (first == second).all()


@settings(max_examples=examples(20), deadline=None)
@given(factors=drawn_factors())
def test_arrays_of_numerators_and_denominators_are_read(
    tmp_path_factory: pytest.TempPathFactory, factors: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("s") / "s.npz"
    arrays = {
        name + end: np.vectorize(lambda x, kind=kind: getattr(x, kind))(of).astype(np.int64)
        for name, of in zip("uvw", factors, strict=True)
        for end, kind in (("", "numerator"), ("_den", "denominator"))
    }
    np.savez(path, **arrays)
    for first, second in zip(read_decomposition(path).matrices, factors, strict=True):
        assert (first == second).all()


def test_a_stack_of_halves_is_read(tmp_path: Path) -> None:
    stack = np.array([[[0.5, 1]] * 2, [[1, 0]] * 2, [[2, 1]] * 2])
    np.save(tmp_path / "s.npy", stack)
    first = read_decomposition(tmp_path / "s.npy").matrices[0]
    assert first.tolist() == [[Fraction(1, 2), 1]] * 2


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("s.json", "[" * 100_000, "isn't JSON"),
        ("s.json", '{"u": [[1]],\n"v": [[1]], "w": }', "line 2"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [[0.3333333]]}', "numerical fit"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [[NaN]]}', "integer or a fraction"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [["1e999999"]]}', "integer or a fraction"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [["1/0"]]}', "denominator must not be 0"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [["1/2+x*I"]]}', "integer or a fraction"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [[[0, [1, 1]]]]}', "integer or a fraction"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [[[1, 2, 3]]]}', "integer or a fraction"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [[[0, 0.3333333]]]}', "numerical fit"),
        ("s.json", '{"u": [[1, 2]], "v": [[1]], "w": [[1, 2, 3], [1, 2, 3]]}', "same number"),
        ("s.json", '{"u": [[1]], "v": [[1]], "w": [[' + "9" * 5000 + "]]}", "isn't JSON"),
        ("s.json", '{"n": [1000, 1000, 1000], "m": 999999999, "u": [[{"index": 0, "value": 1}]], '
         '"v": [], "w": []}', "999999999 rows"),
        ("s.exp", "(a11) (b11) (c11)\n(a11 + (b11) (c11", "line 2"),
        ("s.exp", "(a11) (b11) (c11)\n__import__('os').system('id')", "line 2"),
        ("s.exp", "a99999_99999 b99999_99999 c1_1", "cells"),
        ("s.exp", "(a11 + i b11) (b11) (c11)", "complex|letter|consist"),
        ("s.m", "{" * 100_000, "deep"),
        ("s.m", "{{{{1}}, {{1}}, {{1}}},\n {{{1}}, {{1}}, {{Exit[]}}}}", "line 2"),
        ("s.m", "{{{{1}}, {{1}}, {{1}}}", "truncated"),
        ("s.m", "{{{{1, 2}}, {{1}}, {{1}}}, {{{1}}, {{1}}, {{1}}}}", "same sizes"),
        ("s.mpl", "TriadSet([Triad([Matrix(2, 2, [[1]])])])", "sizes of its header"),
        ("s.mpl", "TriadSet([Triad([Matrix(1, 1, [[system(1)]])])])", "system"),
        ("s.npy", "no array", "array of numbers"),
        ("s.npz", "no archive", "archive"),
    ],
)  # fmt: skip
def test_a_hostile_file_is_refused_in_words(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DecompositionFormatError, match=why) as caught:
        read_decomposition(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9999 999999999 R\n0 0 0", "cells"),
        ("1 1 R\n1 2 1\n0 0 0", "line 2"),
        ("1 1 R\n1 1 1\n1 1 1\n0 0 0", "line 3"),
        ("1 1 R\n1 1 1", "truncated"),
        ("1 1 R\n1 1 x\n0 0 0", "line 2"),
    ],
)
def test_a_hostile_matrix_is_refused_in_words(tmp_path: Path, text: str, why: str) -> None:
    for part in "LRP":
        (tmp_path / f"s_{part}.sms").write_text(text)
    with pytest.raises(DecompositionFormatError, match=why):
        read_decomposition(tmp_path / "s_L.sms")


def test_an_array_that_promises_more_than_it_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.npy"
    np.save(path, np.zeros((3, 2, 2)))
    path.write_bytes(path.read_bytes().replace(b"(3, 2, 2)", b"(3, 2, 9)"))
    with pytest.raises(DecompositionFormatError, match="size of an array"):
        read_decomposition(path)
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(DecompositionFormatError, match="its type is object"):
        read_decomposition(path)


def test_a_format_of_another_package_is_read_by_its_end(tmp_path: Path) -> None:
    (tmp_path / "s.ones").write_text("2")

    def read(file: Any) -> list[Any]:
        return [tuple(np.ones((int(file.text()), 1), object) for _ in range(3))]

    with pytest.raises(InvalidArgumentError, match=r"must end in .*\.sms"):
        read_decomposition(tmp_path / "s.ones")
    register_scheme_format(SchemeFormat("ones", (".ones",), read))
    try:
        assert read_decomposition(tmp_path / "s.ones").rank == 1
        with pytest.raises(InvalidArgumentError, match="its own"):
            register_scheme_format(SchemeFormat("others", (".ones",), read))
    finally:
        unregister_scheme_format("ones")
