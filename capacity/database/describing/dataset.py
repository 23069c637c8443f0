"""`describe`: the parts of a database, and the rank that each carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from capacity.checks import require_choice
from capacity.database.describing import Sorting
from capacity.database.describing.advice import advice_on
from capacity.database.describing.measured import Measured
from capacity.database.describing.rows import PredicateRow, predicate_rows
from capacity.database.describing.void import as_turtle
from capacity.database.describing.writing import as_html, as_text
from capacity.database.given_facts import require_triples
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE, of_predicate
from capacity.exact.ranks import slices_rank
from capacity.tensor.structure import component_labels

if TYPE_CHECKING:
    import pandas as pd

    from capacity.database.facts import Database
    from capacity.database.given_facts import DatabaseLike


@dataclass(frozen=True, eq=False, repr=False)
class Description(Measured):
    """The facts of a database, predicate by predicate; `describe` makes one.

    Attributes
    ----------
    db : Database
        The database.
    slices : tuple of int
        Sums of the ranks of subject, predicate and object slices, three upper bounds of the rank.
    components : tuple of int
        Numbers of facts of the parts that share no token in the same role, largest first.
    predicates : tuple of PredicateRow
        A row for each predicate, those of the largest rank first.
    classes : tuple of (Term, int)
        Each object of ``rdf:type``, and how many subjects have it, those with most first.
    advice : tuple of Advice
        What parts of the facts carry, and the selection that omits each.
    """

    def __repr__(self) -> str:
        return (
            f"Description({self.db.n_facts} facts, {len(self.predicates)} predicates, "
            f"rank at most {self.bound}; {len(self.advice)} pieces of advice)"
        )

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, rows and advice, for JSON."""
        subjects, _, objects = self.db.shape
        return {
            "triples": self.db.n_facts,
            "subjects": subjects,
            "objects": objects,
            "tokens": self.db.n_tokens,
            "functional": self.db.is_functional,
            "multi_valued_pairs": self.db.n_multi_valued_pairs,
            **{f"{kind}_facts": n for kind, n in self.kinds.items()},
            "components": list(self.components),
            "bounds": dict(
                zip(("subject_slices", "predicate_slices", "object_slices"), self.slices,
                    strict=True)
            ),
            "bound": self.bound,
            "predicates": [row.to_dict() for row in self.predicates],
            "classes": [{"class": term.text, "subjects": n} for term, n in self.classes],
            "advice": [one.to_dict() for one in self.advice],
        }  # fmt: skip

    def sorted_by(self, column: Sorting) -> tuple[PredicateRow, ...]:
        """Return the rows by another column: numbers from the largest, names by letter.

        Parameters
        ----------
        column : {'rank', 'facts', 'subjects', 'objects', 'several', 'name'}
            The column; ``several`` is the number of subjects with several objects.

        Raises
        ------
        InvalidArgumentError
            For another column.
        """
        require_choice("`column`", column, get_args(Sorting))
        if column == "name":
            return tuple(sorted(self.predicates, key=lambda row: row.name))
        name = "multi_valued_pairs" if column == "several" else column
        return tuple(sorted(self.predicates, key=lambda row: -getattr(row, name)))

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with one row per predicate, in their order, and the columns of the JSON.

        What a predicate repeats is a sentence, and an example its names with `` | `` between them.
        """
        import pandas as pd

        rows = [
            {**row.to_dict(), "example": " | ".join(row.example), "repeats": row.in_words()}
            for row in self.predicates
        ]
        return pd.DataFrame(rows)

    def to_turtle(self) -> str:
        """Write the description as triples of VoID and DCAT, in Turtle.

        The terms for ranks are in the namespace ``urn:capacity:rank#``: see
        `capacity.database.describing.void`.
        """
        return as_turtle(self)


def describe(db: DatabaseLike) -> Description:
    """Describe a database: one row per predicate, the rank that each carries, and advice.

    The rank of a predicate is that of the matrix of its subjects and objects, which is exact and
    quick. Shares are of the sum of these ranks, one of three upper bounds of the rank of the whole;
    advice compares the smallest of the three before and after a selection. No search is made, so
    that databases of any size can be described.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts of arity 3, functional or not.

    Returns
    -------
    Description
        Numbers, rows and advice. It is printed as a page of text, and shown as a table in
        notebooks.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3, or a database without facts.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    >>> from capacity import Database
    >>> db = Database.from_triples([("Oslo", "in", "Norway"), ("Bergen", "in", "Norway"),
    ...                             ("Oslo", "zip", "0010"), ("Bergen", "zip", "5003")])
    >>> found = describe(db)
    >>> found
    Description(4 facts, 2 predicates, rank at most 3; 1 pieces of advice)
    >>> [(row.name, row.facts, row.rank) for row in found.predicates]
    [('zip', 2, 2), ('in', 2, 1)]
    >>> print(found.advice[0].text)
    values of zip, which no two subjects share, are 50 % of the facts and carry 67 % of the rank:
    `--exclude zip` leaves 2 facts of rank at most 1
    """
    db = require_triples(db, "describe(db)")
    sizes = np.sort(np.bincount(component_labels(db.tensor())))[::-1]
    rows = predicate_rows(db)
    slices = tuple(slices_rank(db.tensor(), (mode,)) for mode in range(3))
    return Description(
        db, slices, tuple(sizes.tolist()), rows, _classes(db), advice_on(db, rows, min(slices))
    )


def _classes(db: Database) -> tuple[tuple[Term, int], ...]:
    at, counts = np.unique(of_predicate(db, RDF_TYPE)[:, 2], return_counts=True)
    pairs = [(db.objects[v], n) for v, n in zip(at.tolist(), counts.tolist(), strict=True)]
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
