"""`RankInterval`: a certified interval of the rank or of the effective rank."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from capacity.checks import require_choice
from capacity.display import table
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.rank.factors import Factors, factors_of
from capacity.rank.options import FIELDS, Field
from capacity.rank.search.assembly import kept_over
from capacity.rank.verifier.certificate import Certificate, CertificatePair, Quantity
from capacity.rank.verifier.kinds import cited_by
from capacity.rank.verifier.kinds.pencil import Pencil
from capacity.tensor.sparse import SparseTensor
from capacity.visible import visible

# a sentence of an explanation
INTERRUPTED = ("interrupted before the search was over",)


@dataclass(frozen=True, eq=False, repr=False)
class RankInterval:
    """A certified interval [lower, upper] that contains the rank, or the effective rank.

    It unpacks into its ends, which are integers, and equals another interval, or a tuple, with the
    same ends. A format is that of each end.

    Attributes
    ----------
    certificates : CertificatePair
        The proofs of both ends, `certificates.lower` and `certificates.upper`.
    interrupted : bool
        True if Ctrl-C ended the search; the interval is valid all the same.
    explanation : tuple of str
        Sentences: the share of each method in both ends, the component with the widest gap, and
        why the search stopped there.
    tensor : SparseTensor or None
        The tensor whose rank this is; None for an interval that was put together by hand.
    upper_over_complex : Certificate or None
        Proof of an upper end over C alone, by a complex decomposition that was given as a start.

    Examples
    --------
    >>> from capacity import rank_interval
    >>> from capacity.tensor import w_state
    >>> interval = rank_interval(w_state(3))
    >>> lower, upper = interval
    >>> lower, upper, 3 in interval, interval == (3, 3), f"{interval:03d}"
    (3, 3, True, True, '[003, 003]')
    >>> interval.certificates.upper
    Certificate(rank <= 3, by ...)
    """

    certificates: CertificatePair
    interrupted: bool = False
    explanation: tuple[str, ...] = ()
    tensor: SparseTensor | None = None
    upper_over_complex: Certificate | None = None

    @property
    def lower(self) -> int:
        """The lower end: the rank is at least that."""
        return self.certificates.lower.value

    @property
    def upper(self) -> int:
        """The upper end: the rank is at most that."""
        return self.certificates.upper.value

    @property
    def quantity(self) -> Quantity:
        """The quantity that is bounded: the rank or the effective rank."""
        return self.certificates.lower.quantity

    @property
    def field(self) -> Field:
        """The field over which the rank is bounded: R, Q or C."""
        return self.certificates.lower.field

    @property
    def cited(self) -> tuple[str, ...]:
        """Authors and years of the published theorems that the proofs of the ends rest on.

        Examples
        --------
        >>> from capacity import rank_interval
        >>> from capacity.tensor import matrix_multiplication
        >>> T = matrix_multiplication(3, 3, 3)
        >>> rank_interval(T).cited, rank_interval(T, cited=False).cited
        (('Bläser 2003',), ())
        """
        return cited_by([a for end in self.certificates for a in end.arguments])

    def over(self, field: Field) -> RankInterval:
        """Return the interval that these proofs imply over another field.

        An end whose proof doesn't hold there is replaced by a bound that needs no search.
        ``rank_interval(of, field=...)`` searches for better ones.

        Parameters
        ----------
        field : {'Q', 'R', 'C'}
            The rational, the real or the complex numbers.

        Raises
        ------
        InvalidArgumentError
            If there is no such field here, or the interval has no tensor.

        Examples
        --------
        >>> from capacity import rank_interval
        >>> from capacity.tensor import complex_numbers
        >>> rank = rank_interval(complex_numbers())
        >>> print(rank, rank.over("C"))
        [3, 3] [2, 3]
        """
        require_choice("`field`", field, FIELDS)
        return self._of(field, border=self.certificates.lower.border)

    @property
    def border(self) -> RankInterval:
        """The border rank by these proofs, as `over` has the rank over another field.

        Examples
        --------
        >>> from capacity import rank_interval
        >>> from capacity.tensor import w_state
        >>> print(rank_interval(w_state(3)).border)
        [2, 3]
        """
        if self.quantity != "rank":
            raise InvalidArgumentError("The effective rank has no border rank here; the rank has.")
        return self._of(self.field, border=True)

    def _of(self, field: Field, *, border: bool) -> RankInterval:
        if self.tensor is None:
            raise InvalidArgumentError(
                "This needs an interval that a search has found; this one has no tensor."
            )
        ends = [kept_over(end, self.tensor, field, border=border) for end in self.certificates]
        other = self.upper_over_complex
        if field == "C" and other is not None and other.value < ends[1].value:
            # where an effective rank has it, all fibers are observed
            ends[1] = replace(other, quantity=self.quantity, border=border)
        words = (f"at least {ends[0].value:,}: by {ends[0].by}",
                 f"at most {ends[1].value:,}: by {ends[1].by}")  # fmt: skip
        return RankInterval(
            CertificatePair(*ends), self.interrupted, words, self.tensor, self.upper_over_complex
        )

    @property
    def closed(self) -> bool:
        """True if both ends are equal, so that the rank is known."""
        return self.lower == self.upper

    def uninterrupted(self) -> RankInterval:
        """Return the interval itself, for work that an interrupted search must end.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C ended the search.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        return self

    def __iter__(self) -> Iterator[int]:
        return iter((self.lower, self.upper))

    def __contains__(self, rank: int) -> bool:
        return self.lower <= rank <= self.upper

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RankInterval):
            other = (other.lower, other.upper)
        if isinstance(other, tuple):
            return (self.lower, self.upper) == other
        if isinstance(other, numbers.Real):
            # False would be read as "the rank isn't that", of which an open interval says nothing
            raise InvalidTypeError(
                f"An interval equals an interval, or a tuple of both ends; got the number {other}. "
                f"Ask for `{other} in interval`, `interval.lower == {other}` or `interval.closed`."
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __format__(self, spec: str) -> str:
        return f"[{self.lower:{spec}}, {self.upper:{spec}}]"

    def __repr__(self) -> str:
        known = "known exactly" if self.closed else "certified"
        lower, upper = self.certificates
        return (
            f"RankInterval({self}, {known}; lower by {visible(lower.by[:60])}, upper by "
            f"{visible(upper.by[:60])}{'; interrupted' if self.interrupted else ''})"
        )

    def _repr_html_(self) -> str:
        lower, upper = self.certificates
        rows = [("at least", f"{lower.value:,}, by {lower.by}"),
                ("at most", f"{upper.value:,}, by {upper.by}"),
                *(("", line) for line in self.explanation)]  # fmt: skip
        return table(f"{lower.what} in {self}", rows)

    def __str__(self) -> str:
        return f"{self:d}"

    def decomposition(self) -> Factors:
        """Return the simple tensors that prove the upper end.

        For the effective rank they add up to a tensor that agrees with this one on the observed
        fibers.

        Raises
        ------
        InvalidArgumentError
            If the upper end rests on an argument without terms: a diagonalization, a fit with an
            exact decomposition near it, a theorem, or two slices of rank over 60 or whose roots
            aren't rational or of one quadratic field; or if `tensor` is None.

        Examples
        --------
        >>> from capacity import rank_interval
        >>> from capacity.tensor import w_state
        >>> factors = rank_interval(w_state(3)).decomposition()
        >>> [matrix.tolist() for matrix in factors.matrices]
        [[[1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 0]], [[1, 1, 0], [0, 0, 1]]]
        """
        if self.tensor is None:
            raise InvalidArgumentError(
                "`decomposition` needs an interval that a search has found; this one has no tensor."
            )
        arguments = self.certificates.upper.arguments
        if any(isinstance(argument, Pencil) for argument in arguments):
            # only pencils need numbers of fields to be computed
            from capacity.rank.pencils.whole import in_terms

            arguments = in_terms(arguments, self.tensor)
        return factors_of(arguments, self.tensor)

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as ``capacity rank --json`` prints it."""
        about: dict[str, Any] = {"field": self.field} if self.field != "R" else {}
        if self.certificates.lower.border:
            about["border"] = True
        return {
            **about,
            "lower": self.lower,
            "upper": self.upper,
            "closed": self.closed,
            "cited": list(self.cited),
            "lower_by": self.certificates.lower.by,
            "upper_by": self.certificates.upper.by,
        }


def raised(rank: RankInterval, effective: RankInterval) -> RankInterval:
    """Return the rank's interval, with the effective rank's lower end if that is larger."""
    lower = replace(effective.certificates.lower, quantity="rank")
    if lower.value <= rank.lower:
        return rank
    first = f"at least {lower.value:,}: the effective rank's lower bound, by {lower.by}"
    return with_lower(rank, lower, first)


def with_lower(interval: RankInterval, lower: Certificate, first: str) -> RankInterval:
    """Return an interval with another lower end, which a sentence explains."""
    # the sentence about the widest component no longer holds
    left = (f"open: [{lower.value:,}, {interval.upper:,}]",)
    still_open = left if lower.value < interval.upper else ()
    ends = (first, *interval.explanation[1:2])
    explanation = (*ends, *still_open, *INTERRUPTED * interval.interrupted)
    certificates = interval.certificates._replace(lower=lower)
    return replace(interval, certificates=certificates, explanation=explanation)
