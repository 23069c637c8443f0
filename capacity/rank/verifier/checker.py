"""The function `verify`, with the proof that the arguments of a certificate may be added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.errors import CertificateError, InvalidTypeError
from capacity.exact.types import Touched
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.certificate import Certificate, TwoEnds, each_certificate
from capacity.rank.verifier.conversion import checked_argument, checked_claim
from capacity.rank.verifier.entries import PASS, SORT, Entries, Refuted, require
from capacity.rank.verifier.kind import Kind, sources_of, why_not_over
from capacity.rank.verifier.kinds import KINDS
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.rank.verifier.named import in_words, name_of, require_groups, tensor_of
from capacity.rank.verifier.view import Removed
from capacity.tensor.coordinates import distinct
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import grouped, is_complete

# steps for an argument of any kind
ARGUMENT = 200_000


@dataclass(frozen=True, repr=False)
class Verdict:
    """The result of checking a certificate.

    Attributes
    ----------
    proved : bool
        True if the certificate proves its bound.
    reason : str or None
        The step of the check that failed; None if the bound is proved.
    cited : tuple of str
        Authors and years of the published theorems that the proof rests on; empty if each of its
        steps was checked.
    """

    proved: bool
    reason: str | None = None
    cited: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.proved

    def __repr__(self) -> str:
        cites = f", cited={self.cited}" if self.cited else ""
        return f"Verdict(proved={self.proved}, reason={self.reason!r}{cites})"


def verify(
    certificate: Certificate | TwoEnds | Iterable[Certificate],
    of: FactsOrTensor,
    *,
    budget: CheckBudget | None = None,
    cited: bool = True,
) -> Verdict:
    """Check that a certificate proves its bound for the facts of a database, or for a tensor.

    Parameters
    ----------
    certificate : Certificate, RankInterval, or iterable of Certificate
        A certificate, an interval for both of its ends, or several; proved if each is.
    of : Database, SparseTensor, or what `rank_interval` takes
        The bound's facts, under the same policy for multi-valued pairs, or its tensor.
    budget : CheckBudget, optional
        Work that the check may take, shared by all certificates; if omitted, a new budget for each.
    cited : bool
        Whether a proof may rest on a published theorem that the library doesn't prove.

    Returns
    -------
    Verdict
        Either `proved`, or with the `reason` why not.

    Raises
    ------
    InvalidTypeError
        If `certificate` is none of these, or `of` is neither a database nor a tensor.
    CertificateError
        If there is none, or one is for other facts, another policy or another tensor, has an
        unknown quantity or side, or has an argument of a kind that no checker is registered for.
    MemoryBudgetError
        If the check takes more memory or time than the budget has left.

    Notes
    -----
    *Lower bounds of the rank* add over arguments about different components. Let D = A (+) B. An
    argument for A removes slices of A, those of mode m in a set S_m: by steps of the substitution
    method, or as the r independent slices of an unfolding of rank r. Each of them is nonzero when
    its turn comes, or several of one mode are independent, and the rank falls by at least as many.
    What remains at the indices of B is D with multiples of the slices S_m added in each mode m:

        B + sum over (i, j, ..., k) in S_0 x S_1 x ... of A[i, j, ..., k] times a simple tensor,

    for all other products meet zeros of D. But A vanishes on the product of the S_m. For an
    unfolding, all but one of the sets are empty. For the substitution method, suppose that A[i, j,
    ..., k] isn't zero. The first of its slices to be removed, call it i, would hide (make
    unknown) (x, j, ..., k) for all x; then the next, call it j, unknown there, would hide (x,
    y, ..., k) for all x and y, and so on; and the last, k, of which no entry is known any more,
    couldn't be removed, nor be a row of a minor whose entries are known. Slices that are removed at
    once are of one mode, so i, j, ..., k are removed at different steps. So B stays as it was. If
    the substitution is in a view of A, restrict to the view first. One component may have any lower
    bound of its rank, such as a flattening's: the slices of the others are removed first. Two such
    bounds don't add in general (Shitov's counterexample to Strassen's additivity); but one
    flattening may be about several components at once: its rank is the sum of theirs.

    *Pairs.* An unfolding and another argument may be about the same components, if the slices that
    the unfolding removes are none of the other's sub-tensor, and vanish on it: the sub-tensor then
    stays as it is, too. The substitution method needs less: where these slices don't vanish, its
    entries are hidden from the start, because multiples of the slices were subtracted there. An
    argument can be in one such pair; in longer chains, slices subtracted first could come back. If
    the substitution is in a view, the unfolding's slices are removed first, from all of D, and then
    D is restricted: an entry of the view that they may have changed is hidden, for its hidden
    fibers are those with any such entry among their summands.

    A pair leaves a third component alone, as a substitution does by itself. Let I be the rows of
    the unfolding, of mode m, and consider the sum above, with I among the removed slices S_m. If
    A[i, j, ..., k] isn't zero for an i in I, then (x, j, ..., k) is hidden for all x of mode m from
    the start. Each of the other slices that the substitution removes hides more of it, as above, so
    that nothing is known of the last one, which can't be removed, alone or with others: no such
    term has all its other slices among the removed ones. For the terms of whose slices the
    substitution removes all, the argument above holds with "isn't known to be zero" in place of
    "isn't zero". If the second of the pair is no substitution, the slices of I vanish on its
    sub-tensor, which contains all that it removes, and no such term remains. Components are taken
    one after the other, a pair at a time: B has all the others.

    *Lower bounds of the effective rank* don't add over components: two token-disjoint databases can
    share terms in the unobserved fibers. Such a certificate has one argument, or a pair: the
    unfolding's minor lies in observed fibers, and where its slices vanish on observed fibers of the
    other's sub-tensor, these stay as they are, and the other argument uses no more than these.

    If all fibers are observed, D alone represents the facts, and the effective rank is the rank.
    Flattenings, pencils and diagonalizations bound the effective rank where their sub-tensor has
    only observed fibers, because it is then the same in every tensor that represents the facts.

    *Upper bounds* add: each argument contributes a tensor that is a sum of as many simple tensors
    as its value, and these tensors add up to D, entry by entry.

    *Fields and border ranks.* Unless the certificate names another field, the rank is that over the
    real numbers. `capacity.rank.verifier.kind` lists the arguments that hold over the rational or
    complex numbers, and which bound the border rank.

    *Theorems.* Some kinds of arguments rest on theorems of others, whose conditions are checked and
    whose proofs aren't: `Verdict.cited` names them, and with ``cited=False`` they prove nothing.

    *Groups.* A simple tensor of order n, with some of its modes taken together, is a simple tensor
    of lower order: the outer product of the vectors of the modes of a group is a vector. So the
    rank of a tensor is at least that of the tensor with groups of modes in the place of modes. If
    the last mode is a group of its own, the observed fibers stay what they are, a tensor that
    represents the facts stays one, and the same holds for the effective rank.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from capacity import rank_interval
    >>> db = Database.from_triples([("a", "p", "x"), ("a", "q", "y"), ("b", "p", "y")])
    >>> interval = rank_interval(db)
    >>> verify(interval, db)
    Verdict(proved=True, reason=None)
    >>> verify(replace(interval.certificates.upper, value=2), db).reason
    'the arguments prove 3'
    """
    certificates = each_certificate(certificate)
    if type(cited) is not bool:
        raise InvalidTypeError(f"`cited` must be True or False; got {shown(cited)}.")
    sources: dict[str, None] = {}
    of = given_of(of, "verify(certificate, of)")
    tensor = tensor_of(of)
    for one in certificates:
        verdict = _verify(one, of, tensor, budget or CheckBudget.of(tensor.n_entries), cited)
        if not verdict.proved:
            which = f"{one.side} bound: " if len(certificates) > 1 else ""
            return Verdict(False, f"{which}{verdict.reason}")
        sources |= dict.fromkeys(verdict.cited)
    return Verdict(True, cited=tuple(sources))


def _verify(
    certificate: Certificate,
    of: Database | SparseTensor,
    tensor: SparseTensor,
    budget: CheckBudget,
    cited: bool,
) -> Verdict:
    """Check one certificate."""
    checked_claim(certificate)
    if (certificate.facts_sha256, certificate.multi) not in {name_of(of), name_of(tensor)}:
        raise CertificateError(
            f"The certificate must be for {in_words(*name_of(of))}; it is for "
            f"{in_words(certificate.facts_sha256, certificate.multi)}. Load the file that it was "
            "made from, with the same selection and policy."
        )
    kinds = _kinds(certificate)
    effective = certificate.quantity == "effective_rank"
    try:
        if certificate.groups:
            size = tensor.order * tensor.n_entries
            budget.spend(3 * SORT * size, 30 * size)
            # a complete tensor alone agrees with itself on the observed fibers
            effective = effective and not is_complete(tensor)
            require_groups(certificate, tensor.order, effective=effective)
            tensor = grouped(tensor, certificate.groups)
        entries = Entries(tensor, effective=effective, budget=budget)
        entries.budget.spend(ARGUMENT * len(certificate.arguments))
        arguments = tuple(checked_argument(a, entries.budget) for a in certificate.arguments)
        require(
            not (certificate.border and effective),
            "the border rank isn't bounded by observed fibers",
        )
        why = why_not_over(
            arguments, kinds, certificate.side, certificate.field, border=certificate.border
        )
        require(why is None, str(why))
        total = sum(argument.value for argument in arguments)
        require(certificate.value == total, f"the arguments prove {total}")
        side = certificate.side
        checked = _check_lower if side == "lower" else _check_upper
        fit = all(
            side in a.sides and getattr(kind, side) is not None
            for a, kind in zip(arguments, kinds, strict=True)
        )
        require(fit, f"an argument can't argue for a {side} bound")
        alone = Counter(kind.name for kind in kinds if kind.alone)
        several = [name for name, n in alone.items() if n > 1]
        require(not several, f"only one argument may be of the kind {', '.join(several)}")
        checked(arguments, kinds, entries)
        sources = sources_of(arguments, kinds)
        if sources and not cited:
            raise Refuted(f"it rests on a published theorem ({', '.join(sources)})")
    except Refuted as refuted:
        return Verdict(False, str(refuted))
    return Verdict(True, cited=sources)


def _kinds(certificate: Certificate) -> list[Kind]:
    """The registered kind of each argument."""
    registered = {kind.argument: kind for kind in KINDS.values()}
    for argument in certificate.arguments:
        if type(argument) not in registered:
            raise CertificateError(
                "An argument must be of a kind that a checker is registered for, one of "
                f"{', '.join(sorted(KINDS))}; got an object of the type {type(argument).__name__}."
            )
    return [registered[type(argument)] for argument in certificate.arguments]


def _check_lower(arguments: tuple[Argument, ...], kinds: list[Kind], entries: Entries) -> None:
    strong = sum(not kind.adds for kind in kinds)
    require(strong <= 1, "only one argument may be of a kind whose values don't add")
    touched: list[Touched] = []
    for argument, kind in zip(arguments, kinds, strict=True):
        if kind.lower is None:
            raise Refuted(f"{kind.name} has no checker of lower bounds")
        indices = kind.lower(argument, entries)
        require(len(indices) == entries.order, "an argument must have indices of each mode")
        touched.append(indices)
    before = _pairs(arguments, kinds, touched, entries) if len(touched) > 1 else {}
    for number, (argument, kind) in enumerate(zip(arguments, kinds, strict=True)):
        if kind.removals is not None:
            kind.removals(argument, entries, before.get(number))


def _pairs(
    arguments: tuple[Argument, ...],
    kinds: list[Kind],
    touched: list[Touched],
    entries: Entries,
) -> dict[int, Removed]:
    """Slices of the unfolding that goes first, for each argument that is the second of a pair."""
    owner: dict[int, int] = {}
    paired: set[int] = set()
    before: dict[int, Removed] = {}
    for j, indices in enumerate(touched):
        about = {0} if entries.effective else _components(indices, entries)
        # the earlier argument about each component
        for i in {owner.setdefault(component, j) for component in about} - {j}:
            first = arguments[i]
            if (
                type(first) is not Unfolding
                or paired & {i, j}
                or np.isin(first.rows, indices[first.mode]).any()
                or not (kinds[j].removals is not None or _leaves(first, indices, entries))
            ):
                raise Refuted(f"argument {i} may change what argument {j} is about")
            paired |= {i, j}
            before[j] = Removed(first.mode, first.rows)
    return before


def _leaves(argument: Unfolding, indices: Touched, entries: Entries) -> bool:
    """Return True if the slices of an unfolding vanish on the sub-tensor of some indices."""
    # columns of a minor share indices
    inside = [distinct(of) for of in indices]
    inside[argument.mode] = argument.rows
    return not len(entries.among(inside))


def _components(touched: Touched, entries: Entries) -> set[int]:
    """Components that an argument is about."""
    found: set[int] = set()
    for mode, of in enumerate(touched):
        rows = entries.with_index(mode, distinct(of))
        found.update(distinct(entries.labels[rows]).tolist())
    return found


def _check_upper(arguments: tuple[Argument, ...], kinds: list[Kind], entries: Entries) -> None:
    """Check that the tensors that the arguments contribute add up to T, entry by entry.

    For the effective rank they have to agree with T on the observed fibers alone.
    """
    total = np.zeros(len(entries), np.int64)
    for argument, kind in zip(arguments, kinds, strict=True):
        if kind.upper is None:
            raise Refuted(f"{kind.name} has no checker of upper bounds")
        given = kind.upper(argument, entries)
        entries.budget.spend(PASS * len(given.rows))
        # each row once, so that fancy indexing adds; a kind from outside might not know
        require((np.diff(given.rows) > 0).all(), "an argument has its entries out of order")
        total[given.rows] += given.values
    entries.budget.spend(PASS * len(entries))
    wrong = np.flatnonzero(total != entries.values)
    if len(wrong):
        place, got = entries.indices[wrong[0]].tolist(), total[wrong[0]]
        want = entries.values[wrong[0]]
        raise Refuted(f"the arguments add up to {got} at {tuple(place)}, which holds {want}")
