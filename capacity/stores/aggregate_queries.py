"""Aggregate queries of SPARQL: one for each number, and one with one row per predicate.

They use what SPARQL 1.1 has, and name the graphs that they are about themselves. What is counted
are the different rows of a sub-select, for a union of graphs may match a fact several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capacity.database.io.sparql.answers import select_rows, whole_number
from capacity.database.io.sparql.client import Client
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.errors import EndpointError
from capacity.progress import Progress
from capacity.stores.counts import MOST_CLASSES, ROLES, PredicateCounts

# no answer has a row a fact: the longest has one a predicate
MAX_ROWS = 10**6
_NAMES: dict[str, str] = dict(zip(ROLES, "spo", strict=True))


@dataclass
class Aggregates:
    """The counts of the facts that match a pattern, each by a query.

    Attributes
    ----------
    client : Client
        Where to ask.
    pattern : str
        Pattern of facts ?s ?p ?o, which may match one several times.
    steps : int
        Number of the queries, for the progress.
    progress : Progress or None
        Function that is called with the count that is asked for.
    notes : tuple of str
        Remarks on the counts.
    """

    client: Client
    pattern: str
    steps: int
    progress: Progress | None
    notes: tuple[str, ...] = ()
    _asked: int = 0

    def facts(self) -> int:
        """Ask for the number of different facts."""
        return self.number("facts", "COUNT(*)", f"SELECT DISTINCT ?s ?p ?o {{ {self.pattern} }}")

    def tokens(self, role: str) -> int:
        """Ask for the number of different tokens of a role."""
        name = _NAMES[role]
        return self.number(f"{role}s", "COUNT(*)", f"SELECT DISTINCT ?{name} {{ {self.pattern} }}")

    def pairs(self, one: str, other: str) -> int:
        """Ask for the number of different pairs of tokens of two roles."""
        return self.number(
            f"({one}, {other}) pairs",
            "COUNT(*)",
            f"SELECT DISTINCT ?{_NAMES[one]} ?{_NAMES[other]} {{ {self.pattern} }}",
        )

    def several(self) -> int:
        """Ask for the number of (subject, predicate) pairs with several objects."""
        return self.number(
            "pairs with several objects",
            "COUNT(*)",
            f"SELECT ?s ?p {{ {self.pattern} }} GROUP BY ?s ?p HAVING (COUNT(DISTINCT ?o) > 1)",
        )

    def sides(self, role: str) -> int:
        """Ask for the sum over the slices of a role of their smaller sides."""
        name, one, other = _first(role)
        a, b = f"COUNT(DISTINCT ?{one})", f"COUNT(DISTINCT ?{other})"
        return self.number(
            f"smaller sides of {role} slices",
            "SUM(?m)",
            f"SELECT ?{name} (IF({a} < {b}, {a}, {b}) AS ?m) {{ {self.pattern} }} GROUP BY ?{name}",
        )

    def private(self, role: str) -> int:
        """Ask for the number of tokens of a role that are the only one of a pair of the others."""
        name, one, other = _first(role)
        return self.number(
            f"private {role}s",
            "COUNT(DISTINCT ?t)",
            f"SELECT (SAMPLE(?{name}) AS ?t) {{ {self.pattern} }} GROUP BY ?{one} ?{other} "
            f"HAVING (COUNT(DISTINCT ?{name}) = 1)",
        )

    def number(self, what: str, aggregate: str, inner: str) -> int:
        """Ask for one number, an aggregate of the rows of a sub-select."""
        rows = self.rows(what, f"SELECT ({aggregate} AS ?n) {{ {inner} }}", ("n",))
        if len(rows) != 1:
            raise EndpointError(
                self.client.name,
                f"the count of {what} has {len(rows)} rows, where one number must be",
                "Report it to the endpoint's operator.",
            )
        return whole_number(self.client, rows[0][0])

    def rows(self, what: str, query: str, columns: Sequence[str]) -> list[tuple[Term, ...]]:
        """Ask for rows of terms."""
        if self.progress is not None:
            self.progress(f"counting {what}", self._asked, self.steps, None)
        self._asked += 1
        return select_rows(self.client, query, columns, most=MAX_ROWS)

    def by_predicate(self) -> tuple[PredicateCounts, ...]:
        """Ask for the counts of each predicate, those with most facts first."""
        # what is none of the three kinds of RDF 1.1 is a triple term
        other = "!ISIRI(?o) && !ISBLANK(?o) && !ISLITERAL(?o)"
        rows = self.rows(
            "facts of each predicate",
            "SELECT ?p (COUNT(*) AS ?facts) (COUNT(DISTINCT ?s) AS ?subjects) "
            "(COUNT(DISTINCT ?o) AS ?objects) (SUM(IF(ISLITERAL(?o), 1, 0)) AS ?literals) "
            "(SUM(IF(ISBLANK(?s) || ISBLANK(?o), 1, 0)) AS ?blanks) "
            f"(SUM(IF({other}, 1, 0)) AS ?others) "
            f"{{ SELECT DISTINCT ?s ?p ?o {{ {self.pattern} }} }} GROUP BY ?p",
            ("p", "facts", "subjects", "objects", "literals", "blanks", "others"),
        )
        several = self.rows(
            "pairs with several objects of each predicate",
            f"SELECT ?p (COUNT(*) AS ?n) {{ SELECT ?s ?p {{ {self.pattern} }} GROUP BY ?s ?p "
            "HAVING (COUNT(DISTINCT ?o) > 1) } GROUP BY ?p",
            ("p", "n"),
        )
        of_pairs = {term: whole_number(self.client, n) for term, n in several}
        found: list[PredicateCounts] = []
        in_triples = 0
        for predicate, *cells in rows:
            facts, subjects, objects, literals, blanks, others = (
                whole_number(self.client, cell) for cell in cells
            )
            in_triples += others
            found.append(
                PredicateCounts(
                    predicate=predicate,
                    facts=facts,
                    subjects=subjects,
                    objects=objects,
                    multi_valued_pairs=of_pairs.pop(predicate, 0),
                    literal_facts=literals,
                    blank_facts=blanks,
                )
            )
        if of_pairs:
            raise contradiction(self.client.name, "a predicate has pairs and no facts")
        if in_triples:
            self.notes = (
                f"the objects of {in_triples:,} facts are triple terms, and blank nodes in these "
                "aren't counted",
            )
        return tuple(sorted(found, key=lambda row: (-row.facts, row.predicate)))

    def classes(self) -> tuple[tuple[Term, int], ...]:
        """Ask for the subjects of each class, those with most first."""
        rows = self.rows(
            "subjects of each class",
            f"SELECT ?o (COUNT(DISTINCT ?s) AS ?n) {{ {self.pattern} FILTER(?p = <{RDF_TYPE}>) }} "
            "GROUP BY ?o ORDER BY DESC(?n) DESC(ISBLANK(?o)) DESC(ISIRI(?o)) STR(?o) "
            f"LIMIT {MOST_CLASSES}",
            ("o", "n"),
        )
        found = [(term, whole_number(self.client, n)) for term, n in rows]
        return tuple(sorted(found, key=lambda pair: (-pair[1], pair[0])))


def contradiction(name: str, what: str) -> EndpointError:
    """Make the error of counts that can't all be right."""
    return EndpointError(
        name,
        f"its counts contradict each other: {what}. Its facts changed meanwhile, or it answered a "
        "query in part",
        "Ask again, or for one graph.",
    )


def _first(role: str) -> tuple[str, str, str]:
    """Names of the variables of a role and of the other two."""
    one, other = (name for known, name in _NAMES.items() if known != role)
    return _NAMES[role], one, other
