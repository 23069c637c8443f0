"""The tensors of the catalogue: their names, families, and what is published of them.

Published schemes are those that the tests of readers keep (tests/rank/schemes/data, with their
licences). Each is a start of the search, so that no upper end is above a published one.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

from capacity.rank.reductions.relabelling import relabelling
from capacity.tensor import named_tensor, permuted
from capacity.tensor.known import KNOWN_RANKS, KnownTensor
from capacity.tensor.names import PAIRS

SCHEMES = Path(__file__).parents[2] / "tests" / "rank" / "schemes" / "data"
PERMINOV, PLINOPT, FLIP_CPD = "perminov-MIT", "plinopt-CeCILL-B", "structured-flip-cpd-MIT"
# by the tensor's name, the file of a scheme
STARTS = {
    "matrices:2x2x5": f"{PERMINOV}/2x2x5_m18_ZT.json",
    "matrices:2x3x3": f"{PERMINOV}/2x3x3_m15_ZT.json",
    "matrices:3x3x3": f"{PERMINOV}/3x3x3_m23_Z.json",
    "matrices:3x3x4": f"{PERMINOV}/3x3x4_m29_Z.json",
    "matrices:3x4x4": f"{PERMINOV}/3x4x4_m38_Z.json",
    "matrices:4x4x4": f"{PLINOPT}/4x4x4_48_rational_L.sms",
}
# letters of the files of structured products
LETTERS = {"general": "g", "upper": "u", "lower": "l", "symmetric": "s", "skew": "k", "wedge": "w",
           "transpose": "t"}  # fmt: skip
SOURCES = {
    PERMINOV: "Perminov 2025, 2603.02398",
    PLINOPT: "Dumas, Pernet, Sedoglavic 2025, 2506.13242",
    FLIP_CPD: "Khoruzhii, Gelß, Pokutta 2025, 2511.10786",
}
MATRICES = ("2x2x2", "2x2x3", "2x2x4", "2x2x5", "2x3x3", "2x3x4", "2x4x4", "3x3x3", "3x3x4",
            "3x4x4", "4x4x4")  # fmt: skip
# the nine products of Laderman's algorithm of which a public repository has [8, 9]
NINE = "laderman:1,6,7,8,9,11,12,13,15"


@cache
def structured_products() -> dict[str, list[str]]:
    """Names of products of structured matrices, one for each tensor, and its other names.

    Two are the same tensor if they differ by the orders of modes and of indices, and by signs. The
    name of a published scheme comes first.
    """
    names = [f"{left}-{right}:{n}" for n in (2, 3) for left, right in PAIRS]
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (name[-1], scheme_of(name) is None)):
        same = next((one for one in found if same_tensor(name, one)), None)
        if same is None:
            found[name] = []
        else:
            found[same].append(name)
    return found


def same_tensor(name: str, other: str) -> bool:
    """Return whether two tensors of order three differ by orders and signs alone."""
    T, N = named_tensor(name), named_tensor(other)
    if sorted(T.shape) != sorted(N.shape) or T.n_entries != N.n_entries:
        return False
    orders = itertools.permutations(range(3))
    return any(relabelling(permuted(T, order), N) is not None for order in orders)


def families() -> dict[str, list[str]]:
    """Names of tensors by family, in the order of the page."""
    return {
        "products of matrices": [f"matrices:{sizes}" for sizes in MATRICES],
        "products of structured matrices": list(structured_products()),
        "parts of an algorithm": [NINE],
        "products of polynomials": [f"polynomials:{m}x{n}" for m in range(2, 6)
                                    for n in range(m, 6)],
        "polynomials modulo x^n": [f"truncated:{n}" for n in range(3, 11)],
        "group algebras": [*(f"groups:{n}" for n in range(2, 11)), "groups:2x2", "groups:2x4",
                           "groups:2x2x2", "groups:3x3", "symmetric:3", "dihedral:4",
                           "dihedral:5", "quaternion-group:"],
        "other algebras": ["complex:", "quaternions:", "exterior:2", "exterior:3"],
        "Lie algebras": ["sl:2", "gl:2", "heisenberg:3", "heisenberg:4", "so:4", "sl:3"],
        "states of qubits": [*(f"w:{n}" for n in range(3, 7)), *(f"ghz:{n}" for n in range(3, 7)),
                             "dicke:4x2", "dicke:5x2", "dicke:6x2", "dicke:6x3"],
        "determinants and permanents": ["determinant:3", "determinant:4", "permanent:3",
                                        "permanent:4"],
    }  # fmt: skip


def scheme_of(name: str) -> Path | None:
    """The file of a published scheme of a tensor, if there is one here."""
    family, _, n = name.partition(":")
    left, _, right = family.partition("-")
    if name in STARTS:
        return SCHEMES / STARTS[name]
    if left in LETTERS and right in LETTERS:
        pattern = f"{FLIP_CPD}/{LETTERS[left]}{LETTERS[right]}-{n}_le*.factors.json"
        return next(iter(SCHEMES.glob(pattern)), None)
    return None


def source_of(scheme: Path) -> str:
    """Who published a scheme."""
    return SOURCES[scheme.parent.name]


def known_of(name: str) -> KnownTensor | None:
    """Return the entry of a tensor in `KNOWN_RANKS`, if it has one."""
    tensor = named_tensor(name)
    return next((known for known in KNOWN_RANKS if known.tensor == tensor), None)
