"""Certified intervals of the rank and of the effective rank: their best bounds, with certificates.

Bounds that need no search come first: unfoldings and independent sets from below, slices and covers
by fibers from above, each component in its best mode. Where the interval of a component is still
open, the methods of `capacity.rank.search.methods` are tried, as far as the effort allows.

The *effective rank* is the lowest rank of a tensor that agrees with D on the observed fibers D[k,
q, :] (Wong 2025, section 2.1); of a tensor of another order, on the fibers of the last mode that
have an entry. It is at most the rank. Bounds from below are the rank of the
observed fibers, which is the number of objects on functional data, and the substitution method with
the unobserved fibers unknown; from above, decompositions of the tensor, of the tensor after merging
subjects and predicates, and shorter ones that ignore the unobserved fibers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from capacity.checks import Seed, integer_seed, require_choice, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.progress import Progress
from capacity.rank.bounds import Bounds, database_bounds
from capacity.rank.decompositions import start_argument
from capacity.rank.factors import FactorsLike
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.interval import INTERRUPTED, RankInterval, raised, with_lower
from capacity.rank.method import Method
from capacity.rank.options import BUDGETS, FIELDS, Effort, Field
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.search.assembly import effective_lower_end, lower_end, upper_end
from capacity.rank.search.effective_ledger import EffectiveLedger
from capacity.rank.search.explanation import explain_effective, explain_rank
from capacity.rank.search.groupings import Groups, groupings, lower_methods
from capacity.rank.search.methods import chosen, uncited
from capacity.rank.search.rank_ledger import START, RankLedger
from capacity.rank.search.scheduler import Ledger, search
from capacity.rank.verifier.argument import Side
from capacity.rank.verifier.certificate import Certificate, CertificatePair, Quantity
from capacity.rank.verifier.kinds import cited_by
from capacity.rank.verifier.kinds.complex import ComplexDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.named import name_of, tensor_of
from capacity.tensor.structure import is_complete


class RankAnalysis:
    """Bounds, rank and effective rank, each computed once, on first access.

    Ctrl-C ends a search and keeps the best interval so far; a second one raises KeyboardInterrupt.

    Parameters
    ----------
    of : Database, SparseTensor, path, table, graph or array
        A database, functional or not, or facts that `capacity.database.as_database` makes one of,
        multi-valued pairs kept; or a tensor of integers of order 2 or more, or an array, lists or a
        file that `capacity.tensor.as_tensor` makes one of.
    effort : {'quick', 'standard', 'thorough'}
        Work for components that are still open. On small databases `quick` takes about 1 s,
        `standard` 30 s, `thorough` minutes. Work is counted in steps, so a seed yields the same
        interval on any machine; the exception is numerical fits (from `standard` on), where the
        last bits of floating point can decide whether one is found.
    seed : int or numpy.random.Generator
        Seed of the search.
    methods : iterable of str or Method, optional
        Methods to search with, or names of registered ones; all of `capacity.rank.METHODS` if
        omitted. Unfoldings, slices, independent sets and fiber covers need no search and are always
        used.
    start : Factors, tensorly CPTensor, or sequence of array_like, optional
        A decomposition of the tensor, as `verify_decomposition` takes it: the upper end is at most
        its number of terms, and searches for shorter ones start from it. One with complex numbers
        bounds the rank over C alone.
    field : {'R', 'Q', 'C'}
        Bound the rank over the real, the rational or the complex numbers. The rank over a larger
        field can be smaller, and isn't larger.
    border : bool
        Bound the border rank, the least r such that the tensor is a limit of tensors of rank r,
        in place of the rank.
    cited : bool
        Whether a proof may rest on published theorems that the library doesn't prove, such as
        Bläser's about products of matrices. `RankInterval.cited` names those that one rests on.
    progress : callable, optional
        Called with a text, which has the interval so far and the next method, and the numbers of
        methods tried and of all (`capacity.Progress`).

    Raises
    ------
    InvalidTypeError
        If `of` is neither a database nor a tensor.
    InvalidArgumentError
        If the effort or a method is unknown, the seed isn't one, `start` isn't a decomposition of
        the tensor, or a tensor has a single mode or an entry of 2^31 or more in absolute value.

    Examples
    --------
    Example 2.4 of the paper has rank 5 and effective rank 1:

    >>> from capacity import Database
    >>> facts = [(k, q, "v") for k, q in zip("abcde", "fghij")]
    >>> analysis = RankAnalysis(Database.from_triples(facts))
    >>> analysis.bounds.paper, str(analysis.rank), str(analysis.effective_rank)
    (5, '[5, 5]', '[1, 1]')
    """

    def __init__(
        self,
        of: FactsOrTensor,
        *,
        effort: Effort = "quick",
        seed: Seed = 0,
        methods: Iterable[str | Method] | None = None,
        start: FactorsLike | None = None,
        field: Field = "R",
        border: bool = False,
        cited: bool = True,
        progress: Progress | None = None,
    ) -> None:
        require_choice("`effort`", effort, BUDGETS)
        require_choice("`field`", field, FIELDS)
        self._field: Field = field
        for name, value in (("border", border), ("cited", cited)):
            if type(value) is not bool:
                raise InvalidTypeError(f"`{name}` must be True or False; got {shown(value)}.")
        self._border, self._cited = border, cited
        self._of = given_of(of, "An analysis of ranks, such as rank_interval(of),")
        self.tensor = tensor_of(self._of)
        self._effort: Effort = effort
        self._budget, self._seed = BUDGETS[effort], integer_seed(seed)
        self._methods = chosen(methods) if cited else uncited(methods)
        self._progress = progress
        given = None if start is None else start_argument(self._of, start)
        self._start = given.terms if isinstance(given, Decomposition) else ()
        self._complex = given if isinstance(given, ComplexDecomposition) else None

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.tensor.shape))
        size = f"{self.tensor.n_entries} {self._entries}"
        return f"RankAnalysis({size}, {shape:.80}, effort={self._effort!r})"

    @property
    def _entries(self) -> str:
        """Word for what the tensor holds."""
        return "entries" if self._of is self.tensor else "facts"

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds that need no search.

        Raises
        ------
        MemoryBudgetError
            If an exact rank needs a dense block over its budget.
        """
        return database_bounds(self._of)

    @property
    def rank(self) -> RankInterval:
        """The interval of the rank, or of the border rank.

        If `effective_rank` was computed before and its lower end is larger, that is the lower end
        here, too: the rank is at least the effective rank. The same arguments prove it, as those
        that don't rely on the unobserved fibers remain valid once these are known.
        """
        effective = self.__dict__.get("effective_rank")
        return self._rank if effective is None else raised(self._rank, effective)

    @cached_property
    def _rank(self) -> RankInterval:
        ledger = RankLedger(
            self.tensor, self.bounds, self._budget, self._seed, self._start,
            field=self._field, border=self._border,
        )  # fmt: skip
        interrupted = self._search(ledger)
        lower = self._certificate("rank", "lower", *lower_end(ledger, self._methods))
        upper = self._certificate("rank", "upper", *upper_end(ledger, self._methods))
        why = explain_rank(ledger, upper.value, self._entries) + INTERRUPTED * interrupted
        if self._start and len(self._start) < upper.value:
            # a term may be part of several components
            upper = self._certificate("rank", "upper", (Decomposition(self._start),), START)
            why = (why[0], f"at most {upper.value:,}: {upper.value:,} by {START}", *why[2:])
        interval = RankInterval(CertificatePair(lower, upper), interrupted, why, self.tensor)
        return self._with_complex_start(self._by_groupings(interval))

    def _with_complex_start(self, interval: RankInterval) -> RankInterval:
        """Keep a complex decomposition that was given, and take it if it bounds the rank over C."""
        if self._complex is None:
            return interval
        argument = self._complex
        upper = replace(interval.certificates.upper, value=argument.value, by=START,
                        arguments=(argument,), groups=(), field="C")  # fmt: skip
        kept = replace(interval, upper_over_complex=upper)
        is_better = self._field == "C" and argument.value < interval.upper
        return kept.over("C") if is_better else kept

    @cached_property
    def effective_rank(self) -> RankInterval:
        """The interval of the effective rank, at most the rank's upper end.

        Raises
        ------
        InvalidArgumentError
            If the border rank is bounded: there is no notion of an effective one here.
        """
        if self._border:
            raise InvalidArgumentError(
                "`border` is about the rank: the effective rank has no border rank here. Leave "
                "`border` out."
            )
        rank = self._rank
        if is_complete(self.tensor):
            return replace(
                rank,
                certificates=CertificatePair(
                    *(replace(end, quantity="effective_rank") for end in rank.certificates)
                ),
                explanation=(*rank.explanation, "every pair has an object, so this is the rank"),
            )
        ledger = EffectiveLedger(
            self.tensor, self.bounds, rank.certificates.upper, self._budget, self._seed
        )
        interrupted = rank.interrupted or self._search(ledger)
        interval = RankInterval(
            CertificatePair(
                self._certificate("effective_rank", "lower", *effective_lower_end(ledger)),
                self._certificate("effective_rank", "upper", *ledger.above),
            ),
            interrupted,
            explain_effective(ledger, self._entries) + INTERRUPTED * interrupted,
            self.tensor,
        )
        return self._by_groupings(interval)

    def _by_groupings(self, interval: RankInterval) -> RankInterval:
        """Raise the lower end by tensors of order 3, for a tensor of higher order."""
        if self.tensor.order <= 3:
            return interval
        quantity = interval.quantity
        effective = quantity == "effective_rank"
        methods = lower_methods(tuple(self._methods))
        for groups, tensor in groupings(self.tensor, effective=effective):
            if interval.closed or interval.interrupted:
                break
            analysis = RankAnalysis(
                tensor, effort=self._effort, seed=self._seed, methods=methods,
                field=self._field, border=self._border, cited=self._cited,
                progress=self._progress,
            )  # fmt: skip
            grouped = analysis.effective_rank if effective else analysis.rank
            interval = replace(interval, interrupted=grouped.interrupted)
            if grouped.lower > interval.lower:
                proof = grouped.certificates.lower
                by = f"{proof.by} of modes {_written(groups)}"
                lower = self._certificate(quantity, "lower", proof.arguments, by)
                first = f"at least {lower.value:,}: by {by}"
                interval = with_lower(interval, replace(lower, groups=groups), first)
        return interval

    def _search(self, ledger: Ledger) -> bool:
        """Search, and return True if Ctrl-C ended the search."""
        try:
            search(ledger, self._methods, self._progress)
        except KeyboardInterrupt:
            return True
        return False

    def _certificate(
        self, quantity: Quantity, side: Side, arguments: Finding, by: str
    ) -> Certificate:
        value = sum(argument.value for argument in arguments)
        if not self._cited and (sources := cited_by(arguments)):
            raise InvalidArgumentError(
                f"A method that rests on published theorems ({', '.join(sources)}) must have "
                f"`cites=True`; {by} hasn't."
            )
        return Certificate(
            quantity, side, value, by, arguments, *name_of(self._of),
            field=self._field, border=self._border,
        )  # fmt: skip


def rank_interval(
    of: FactsOrTensor,
    *,
    effort: Effort = "quick",
    seed: Seed = 0,
    methods: Iterable[str | Method] | None = None,
    start: FactorsLike | None = None,
    field: Field = "R",
    border: bool = False,
    cited: bool = True,
    progress: Progress | None = None,
) -> RankInterval:
    """Bound the rank of a database or of a tensor from both sides, with certificates.

    Parameters
    ----------
    of : Database, SparseTensor, path, table, graph or array
        A database, functional or not, or facts that `capacity.database.as_database` makes one of,
        multi-valued pairs kept; or a tensor of integers of order 2 or more, or an array, lists or a
        file that `capacity.tensor.as_tensor` makes one of.
    effort : {'quick', 'standard', 'thorough'}
        Work for what is still open; on small databases about 1 s, 30 s, or minutes, and about a
        minute at 'standard' on graphs of hundreds of thousands of facts.
    seed : int or numpy.random.Generator
        Seed of the search.
    methods : iterable of str or Method, optional
        Methods to search with; all of `capacity.rank.METHODS` if omitted.
    start : Factors, tensorly CPTensor, or sequence of array_like, optional
        A decomposition to start from, which the upper end doesn't exceed; one with complex numbers
        bounds the rank over C alone. As for `RankAnalysis`.
    field : {'R', 'Q', 'C'}
        Bound the rank over the real, the rational or the complex numbers.
    border : bool
        Bound the border rank in place of the rank.
    cited : bool
        Whether a proof may rest on published theorems that the library doesn't prove, which
        `RankInterval.cited` names.
    progress : callable, optional
        Called with the interval so far and the next method (`capacity.Progress`).

    Returns
    -------
    RankInterval
        The best interval found; Ctrl-C ends the search early.

    Raises
    ------
    InvalidTypeError, InvalidArgumentError
        If `of` is neither facts nor a tensor, or rows of three integers, which may be either; if an
        entry isn't an integer; or an option isn't valid.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget.

    Examples
    --------
    >>> from capacity import Database
    >>> facts = [(k, q, "v") for k in "abc" for q in "pq"]
    >>> interval = rank_interval(Database.from_triples(facts))
    >>> print(interval)
    [1, 1]
    >>> rank_interval(facts) == interval, rank_interval([[1, 2], [2, 4]]) == (1, 1)
    (True, True)
    >>> interval.explanation
    ('at least 1: 1 by unfolding', 'at most 1: 1 by slices')

    The product of two complex numbers takes three real ones, and two complex ones; W is a limit of
    tensors of rank 2:

    >>> from capacity.tensor import complex_numbers, w_state
    >>> print(rank_interval(complex_numbers()), rank_interval(complex_numbers(), field="C"))
    [3, 3] [2, 3]
    >>> print(rank_interval(w_state(3)), rank_interval(w_state(3), border=True))
    [3, 3] [2, 3]
    """
    return RankAnalysis(
        of, effort=effort, seed=seed, methods=methods, start=start, field=field, border=border,
        cited=cited, progress=progress,
    ).rank  # fmt: skip


def effective_rank_interval(
    of: FactsOrTensor,
    *,
    effort: Effort = "quick",
    seed: Seed = 0,
    methods: Iterable[str | Method] | None = None,
    cited: bool = True,
    progress: Progress | None = None,
) -> RankInterval:
    """Bound the effective rank of a database or of a tensor from both sides, with certificates.

    Parameters
    ----------
    of : Database, SparseTensor, path, table, graph or array
        A database, functional or not, or facts that `capacity.database.as_database` makes one of,
        multi-valued pairs kept; or a tensor of integers of order 2 or more, or an array, lists or a
        file that `capacity.tensor.as_tensor` makes one of.
    effort, seed, methods, cited, progress : optional
        As for `rank_interval`.

    Returns
    -------
    RankInterval
        The best interval found; Ctrl-C ends the search early.

    Raises
    ------
    InvalidTypeError, InvalidArgumentError, MemoryBudgetError
        As for `rank_interval`.

    Examples
    --------
    >>> from capacity import Database
    >>> facts = [(k, q, "v") for k, q in zip("abcde", "fghij")]
    >>> print(effective_rank_interval(Database.from_triples(facts)))
    [1, 1]
    """
    return RankAnalysis(
        of, effort=effort, seed=seed, methods=methods, cited=cited, progress=progress
    ).effective_rank


def _written(groups: Groups) -> str:
    """Write groups of modes, such as 0+1 2 3."""
    return " ".join("+".join(map(str, group)) for group in groups)
