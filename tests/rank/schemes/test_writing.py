"""What is written is read back as the same decomposition, or isn't written."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.rank import AlgebraicNumber, read_decomposition, write_decomposition
from capacity.rank.factors import Factors
from capacity.tensor import SparseTensor

# arrays have numerators of 64 bits
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.fractions(-(2**59), 2**59, max_denominator=9),
    st.integers(-(2**62), 2**62),
)


@st.composite
def decompositions(draw: st.DrawFn, order: int) -> Factors:
    rank = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 4)) for _ in range(order)]
    matrices: list[np.ndarray] = []
    for n in sizes:
        of = np.empty((n, rank), dtype=object)
        of.ravel()[:] = [draw(NUMBERS) for _ in range(n * rank)]
        matrices.append(of)
    return Factors(tuple(matrices))


def tensor_of(factors: Factors) -> SparseTensor:
    """The tensor, over a prime: enough to tell in which layout a file was written."""
    letters = "ijkl"[: len(factors.matrices)]
    given_ = ",".join(f"{x}r" for x in letters)
    dense = np.einsum(f"{given_}->{letters}", *(of.astype(float) for of in factors.matrices))
    places = np.argwhere(dense != 0)
    return SparseTensor(places, np.ones(len(places), np.int64), dense.shape)


def same(read: Factors, written: Factors) -> bool:
    return all(
        of.shape == was.shape and (of.astype(object) == was.astype(object)).all()
        for of, was in zip(read.matrices, written.matrices, strict=True)
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(), end=st.sampled_from([".json", ".json.gz", ".npz", ".sms", "_L.sms", ".sms.gz"])
)
def test_what_is_written_is_read_as_the_same_numbers(
    data: st.DataObject, end: str, tmp_path: Path
) -> None:
    factors = data.draw(decompositions(3 if "sms" in end else data.draw(st.integers(2, 4))))
    paths = write_decomposition(factors, tmp_path / f"scheme{end}")
    assert len(paths) == (3 if "sms" in end else 1)
    # sizes tell whether the terms are rows or columns, unless a matrix is square
    assert same(read_decomposition(paths[0], tensor_of(factors)), factors)


def test_what_a_format_can_t_hold_isn_t_written(tmp_path: Path) -> None:
    one = np.array([[1]])
    long = Factors((np.array([[2**70]], dtype=object), one, one))
    with pytest.raises(InvalidArgumentError, match=r"64 bits.*json"):
        write_decomposition(long, tmp_path / "a.npz")
    write_decomposition(long, tmp_path / "a.json")
    with pytest.raises(InvalidArgumentError, match="three modes; got 2"):
        write_decomposition(Factors((one, one)), tmp_path / "a.sms")
    root = AlgebraicNumber((-2, 0, 1), Fraction(1), Fraction(2), (Fraction(0), Fraction(1)))
    irrational = np.empty((1, 1), dtype=object)
    irrational[0, 0] = root
    with pytest.raises(InvalidArgumentError, match="must be rational"):
        write_decomposition(Factors((irrational, one, one)), tmp_path / "a.json")
    for name in ("a.txt", "a.exp", "a.parquet"):
        with pytest.raises(InvalidArgumentError, match="one of the formats npz, json, sms,"):
            write_decomposition(Factors((one, one, one)), tmp_path / name)
    with pytest.raises(InvalidTypeError, match="`factors` must be a Factors"):
        write_decomposition([one, one, one], tmp_path / "a.json")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
