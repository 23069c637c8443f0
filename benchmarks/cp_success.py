"""How often CP methods find an exact decomposition at the known rank.

    python benchmarks/cp_success.py

Every method gets the same instances, the same number of random starts, and iterations enough to
converge; a run succeeds if its relative residual falls below 1e-8. Needs pyttb.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from record import write

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.rank.cp.decompose import one_fit
from tests.oracles import KNOWN_RANKS

STARTS = 10
SUCCESS = 1e-8
# those that some method can fail at
INSTANCES = [name for name, (_, rank) in KNOWN_RANKS.items() if rank > 1 and "diagonal" not in name]
Dense = NDArray[np.float64]


def tensorly_svd(dense: Dense, rank: int, seed: int) -> float | None:
    from tensorly.cp_tensor import cp_to_tensor
    from tensorly.decomposition import parafac

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            cp = parafac(dense, rank, n_iter_max=1500, init="svd", tol=1e-14, random_state=seed)
        except np.linalg.LinAlgError:
            return None
    left = dense - np.asarray(cp_to_tensor(cp))
    return float(np.linalg.norm(left) / np.linalg.norm(dense))


def ours(dense: Dense, rank: int, seed: int) -> float | None:
    fit = one_fit(dense, rank, "lm", 400, [seed, rank])
    return None if fit is None else fit.residual


def tensorly_line_search(dense: Dense, rank: int, seed: int) -> float | None:
    fit = one_fit(dense, rank, "als", 1500, [seed, rank])
    return None if fit is None else fit.residual


def pyttb_lbfgs(dense: Dense, rank: int, seed: int) -> float | None:
    fit = one_fit(dense, rank, "lbfgs", 3000, [seed, rank])
    return None if fit is None else fit.residual


METHODS: dict[str, Callable[[Dense, int, int], float | None]] = {
    "Levenberg-Marquardt (ours)": ours,
    "pyttb gcp_opt (L-BFGS-B)": pyttb_lbfgs,
    "tensorly parafac, line search": tensorly_line_search,
    "tensorly parafac, svd init": tensorly_svd,
}


def main() -> None:
    outcomes: dict[str, list[tuple[str, bool, float]]] = {name: [] for name in METHODS}
    for instance in INSTANCES:
        make, rank = KNOWN_RANKS[instance]
        dense = make().to_numpy(np.float64)
        for seed in range(STARTS):
            for name, run in METHODS.items():
                start = time.process_time()
                residual = run(dense, rank, seed)
                seconds = time.process_time() - start
                success = residual is not None and residual < SUCCESS
                outcomes[name].append((instance, success, seconds))
        print(instance, {n: sum(s for i, s, _ in o if i == instance) for n, o in outcomes.items()})
    rows = [
        {
            "method": name,
            "success": round(statistics.mean(s for _, s, _ in runs), 3),
            "instances_ever_solved": len({i for i, s, _ in runs if s}),
            "instances": len(INSTANCES),
            "runs": len(runs),
            "median_seconds": round(statistics.median(t for _, _, t in runs), 4),
            "by_instance": {
                i: sum(s for j, s, _ in runs if i == j) / STARTS for i in INSTANCES
            },
        }
        for name, runs in outcomes.items()
    ]  # fmt: skip
    write(
        "cp_success",
        what="share of random starts that reach an exact decomposition at the known rank",
        peer="tensorly and pyttb, on the same instances in the same run",
        rows=rows,
        packages=["numpy", "scipy", "tensorly", "pyttb"],
    )


if __name__ == "__main__":
    main()
