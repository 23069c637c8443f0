"""A check of a `Dimension` by the facts alone, within the budget of certificates of ranks.

Witnesses, signs and the facts that stop symmetric scores are checked by definition, by code apart
from the search; ranks by their certificates. What has no certificate is a count, which is made
again. Words and notes are for people, and aren't checked; nor are the effort and the seed, which
nothing here depends on.
"""

from __future__ import annotations

from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.embedding.queries import QueryGraph
from capacity.embedding.results.result import Dimension
from capacity.embedding.verifier.conversion import checked_claim, require_claim
from capacity.embedding.verifier.necessary import (
    Ends,
    Known,
    check_counts,
    check_estimate,
    check_obstruction,
    proved_by_signs,
)
from capacity.embedding.verifier.numbered_facts import FACT, FACT_BYTES, Facts
from capacity.embedding.verifier.scores import check_witness
from capacity.errors import CertificateError, InvalidTypeError
from capacity.rank import Certificate, Verdict, verify
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Refuted, require

# steps for a claim of any size
CLAIM = 200_000


def verify_dimension(
    found: Dimension,
    db: DatabaseLike,
    *,
    budget: CheckBudget | None = None,
    cited: bool = True,
) -> Verdict:
    """Check every bound of a dimension, in integers; words and notes aren't checked.

    Parameters
    ----------
    found : Dimension
        The bounds, with their witness, signs, facts that stop symmetric scores, and ranks.
    db : Database, or what `as_database` takes
        The facts that it is about, under the same policy.
    budget : CheckBudget, optional
        Work that the check may take; if omitted, a new budget.
    cited : bool
        Whether the bounds of ranks may rest on published theorems, as for `capacity.verify`.

    Returns
    -------
    Verdict
        Either `proved`, or with the `reason` why not. `cited` has the theorems that ranks rest on.

    Raises
    ------
    CertificateError
        If it, or a certificate of a rank in it, is about other facts.
    InvalidTypeError
        If an argument is of another type.
    InvalidArgumentError
        If the facts aren't triples.
    MemoryBudgetError
        If the check takes more memory or time than the budget has left.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.embedding import dimension
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "C"), ("C", "knows", "A")])
    >>> verify_dimension(dimension(db, "DistMult", witness=False), db)
    Verdict(proved=True, reason=None)
    """
    return Checks(db, budget, cited=cited).verdict(found)


class Checks:
    """Checks of claims about one database, which share a budget and what is computed for them.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        The facts that the claims are about.
    budget : CheckBudget, optional
        Budget of all of them; if omitted, a new one.
    cited : bool
        Whether the ranks that a claim rests on may rest on published theorems, as for
        `capacity.verify`.
    """

    def __init__(
        self, db: DatabaseLike, budget: CheckBudget | None = None, *, cited: bool = True
    ) -> None:
        db = require_triples(db, "verify_dimension(found, db)")
        self.db = db
        self.budget = CheckBudget.of(db.n_facts) if budget is None else budget
        self._facts: dict[bool, Facts] = {}
        self._known: dict[bool, Known] = {}
        self._ends = Ends()
        self._cited = cited
        # with the certificate, so that its number stays its own
        self._ranks: dict[int, tuple[Certificate, Verdict]] = {}

    def verdict(self, found: Dimension) -> Verdict:
        """Check a claim, as `verify_dimension` does."""
        if not isinstance(found, Dimension):
            raise InvalidTypeError(f"`found` must be a Dimension; got {type(found).__name__}.")
        db = self.db
        try:
            require_claim(found)
            if (found.facts_sha256, found.multi) != (db.facts_sha256, db.multi):
                raise CertificateError(
                    f"The dimension must be of these facts, {db.facts_sha256[:12]}; it is of "
                    f"{found.facts_sha256[:12]}. Load the file that it was made from, with the "
                    "same policy."
                )
            self.budget.spend(CLAIM, 0)
            sources = self._check(found)
        except Refuted as refuted:
            return Verdict(False, str(refuted))
        return Verdict(True, cited=sources)

    def verdict_of_rank(self, one: Certificate) -> Verdict:
        """Check a certificate of a rank, once, as `capacity.verify` does."""
        if id(one) not in self._ranks:
            verdict = verify(one, self.db, budget=self.budget, cited=self._cited)
            self._ranks[id(one)] = one, verdict
            if verdict.proved:
                self._ends.add(one)
        return self._ranks[id(one)][1]

    def _check(self, found: Dimension) -> tuple[str, ...]:
        """End the check if it fails; return who published the theorems that ranks rest on."""
        sources: dict[str, None] = {}
        named, placed = self._facts_of(shared=False), self._facts_of(shared=found.shared)
        claim = checked_claim(found, named, placed, self.budget)
        for one in claim.ranks:
            proved = self.verdict_of_rank(one)
            if not proved:
                what = f"the {one.side} bound {one.value} of the {one.quantity.replace('_', ' ')}"
                raise Refuted(f"{what} isn't proved: {proved.reason}")
            sources |= dict.fromkeys(proved.cited)
        for reason in claim.reasons:
            proof = reason.certificate
            if isinstance(proof, tuple):
                for one in proof:
                    check_obstruction(one, claim.task, placed, self.budget)
            elif proof is not None:
                most = proved_by_signs(proof, claim.model, claim.task, named, self.budget)
                require(reason.value <= most, f"the signs prove {most}, and not {reason.value}")
        if claim.witness is not None:
            check_witness(claim.witness, placed, claim.task, self.budget)
        if claim.estimate is not None or any(one.certificate is None for one in claim.reasons):
            known = self._known_of(shared=found.shared)
            check_counts(claim, known)
            check_estimate(claim.estimate, known)
        return tuple(sources)

    def _facts_of(self, *, shared: bool) -> Facts:
        if shared not in self._facts:
            n = self.db.n_facts
            self.budget.spend(FACT * n, FACT_BYTES * n)
            self._facts[shared] = Facts.of(self.db, shared=shared)
        return self._facts[shared]

    def _known_of(self, *, shared: bool) -> Known:
        if shared not in self._known:
            n = self.db.n_facts
            self.budget.spend(FACT * n // 2, FACT_BYTES * n)
            graph = QueryGraph.of(self.db, shared)
            self._known[shared] = Known(self.db, graph, self._ends, self.budget)
        return self._known[shared]
