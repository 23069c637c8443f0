"""Upper ends of tensors with known decompositions, beside an earlier version of this library.

    git worktree add /tmp/before 54e84fe
    python benchmarks/upper_ends.py /tmp/before [--effort standard] [NAME ...]

Products of matrices, algebras, Kronecker products and random tensors of order four and five: the
interval of `rank_interval` with the seed 0, its methods, and CPU seconds on one thread, in a new
process of each version for each tensor. Beside it is the fewest number of terms that is known over
the reals, from the sources that `capacity/tensor/known.py` names, or the generic rank of the format
for random tensors. Both ends are verified.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from record import write

from capacity.rank import rank_interval, verify
from capacity.tensor import (
    SparseTensor,
    cyclic_group,
    direct_sum,
    from_dense,
    group_algebra,
    kronecker,
    matrix_multiplication,
    quaternions,
    truncated_polynomials,
    w_state,
)

HERE = Path(__file__).parents[1]
SEED = 0


def permuted(tensor: SparseTensor, seed: int = SEED) -> SparseTensor:
    """The tensor with the indices of each mode in a random order."""
    rng, dense = np.random.default_rng(seed), tensor.to_numpy()
    return from_dense(dense[np.ix_(*(rng.permutation(n) for n in dense.shape))])


def in_other_bases(tensor: SparseTensor, seed: int = SEED) -> SparseTensor:
    """The tensor in bases of determinant 1, by n elementary operations in each mode."""
    rng, moved = np.random.default_rng(seed), tensor.to_numpy().astype(np.int64)
    for mode, n in enumerate(moved.shape):
        matrix = np.eye(n, dtype=np.int64)
        for _ in range(n):
            i, j = rng.choice(n, 2, replace=False)
            matrix[i] += rng.choice([-1, 1]) * matrix[j]
        moved = np.moveaxis(np.tensordot(matrix, moved, (1, mode)), 0, mode)
    return from_dense(moved)


def drawn(*shape: int) -> SparseTensor:
    """A tensor of random integers from -2 to 2."""
    return from_dense(np.random.default_rng(SEED).integers(-2, 3, shape))


def _cases() -> dict[str, tuple[Callable[[], SparseTensor], int | None]]:
    """A function that makes each tensor, and the number of terms that is known."""
    matrices = {(2, 2, 2): 7, (2, 2, 3): 11, (2, 2, 4): 14, (2, 2, 5): 18, (2, 2, 6): 21,
                (2, 3, 3): 15, (2, 3, 4): 20, (2, 4, 4): 26, (3, 3, 3): 23, (3, 3, 4): 29,
                (4, 4, 4): 48}  # fmt: skip
    W, strassen, H = w_state(3), matrix_multiplication(2, 2, 2), quaternions()
    cases: dict[str, tuple[Callable[[], SparseTensor], int | None]] = {
        f"matrices {n} x {m} x {p}": (lambda s=(n, m, p): matrix_multiplication(*s), rank)
        for (n, m, p), rank in matrices.items()
    }
    cases["matrices 4 x 4 x 4, permuted"] = lambda: permuted(matrix_multiplication(4, 4, 4)), 48
    for n in range(4, 9):
        cases[f"R[x]/x^{n}"] = (lambda n=n: truncated_polynomials(n), 2 * n - 1)
    for n in range(7, 11):
        cases[f"group Z/{n}"] = lambda n=n: group_algebra(cyclic_group(n)), 2 * n - 1 - n // 2
    cases["group Z/8, other bases"] = lambda: in_other_bases(group_algebra(cyclic_group(8))), 11
    cases |= {
        "H": (quaternions, 8),
        "H + H": (lambda: direct_sum(H, H), 16),
        "H x Z/2": (lambda: kronecker(H, group_algebra(cyclic_group(2))), 16),
        "W x W": (lambda: kronecker(W, W), 7),
        "W x W x W": (lambda: kronecker(W, W, W), 16),
        "W x 2 x 2 matrices": (lambda: kronecker(W, strassen), 21),
        "2 x 2 matrices over R[Z/4]": (
            lambda: kronecker(strassen, group_algebra(cyclic_group(4))), 35),
    }  # fmt: skip
    generic = {(2, 2, 2, 2): 4, (2, 2, 3, 3): 6, (2, 3, 3, 3): 7, (3, 3, 3, 3): 9,
               (2, 2, 2, 2, 2): 6}  # fmt: skip
    for shape, rank in generic.items():
        cases[f"random {' x '.join(map(str, shape))}"] = lambda s=shape: drawn(*s), rank
    return cases


def answer(name: str, effort: Any) -> None:
    """Bound one tensor, and print both ends and the seconds."""
    tensor = _cases()[name][0]()
    start = time.process_time()
    interval = rank_interval(tensor, effort=effort, seed=SEED)
    seconds = time.process_time() - start
    assert verify(interval, tensor).proved
    by = [end.by for end in interval.certificates]
    print(json.dumps({"ends": [interval.lower, interval.upper], "by": by,
                      "seconds": round(seconds, 1)}))  # fmt: skip


def bounded(root: Path, name: str, effort: str) -> dict[str, Any]:
    """Bound one tensor by the code of a checkout."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, __file__, "--answer", "--effort", effort, name],
        env=environment, cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--answer", action="store_true")
    options = parser.parse_args()
    if options.answer:
        # the only positional argument is a name then
        answer(str(options.before), options.effort)
        return
    if options.before is None:
        parser.error("give the folder of a checkout of the version before")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=options.before, check=True,
                            capture_output=True, text=True).stdout.strip()  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, (make, known) in _cases().items():
        if options.names and name not in options.names:
            continue
        now, before = (bounded(root, name, options.effort) for root in (HERE, options.before))
        rows.append({"tensor": name, "shape": list(make().shape), "known": known,
                     "now": now, "before": before})  # fmt: skip
        print(name, known, now, before, flush=True)
    fewer = [row for row in rows if row["now"]["ends"][1] < row["before"]["ends"][1]]
    worse = [row for row in rows if row["now"]["ends"][1] > row["before"]["ends"][1]]
    rows.insert(0, {"tensors": len(rows), "effort": options.effort, "seed": SEED,
                    "with_fewer_terms": len(fewer), "with_more_terms": len(worse)})  # fmt: skip
    write(
        "upper_ends",
        what="certified intervals of tensors with known decompositions; CPU seconds",
        peer=f"this library at commit {commit}",
        rows=rows,
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
