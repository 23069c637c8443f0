"""A file for Lean 4 that states the ends of a rank and proves them by explicit numbers.

The theorems are those of a public library, ``BilinearComplexity`` of
https://github.com/thatnealpatel/proofs (MIT): a tensor with a nonzero minor of size m in an
unfolding has at least m terms, and one with such a minor in a Koszul flattening with p = 1 at least
m / (a - 1) (Landsberg and Ottaviani 2015). What is written here hasn't been run in Lean; the tests
of this library read it back and check its numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from capacity.display import briefly_shown
from capacity.errors import CertificateError, InvalidArgumentError
from capacity.rank.factors import Factors, factors_of
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.lean.minors import OTHERS, Minor, minor_of
from capacity.rank.lean.pieces import (
    EQUAL,
    HEAD,
    MAPPED,
    MATRIX,
    MINOR,
    PART,
    PERMUTED,
    UPPER,
)
from capacity.rank.pencils.whole import in_terms
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.checker import verify
from capacity.tensor.sparse import SparseTensor

FIELDS = {"Q": "Rat", "R": "Real", "C": "Complex"}
# numbers in a file; a proof of some thousands takes Lean minutes
MOST_NUMBERS = 50_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@briefly_shown
@dataclass(frozen=True)
class LeanProof:
    """Text for Lean, and which ends it proves.

    Attributes
    ----------
    text : str
        The file.
    lower, upper : int or None
        Ends that are stated and proved in it; None for one that isn't.
    omitted : tuple of str
        Why an end isn't in it.
    """

    text: str
    lower: int | None
    upper: int | None
    omitted: tuple[str, ...]


def lean_proof(
    certificates: Certificate | Iterable[Certificate], of: FactsOrTensor, *, name: str = "Capacity"
) -> LeanProof:
    """Write certificates of a rank as a file for Lean 4, with the theorems of a public library.

    The file states the tensor by its entries. An upper end has the simple tensors, and a lower end
    a minor of an unfolding or of a Koszul flattening (p = 1) with its inverse. It needs the library
    ``BilinearComplexity`` of https://github.com/thatnealpatel/proofs, and hasn't been run in Lean.

    Parameters
    ----------
    certificates : Certificate or iterable of Certificate
        Of the rank, such as ``rank_interval(of).certificates``. They are verified first.
    of : object
        Facts or a tensor of order three, as `rank_interval` takes them.
    name : str
        Namespace of the file.

    Returns
    -------
    LeanProof
        The text, the ends that it proves, and why others aren't in it.

    Raises
    ------
    CertificateError
        If a certificate doesn't prove its bound.
    InvalidArgumentError
        If no end can be written, with the reasons; if the tensor isn't of order three, the numbers
        would be too many, or the name is none.

    References
    ----------
    J. M. Landsberg and G. Ottaviani, New lower bounds for the border rank of matrix multiplication,
    Theory of Computing 11 (2015) 285-298.

    Examples
    --------
    >>> from capacity import rank_interval
    >>> from capacity.tensor import complex_numbers
    >>> C = complex_numbers()
    >>> proof = lean_proof(rank_interval(C).certificates.upper, C)
    >>> proof.upper, "theorem rank_le : RankLE tensor 3" in proof.text
    (3, True)
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidArgumentError(
            f"`name` must be letters, digits and underscores, as a namespace of Lean; got "
            f"{name!r:.60}."
        )
    given = given_of(of, "lean_proof(certificates, {})")
    tensor = given if isinstance(given, SparseTensor) else given.tensor()
    if len(tensor.shape) != 3:
        raise InvalidArgumentError(
            f"A tensor must have three modes to be written for Lean; its shape is {tensor.shape}."
        )
    ends = [certificates] if isinstance(certificates, Certificate) else list(certificates)
    found: dict[str, Factors | Minor] = {}
    omitted: list[str] = []
    # the best of each side is written
    for end in sorted(ends, key=lambda end: end.value if end.side == "upper" else -end.value):
        _require_proved(end, of)
        try:
            if end.side in found:
                raise InvalidArgumentError("a better one is written.")
            found[end.side] = _content(end, tensor)
        except InvalidArgumentError as error:
            omitted.append(f"{end.side} end {end.value}: {error}")
    if not found:
        raise InvalidArgumentError(
            "An end that Lean can check must be among the certificates. " + " ".join(omitted)
        )
    over = {FIELDS[end.field] for end in ends}
    if len(over) > 1:
        raise InvalidArgumentError("The certificates must be about ranks over one field.")
    return _written(found, tensor, over.pop(), name, tuple(omitted))


def _require_proved(end: Certificate, of: FactsOrTensor) -> None:
    if end.quantity != "rank" or end.border:
        raise InvalidArgumentError(
            f"A certificate that is written for Lean must be about the rank; got the {end.what}."
        )
    verdict = verify(end, of)
    if not verdict.proved:
        raise CertificateError(f"The certificate must prove its bound: {verdict.reason}.")


def _content(end: Certificate, tensor: SparseTensor) -> Factors | Minor:
    """Return what proves an end, small enough to be written."""
    size = math.prod(tensor.shape)
    if end.side == "lower" and (len(end.arguments) != 1 or end.groups):
        raise InvalidArgumentError(
            f"it must rest on one argument; it adds up those of {len(end.arguments)}."
        )
    if size <= MOST_NUMBERS and end.side == "lower":
        found = minor_of(next(iter(end.arguments)), tensor)
        size += 2 * found.entries.size + found.part.size
    elif size <= MOST_NUMBERS:
        found = factors_of(in_terms(end.arguments, tensor), tensor)
        if any(not isinstance(x, int | Fraction)
               for matrix in found.matrices for x in matrix.ravel().tolist()):  # fmt: skip
            raise InvalidArgumentError("its coefficients must be rational numbers.")
        size += sum(matrix.size for matrix in found.matrices)
    else:
        found = None
    if found is None or size > MOST_NUMBERS:
        raise InvalidArgumentError(
            f"at most {MOST_NUMBERS:,} numbers are written; this end needs {size:,}."
        )
    return found


def _written(
    found: dict[str, Factors | Minor], tensor: SparseTensor, k: str, name: str,
    omitted: tuple[str, ...],
) -> LeanProof:  # fmt: skip
    upper, lower = found.get("upper"), found.get("lower")
    least = lower.value if isinstance(lower, Minor) else None
    most = upper.rank if isinstance(upper, Factors) else None
    ends = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
    shape = " x ".join(map(str, tensor.shape))
    what = f"A tensor of the shape {shape} has rank {' and '.join(ends)} over {k}."
    parts = [
        HEAD.format(
            what=what, name=name, k=k, shape=_sizes(tensor.shape),
            entries=_vector(tensor.to_numpy()),
        )
    ]  # fmt: skip
    if isinstance(upper, Factors):
        A, B, C = (_vector(matrix.T) for matrix in upper.matrices)
        a, b, c = tensor.shape
        parts.append(UPPER.format(k=k, r=upper.rank, a=a, b=b, c=c, A=A, B=B, C=C))
    if isinstance(lower, Minor):
        parts += _of_minor(lower, k)
    if least is not None and least == most:
        parts.append(EQUAL.format(r=least))
    return LeanProof("".join([*parts, f"\nend «{name}»\n"]), least, most, omitted)


def _of_minor(minor: Minor, k: str) -> Iterator[str]:
    """Yield the part of a tensor, its minor, and the bound."""
    a, b, c = minor.part.shape
    m, moved = len(minor.rows), "h"
    if minor.maps is not None:
        yield MAPPED.format(k=k)
        for letter, P in zip("PQR", minor.maps, strict=True):
            rows, columns = P.shape
            yield MATRIX.format(letter=letter, rows=rows, columns=columns, matrix=_vector(P))
            moved = f"mapped (fun i x => ({letter} i x : {k})) ({moved})"
    if minor.mode:
        yield PERMUTED.format(name="turned", k=k, order="j l i", factors="v, w, u")
    # a turn begins with the next mode; with the second one first, the others are exchanged
    for _ in range(minor.mode):
        moved = f"turned ({moved})"
    if minor.mode == 1:
        yield PERMUTED.format(name="swapped", k=k, order="i l j", factors="u, w, v")
        moved = f"swapped ({moved})"
    is_part = minor.maps is not None or minor.mode > 0
    if is_part:
        # indices of the part for each mode of the tensor
        i, j, last = ("ijl", "jil", "jli")[minor.mode]
        entry = f"entries {i} {j} {last}" if minor.maps is None else (
            f"∑ z, R {last} z * ∑ y, Q {j} y * ∑ x, P {i} x * entries x y z"
        )  # fmt: skip
        second, third = OTHERS[minor.mode]
        yield PART.format(
            what=f"{'A part of the' if minor.maps else 'The'} tensor with the modes "
                 f"{minor.mode}, {second} and {third} as its first, second and third one.",
            k=k, shape=_sizes(minor.part.shape), entries=_vector(minor.part), entry=entry,
            moved=moved,
        )  # fmt: skip
    of, given = ("part", "(rank_part_le h)") if is_part else ("tensor", "h")
    entries = "partEntries" if is_part else "entries"
    fill = _koszul if minor.is_koszul else _unfolding
    about = fill(k, a, b, c, entries, of)
    yield MINOR.format(
        m=m, k=k, of=of, given=given, r=minor.value - 1, **about,
        rows=_places(minor.rows, koszul=minor.is_koszul), columns=_places(minor.columns),
        minor=_vector(minor.entries), inverse=_vector(minor.inverse()),
    )  # fmt: skip


def _koszul(k: str, a: int, b: int, c: int, entries: str, of: str) -> dict[str, str]:
    """Words about a minor of a Koszul flattening."""
    rational = f"fun i j l => ({entries} i j l : Rat)"
    return {
        "row_type": f"Prod (Fin {c}) (KoszulPair {a})",
        "column_type": f"Prod (Fin {b}) (Fin {a})",
        "flattening": "Koszul flattening",
        "linear": f"koszulLinear {k} {a} {b} {c} {of}",
        "entry": f"koszulMatrix ({rational}) (rows i) (columns j)",
        "unfold": "simp only [Matrix.submatrix_apply, koszulLinear_apply, koszulMatrix_apply, "
                  f"{of}]\n    split_ifs <;> simp",
        "theorem": "koszul_not_rankLE_of_mul_lt_of_minor_ne_zero rows columns",
    }  # fmt: skip


def _unfolding(k: str, a: int, b: int, c: int, entries: str, of: str) -> dict[str, str]:
    """Words about a minor of an unfolding."""
    return {
        "row_type": f"Fin {a}",
        "column_type": f"Prod (Fin {b}) (Fin {c})",
        "flattening": "unfolding",
        "linear": f"flatteningLinear (k := {k}) {of}",
        "entry": f"({entries} (rows i) (columns j).1 (columns j).2 : Rat)",
        "unfold": f"simp [flattening, {of}]",
        "theorem": "not_rankLE_of_mul_lt_of_submatrix_det_ne_zero (q := 1) flatteningLinear\n"
                   "    rank_flatteningLinear_simple_le_one rows columns",
    }  # fmt: skip


def _sizes(shape: Sequence[int]) -> str:
    return " ".join(map(str, shape))


def _vector(array: Any, indent: str = "  ") -> str:
    """Write an array as nested vectors, a row of the last mode per line."""
    if array.ndim == 1:
        return f"![{', '.join(map(str, array.tolist()))}]"
    deeper = indent + "  "
    return "![" + f",\n{deeper}".join(_vector(one, deeper) for one in array) + "]"


def _places(places: list[tuple[int, ...]], *, koszul: bool = False) -> str:
    """Write places of rows or columns: numbers, pairs, or pairs with a pair in ascending order."""
    if koszul:
        each = [f"({third}, ⟨({p}, {q}), by decide⟩)" for third, p, q in places]
    else:
        each = [str(place[0]) if len(place) == 1 else f"({place[0]}, {place[1]})"
                for place in places]  # fmt: skip
    return "![" + ",\n    ".join(each) + "]"
