"""Searches for bounds of dimensions: intervals of ranks, and signs, beside the counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from capacity.display import briefly_shown
from capacity.embedding.graph_counts import Counts
from capacity.embedding.proofs import SignProof
from capacity.embedding.signs import (
    SignMatrix,
    of_comparisons,
    of_objects,
    of_queries,
    shattered,
    small_norm,
)
from capacity.rank import Certificate, Effort, RankInterval, effective_rank_interval, rank_interval


@briefly_shown
@dataclass(frozen=True, eq=False)
class Quantities(Counts):
    """Numbers of a graph from which bounds of dimensions follow, by a search.

    Attributes
    ----------
    db : Database
        The facts.
    graph : QueryGraph
        The same, as queries and answers.
    effort : str
        Work for intervals of ranks, as for `rank_interval`.
    seed : int
        Seed of all searches.
    cited : bool
        Whether intervals of ranks may rest on published theorems.
    """

    effort: Effort
    seed: int
    cited: bool = True

    @cached_property
    def rank(self) -> RankInterval:
        """The certified interval of the rank."""
        found = rank_interval(self.db, effort=self.effort, seed=self.seed, cited=self.cited)
        return found.uninterrupted()

    @cached_property
    def effective_rank(self) -> RankInterval:
        """The certified interval of the effective rank, whose scores rank every query."""
        found = effective_rank_interval(
            self.db, effort=self.effort, seed=self.seed, cited=self.cited
        )
        return found.uninterrupted()

    @property
    def rank_lower(self) -> int:
        """The lower end of the rank."""
        return self.rank.lower

    @property
    def rank_upper(self) -> int:
        """The upper end of the rank."""
        return self.rank.upper

    @property
    def effective_upper(self) -> int:
        """The upper end of the effective rank."""
        return self.effective_rank.upper

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Certificates of the ends of ranks that were asked for by now."""
        asked = self.__dict__
        rank = tuple(self.rank.certificates) if "rank" in asked else ()
        return (
            (*rank, self.effective_rank.certificates.upper) if "effective_rank" in asked else rank
        )

    @property
    def signs_of_objects(self) -> list[SignProof]:
        """Signs that <h, e_o> must have, or less a threshold for each row: of two matrices."""
        return self._signs_of_objects

    @property
    def signs_of_subjects(self) -> list[SignProof]:
        """Signs of subjects at comparisons of two objects."""
        return self._signs_of_subjects

    @cached_property
    def _signs_of_objects(self) -> list[SignProof]:
        return [*self._proofs(of_objects(self.graph)), *self._proofs(of_queries(self.graph))]

    @cached_property
    def _signs_of_subjects(self) -> list[SignProof]:
        return [*self._proofs(of_comparisons(self.graph))]

    def _proofs(self, matrix: SignMatrix) -> Iterator[SignProof]:
        yield shattered(matrix, self.seed)
        small = small_norm(matrix, self.seed)
        if small is not None:
            yield small
