"""Vectors in numba against numpy, lane by lane."""

import os
import platform
import subprocess
import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from capacity.errors import InvalidTypeError
from capacity.layer import LayerConfig, Recipe
from capacity.layer.engines.fused.small_matmul import (
    add_gradients,
    add_outer,
    add_products,
    repeat,
    store_rows,
    store_totals,
)
from capacity.layer.engines.simd.pointers import Floats, Integers, words
from capacity.layer.engines.simd.vector import (
    broadcast,
    broadcast8,
    exp2,
    flush_denormals,
    fma,
    full,
    full8,
    lanes_of,
    load,
    load8,
    maximum,
    sqrt,
    store,
    total,
)
from tests.engines import able

# the functions here are compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false


X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


def drawn(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@numba.njit
def _larger(x, y, out):
    n = lanes_of(x)
    for i in range(0, len(x), n):
        store(out, i, maximum(load(x, i), load(y, i)))


def test_an_array_is_a_word_only_if_it_is_what_its_field_says() -> None:
    class Some(NamedTuple):
        n: int
        x: float
        numbers: Floats
        places: Integers

    numbers, places = np.zeros(4, np.float32), np.arange(3)
    found = words(Some(3, 0.5, numbers, places))
    assert found.tolist()[::2] == [3, numbers.ctypes.data]
    assert found[3] == places.ctypes.data
    # compiled code would read, and overwrite, what is beside them
    for wrong in (
        Some(3, 0.5, numbers, places.astype(np.int32)),  # type: ignore[arg-type]
        Some(3, 0.5, np.zeros(4, np.int32), places),
        Some(3, 0.5, numbers, np.arange(6)[::2]),
    ):
        with pytest.raises(InvalidTypeError, match="must be a contiguous array of"):
            words(wrong)


def test_the_maximum_is_that_of_each_lane(dtype: Any) -> None:
    x, y = drawn(dtype, 2, 64)
    out = np.zeros_like(x)
    x[3] = -np.inf
    _larger(x, y, out)
    assert np.array_equal(out, np.maximum(x, y))


@numba.njit
def _arithmetic(x, y, out):
    n = lanes_of(x)
    for i in range(0, len(x), n):
        a, b = load(x, i), load(y, i)
        store(out, i, sqrt(a * a) / b + fma(a, b, full(x[0])) - broadcast(y, 1))


def test_arithmetic_is_that_of_each_lane(dtype: Any) -> None:
    x, y, out = drawn(dtype, 64), drawn(dtype, 65)[1:], np.zeros(64, dtype)
    _arithmetic(x, y, out)
    # in twice the precision: the terms are of order 1 to 100
    x, y = x.astype(np.float64), y.astype(np.float64)
    expected = np.abs(x) / y + x * y + x[0] - y[1]
    size = np.abs(x / y) + np.abs(x * y) + abs(x[0]) + abs(y[1])
    assert (np.abs(out - expected) <= 4 * np.finfo(dtype).eps * size).all()


@numba.njit
def _totals(x):
    return total(load(x, 0)), total(load8(x, 3)), total(broadcast8(x, 2) * full8(x[1])), lanes_of(x)


def test_totals_add_all_lanes(dtype: Any) -> None:
    # small integers: no rounding
    x = np.arange(1, 17).astype(dtype)
    n = 64 // x.itemsize
    assert _totals(x) == (n * (n + 1) / 2, sum(range(4, 12)), 8 * 3 * 2, n)


@numba.njit
def _exp2(x, out):
    for i in range(0, len(x), lanes_of(x)):
        store(out, i, exp2(load(x, i)))


def test_powers_of_two_have_the_precision_of_their_type(dtype: Any) -> None:
    least, most = (-125, 127) if dtype == np.float32 else (-1021, 1023)
    x = np.linspace(least, most, 16 * 5000).astype(dtype)
    out = np.zeros_like(x)
    _exp2(x, out)
    expected = np.exp2(x.astype(np.longdouble))
    assert np.abs(out / expected - 1).max() < 2 * np.finfo(dtype).eps


def test_powers_of_two_out_of_range_vanish_or_are_huge_and_nan_is_seen(dtype: Any) -> None:
    least, most = (-125, 127) if dtype == np.float32 else (-1021, 1023)
    x = np.array([np.nan, np.inf, -np.inf, least - 1, most + 1, -1e30, 1e30, 0] * 2, dtype)
    out = np.full_like(x, 7)
    _exp2(x, out)
    assert np.isnan(out[0])
    assert out[[1, 4, 6]] == pytest.approx(2.0**most, rel=1e-6)
    assert (out[[2, 3, 5]] == 0).all()
    assert out[7] == pytest.approx(1, rel=1e-6)


def test_small_powers_of_two_vanish_from_their_end_on(dtype: Any) -> None:
    end = -125.5 if dtype == np.float32 else -1021.5
    x = np.array([end - 0.01, end + 0.01] * 8, dtype)
    out = np.full_like(x, 7)
    _exp2(x, out)
    assert (out[::2] == 0).all()
    np.testing.assert_allclose(out[1::2], np.exp2(x[1::2]), rtol=4 * np.finfo(dtype).eps)


@numba.njit
def _halved(x, word):
    before = flush_denormals(word)
    half = x[0] * x.dtype.type(0.5)
    flush_denormals(before)
    return half, x[0] * x.dtype.type(0.5)


def test_denormals_are_flushed_and_kept_again(dtype: Any) -> None:
    x = np.array([np.finfo(dtype).tiny], dtype)
    flushed, kept = _halved(x, np.int32(-1))
    assert kept == np.finfo(dtype).tiny / 2 > 0
    # only x86 has the control word
    assert flushed == (0 if X86 else kept)


# ---- unrolled over d_model ----------------------------------------------------------------------


@numba.njit
def _products(dims, matrix, rows, width, out):
    zero = full(rows.dtype.type(0))
    for t in range(0, width, lanes_of(rows)):
        z = add_products(dims, (zero, zero), matrix, t, width, rows, 8)
        store(out, t, z[0])
        store(out, width + t, z[1])


@numba.njit
def _gradients(dims, errors, matrix, grad, rows, width, d_rows):
    sums = repeat(dims + dims, full(rows.dtype.type(0)))
    for t in range(0, width, lanes_of(rows)):
        both = (load(errors, t), load(errors, width + t))
        sums = add_gradients(dims, sums, both, matrix, grad, t, width, rows, 8)
    store_totals(dims, sums, d_rows, 8)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8])
def test_products_and_their_gradients_are_those_of_matrices(d: int, dtype: Any) -> None:
    width, tolerance = 32, 100 * np.finfo(dtype).eps
    matrix, rows = drawn(dtype, d, width), np.zeros((4, 8), dtype)
    rows[:, :d] = drawn(dtype, 4, d)
    dims = (0,) * d
    out = np.zeros((2, width), dtype)
    _products(dims, matrix.ravel(), rows.ravel(), width, out.ravel())
    np.testing.assert_allclose(out, rows[1:3, :d] @ matrix, rtol=0, atol=tolerance)
    errors, grad, d_rows = drawn(dtype, 2, width), drawn(dtype, d, width), np.full((4, 8), 7, dtype)
    expected = grad + rows[1:3, :d].T @ errors
    _gradients(dims, errors.ravel(), matrix.ravel(), grad.ravel(), rows.ravel(), width,
               d_rows.ravel())  # fmt: skip
    np.testing.assert_allclose(grad, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(d_rows[1:3, :d], errors @ matrix.T, rtol=0, atol=tolerance)
    stored = 4 if d <= 4 else 8
    assert (d_rows[1:3, d:stored] == 0).all()
    assert (d_rows[1:3, stored:] == 7).all()
    assert (d_rows[[0, 3]] == 7).all()


@numba.njit
def _outer(dims, rows, vectors, out):
    sums = repeat(dims, full8(rows.dtype.type(0)))
    for i in range(0, len(vectors), 8):
        sums = add_outer(sums, rows, i, load8(vectors, i))
    store_rows(sums, out, 0)


@pytest.mark.parametrize("d", [1, 4, 8])
def test_outer_products_add_up(d: int, dtype: Any) -> None:
    rows, vectors, out = drawn(dtype, 5, 8), drawn(dtype, 6, 8)[:5], np.zeros((d, 8), dtype)
    _outer((0,) * d, rows.ravel(), vectors.ravel(), out.ravel())
    expected = rows[:, :d].T @ vectors
    np.testing.assert_allclose(out, expected, rtol=0, atol=100 * np.finfo(dtype).eps)


# ---- other processors ---------------------------------------------------------------------------

_PARITY = """
import sys
import torch
from capacity.database import random_database
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train
from capacity.layer.engines.fused import epochs
db, config = random_database(3), LayerConfig(5, 2, 3, 4)
for dtype, tolerance, longest in (("float32", 1e-6, 30), ("float64", 1e-10, 100)):
    for batch_size in (0, 50):
        recipe = Recipe(epochs=longest // 5 if batch_size else longest, learning_rate=1e-2,
                        batch_size=batch_size)
        losses = {}
        for engine in sys.argv[1:]:
            layer = AttentionLayer(config, db.n_tokens, dtype=getattr(torch, dtype))
            losses[engine] = train(layer, db, recipe, Compute(engine, dtype)).loss
        for loss in losses.values():
            assert abs(loss / losses["reference"] - 1) < tolerance, losses
code = "".join(epochs.train_epochs.inspect_asm().values())
print(*(register in code for register in ("zmm", "ymm", "xmm")))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processor", "registers"),
    [
        ("skylake-avx512", "True"),
        ("haswell", "False True"),
        pytest.param("nehalem", "False False True", marks=pytest.mark.full),
    ],
)
def test_every_width_of_registers_gives_the_same(
    processor: str, registers: str, tmp_path: Any
) -> None:
    if not X86:
        pytest.skip("these are x86 processors")
    from torch.backends import cpu

    if processor == "skylake-avx512" and cpu.get_cpu_capability() != "AVX512":
        pytest.skip("this machine has no AVX-512")
    env = {
        **os.environ,
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    engines = able(LayerConfig(5, 2, 3, 4), Recipe(batch_size=1), dtype="float64")
    command = [sys.executable, "-c", _PARITY, *engines]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(registers)
