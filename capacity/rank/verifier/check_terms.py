"""The checkers of boxes and of decompositions: simple tensors that give each fact, and no more."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from capacity.rank.types import Indices
from capacity.rank.verifier.arguments import (
    Boxes,
    Decomposition,
    Term,
)
from capacity.rank.verifier.facts import SORT, Facts, require

# products of integers a fact that the library itself writes at most
PRODUCTS_A_FACT = 20
# steps for a product that is added up, for a pair of a subject and a predicate, for an index
PRODUCT, PAIR, INDEX = 190, 1_000, 500
# steps for a subject of some terms, and for a box that others than facts may lie in
SUBJECT, BOX = 6_000, 150_000
# bytes for a pair
PAIR_BYTES = 250


def facts_of_boxes(argument: Boxes, facts: Facts) -> Indices:
    """Check that each box holds its own facts, and no other triple that counts."""
    require(len(argument.box) == len(facts), "there must be a box, or -1, for each fact")
    facts.budget.spend(4 * SORT * len(facts))
    rows = np.flatnonzero(argument.box >= 0)
    number, box = np.unique(argument.box[rows], return_inverse=True)
    mine = facts.triples[rows]
    sides = np.ones(len(number), dtype=object)
    for mode in range(3):
        pairs = np.unique(np.stack([box.ravel(), mine[:, mode]], axis=1), axis=0)
        # Python integers: a product of three sides can pass 2^63
        sides *= np.bincount(pairs[:, 0], minlength=len(number)).astype(object)
    sizes = np.bincount(box.ravel(), minlength=len(number))
    more = np.flatnonzero(sides != sizes)
    if len(more):
        wrong = f"box {number[more[0]]} holds {sizes[more[0]]} of {sides[more[0]]} triples"
        require(facts.effective, wrong)
        _only_unobserved(facts, box.ravel(), mine, number, more)
    return rows


def _only_unobserved(
    facts: Facts, box: Indices, mine: Indices, number: Indices, boxes: Indices
) -> None:
    """What else is in these boxes lies in unobserved fibers.

    An observed pair of a subject and a predicate of a box must have all its objects, as facts.
    """
    facts.budget.spend(2 * PAIR * len(facts), PAIR_BYTES * len(facts))
    observed: defaultdict[int, set[int]] = defaultdict(set)
    for k, q in np.unique(facts.triples[:, :2], axis=0).tolist():
        observed[k].add(q)
    order = np.argsort(box, kind="stable")
    ends = np.searchsorted(box[order], np.arange(len(number) + 1))
    facts.budget.spend(BOX * len(boxes))
    for b in boxes.tolist():
        inside = mine[order[ends[b] : ends[b + 1]]]
        pairs, times = np.unique(inside[:, :2], axis=0, return_counts=True)
        complete: dict[tuple[int, int], int] = {
            (k, q): n for (k, q), n in zip(pairs.tolist(), times.tolist(), strict=True)
        }
        predicates, n_objects = set(pairs[:, 1].tolist()), len(np.unique(inside[:, 2]))
        for k in np.unique(pairs[:, 0]).tolist():
            facts.budget.spend(PAIR + INDEX * min(len(observed[k]), len(predicates)))
            for q in observed[k] & predicates:
                require(
                    complete.get((k, q)) == n_objects,
                    f"box {number[b]} gives what aren't facts at {k, q}",
                )


def products_of_fraction(bits: int) -> int:
    """Count the products of integers that take as long as one of fractions so long."""
    # a common divisor takes time in proportion to the square of the length
    return 15 + bits // 12 + (bits // 400) ** 2


def products_of_terms(terms: Iterable[Term]) -> int:
    """Count the products of coefficients that terms are, a fraction for several."""
    count = 0
    for term in terms:
        products = math.prod(len(indices) for indices, _ in term)
        numbers = [x for _, values in term for x in values]
        if all(x.denominator == 1 and abs(x.numerator) < 2**63 for x in numbers):
            count += products
        else:
            bits = sum(
                max((max(x.numerator.bit_length(), x.denominator.bit_length()) for x in values),
                    default=0)
                for _, values in term
            )  # fmt: skip
            count += products * products_of_fraction(bits)
    return count


def facts_of_terms(argument: Decomposition, facts: Facts) -> Indices:
    """Add the terms up; what they give must be 1 at some facts and 0 elsewhere.

    Subject by subject, and fiber by fiber: a term of a few bytes can have more entries than there
    is memory for.
    """
    require(len(argument.terms) > 0, "a decomposition must have terms")
    for term in argument.terms:
        facts.budget.spend(INDEX * (1 + sum(len(indices) for indices, _ in term)))
    facts.budget.spend(PRODUCT * products_of_terms(argument.terms))
    of_subject: defaultdict[int, list[tuple[int, int | Fraction]]] = defaultdict(list)
    pairs: defaultdict[int, int] = defaultdict(int)
    for number, term in enumerate(argument.terms):
        for (indices, values), n in zip(term, facts.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
            require(len(set(indices)) == len(indices), f"term {number} has an index twice")
            require(len(values) == len(indices), f"term {number} lacks a number, or an index")
        (subjects, values), (predicates, _), _ = term
        for k, x in zip(subjects, _plain(values), strict=True):
            of_subject[k].append((number, x))
            pairs[k] += len(predicates)
    facts.budget.spend(SUBJECT * len(pairs))
    facts.budget.spend(PAIR * sum(pairs.values()), PAIR_BYTES * max(pairs.values(), default=0))
    given: list[int] = []
    for k in sorted(of_subject):
        given += _given(k, of_subject[k], argument, facts)
    return np.array(sorted(given), np.int64)


def _given(
    k: int, members: list[tuple[int, int | Fraction]], argument: Decomposition, facts: Facts
) -> list[int]:
    """Rows of the facts of a subject that some terms, each times a coefficient, give."""
    fibers: defaultdict[int, list[tuple[int, int | Fraction]]] = defaultdict(list)
    for number, x in members:
        _, (predicates, values), _ = argument.terms[number]
        for q, y in zip(predicates, _plain(values), strict=True):
            fibers[q].append((number, x * y))
    rows = facts.of_subject(k)
    objects: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row, (_, q, v) in zip(rows, facts.triples[rows].tolist(), strict=True):
        objects[q][v] = row
    given: list[int] = []
    for q, parts in fibers.items():
        if facts.effective and q not in objects:
            continue
        for v, x in _sum(parts, argument, facts).items():
            if x == 0:
                continue
            # the number itself may have more digits than anyone wants to see
            require(x == 1, f"the terms give neither 0 nor 1 at {k, q, v}")
            require(v in objects[q], f"the terms give 1 at {k, q, v}, which is no fact")
            given.append(objects[q][v])
    return given


def _sum(
    parts: list[tuple[int, int | Fraction]], argument: Decomposition, facts: Facts
) -> dict[int, int | Fraction]:
    """Entries of a fiber, by object."""
    total: defaultdict[int, int | Fraction] = defaultdict(int)
    for number, xy in parts:
        _, _, (indices, values) = argument.terms[number]
        for v, z in zip(indices, _plain(values), strict=True):
            total[v] = value = total[v] + xy * z
            if type(value) is not int:
                # sums of fractions may have longer denominators than any term
                facts.budget.spend(PRODUCT * products_of_fraction(value.denominator.bit_length()))
    return total


def _plain(values: tuple[Fraction, ...]) -> list[int | Fraction]:
    """Integers as such: they are added ten times faster."""
    return [x.numerator if x.denominator == 1 else x for x in values]
