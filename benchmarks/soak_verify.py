"""Whether `verify` proves anything false, in thousands of random trials.

    make soak-verify   (10,000 trials, twenty minutes on two cores; goes on where it was stopped)

A trial draws a database, mostly one whose rank or effective rank is a theorem, and certificates of
all kinds and combinations. Valid ones must be proved. Others come

* mutated, by a few edits;
* borrowed: valid ones of a database with a fact more or less, under this one's name;
* relabelled: for the rank as for the effective rank, and the other way round;
* paired: an unfolding or a strong argument, and an argument of another certificate;
* stacked: arguments of several lower bounds, until they exceed what is known;
* short: upper bounds without some terms, boxes, fibers or arguments, until they fall below it.

Whatever is proved must agree with the theorem, and a second, slower checker must prove it, too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from record import run_all, write

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.database import Database
from capacity.errors import CapacityError
from capacity.rank import (
    AlderStrassen,
    Argument,
    Boxes,
    Cases,
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    Pencil,
    RankOneCompletion,
    RankOneLocus,
    Unfolding,
)
from capacity.rank.verifier.checker import verify
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from capacity.testing.drawn import hard_database
from capacity.testing.known_databases import known_effective_rank, known_rank
from tests.second_checker import second_checker

STRONG = (
    Koszul | Diagonalization | Pencil | AlderStrassen | RankOneLocus | RankOneCompletion | Cases
)
# claims of each way in a trial
CLAIMS = {"valid": 6, "mutated": 8, "borrowed": 8, "relabelled": 2, "paired": 4, "stacked": 4,
          "short": 4}  # fmt: skip


@dataclass(frozen=True)
class Known:
    """What a bound of each quantity and side may be at most, or at least."""

    most: dict[str, float]
    least: dict[str, float]

    @classmethod
    def of(cls, rank: int | None, effective: int | None) -> Known:
        """The effective rank is the rank at most."""
        top = np.inf if rank is None else rank
        low = 0 if effective is None else effective
        return cls(
            {"rank": top, "effective_rank": top if effective is None else effective},
            {"rank": low if rank is None else rank, "effective_rank": low},
        )

    def is_beyond(self, claim: Certificate) -> bool:
        """Return whether a claim contradicts what is known."""
        if claim.side == "lower":
            return claim.value > self.most[claim.quantity]
        return claim.value < self.least[claim.quantity]

    def is_tight(self, claim: Certificate) -> bool:
        """Whether a claim says all that is known."""
        return claim.value == (self.most if claim.side == "lower" else self.least)[claim.quantity]


def drawn_database(choose: Choices, seed: int) -> tuple[Database, Known]:
    """A database and what is known of it: two in seven times nothing."""
    if seed % 7 < 3:
        a = known_rank(choose)
        return a.database, Known.of(a.rank, a.effective_rank)
    if seed % 7 < 5:
        b = known_effective_rank(choose)
        return b.database, Known.of(b.rank, b.effective_rank)
    return hard_database(choose), Known.of(None, None)


def beside(choose: Choices, db: Database) -> Database:
    """The same tokens with a few facts more or less."""
    facts = {tuple(row) for row in db.triples.tolist()}
    for _ in range(choose.integer(1, 3)):
        place = tuple(choose.integer(0, n - 1) for n in db.shape)
        if choose.chance(1, 2):
            place = choose.one(sorted(facts))
        left = facts ^ {place}
        if all(len({row[mode] for row in left}) == n for mode, n in enumerate(db.shape)):
            facts = left
    names = (db.subjects, db.predicates, db.objects)
    rows = [[of[i] for of, i in zip(names, row, strict=True)] for row in sorted(facts)]
    return Database.from_triples(rows, multi="keep")


def borrowed(choose: Choices, db: Database) -> Certificate:
    """A valid certificate of other facts."""
    other = drawn_certificate(choose, beside(choose, db))
    return replace(other, facts_sha256=db.facts_sha256)


def paired(choose: Choices, pool: list[Certificate]) -> Certificate | None:
    """Two arguments that may be about the same facts."""
    of = choose.one(pool)
    arguments = [a for one in pool if one.quantity == of.quantity for a in one.arguments]
    first = [a for a in arguments if isinstance(a, Unfolding | STRONG)]
    if not first:
        return None
    return _claim(of, (choose.one(first), choose.one(arguments)))


def stacked(choose: Choices, pool: list[Certificate], known: Known) -> Certificate:
    """A lower bound of arguments of several others, until it exceeds what is known."""
    first = choose.one(pool)
    arguments = choose.order([a for one in pool for a in one.arguments])
    if choose.chance(1, 2):
        # of two of these verify refuses at once
        strong = [a for a in arguments if isinstance(a, STRONG)]
        arguments = [a for a in arguments if a not in strong[1:]]
    most = choose.integer(2, 6)
    some: list[Argument] = []
    while arguments and len(some) < most:
        some.append(arguments.pop())
        if sum(a.value for a in some) > known.most[first.quantity]:
            break
    return _claim(first, tuple(some))


def short(choose: Choices, valid: Certificate, known: Known) -> Certificate:
    """An upper bound that gives less and less, until it falls below what is known."""
    arguments = list(valid.arguments)
    while arguments and sum(a.value for a in arguments) >= known.least[valid.quantity]:
        n = choose.integer(0, len(arguments) - 1)
        one = arguments[n]
        if isinstance(one, Boxes) and one.value > 1:
            a, b = choose.order(np.unique(one.box[one.box >= 0]).tolist())[:2]
            arguments[n] = Boxes(np.where(one.box == a, b, one.box))
        elif isinstance(one, Decomposition) and one.value > 1:
            arguments[n] = Decomposition(tuple(choose.order(one.terms)[1:]))
        elif isinstance(one, Enclosure) and len(one.fibers):
            arguments[n] = replace(one, fibers=one.fibers[1:])
        else:
            del arguments[n]
    return _claim(valid, tuple(arguments))


def _claim(like: Certificate, arguments: tuple[Argument, ...]) -> Certificate:
    return replace(like, arguments=arguments, value=sum(a.value for a in arguments))


def read(data: dict[str, Any]) -> Certificate | None:
    """A certificate from JSON text, if that has the form of one."""
    try:
        return Certificate.from_dict(json.loads(json.dumps(data)))
    except CapacityError:
        return None


def trial(seed: int) -> dict[str, Any]:
    """Counts of what was claimed and proved, and each claim on which something disagrees."""
    choose = Choices.seeded(seed)
    db, known = drawn_database(choose, seed)
    valid = [drawn_certificate(choose, db) for _ in range(CLAIMS["valid"])]
    lower = [drawn_certificate(choose, db, side="lower") for _ in range(CLAIMS["valid"])]
    upper = [drawn_certificate(choose, db, side="upper") for _ in range(CLAIMS["valid"])]

    def claim_of(way: str, number: int) -> Certificate | None:
        match way:
            case "valid":
                return valid[number]
            case "mutated":
                return read(mutated(choose, choose.one(valid), others=lower + upper))
            case "borrowed":
                return borrowed(choose, db)
            case "relabelled":
                one = choose.one(lower + upper)
                effective = one.quantity == "rank"
                return replace(one, quantity="effective_rank" if effective else "rank")
            case "paired":
                return paired(choose, lower)
            case "stacked":
                return stacked(choose, lower, known)
            case _:
                return short(choose, choose.one(upper), known)

    counts: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    for way, number in [(way, n) for way, times in CLAIMS.items() for n in range(times)]:
        claim = claim_of(way, number)
        counts[f"{way} drawn"] += 1
        if claim is None:
            counts[f"{way} without a claim"] += 1
            continue
        beyond = known.is_beyond(claim)
        counts[f"{way} beyond what is known"] += beyond
        proved = _is_proved(claim, db)
        counts[f"{way} proved"] += proved
        agrees = not proved or second_checker(claim, db)
        if proved:
            counts[f"{way} tight"] += known.is_tight(claim)
            names = {argument.kind for argument in claim.arguments}
            counts.update(f"{claim.quantity} {claim.side} {name}" for name in names)
        if (proved and beyond) or not agrees or (way == "valid" and not proved):
            wrong.append({"way": way, "false": proved and beyond, "disagree": not agrees,
                          "certificate": claim.to_dict()})  # fmt: skip
    return {"seed": seed, "counts": dict(counts), "wrong": wrong}


def _is_proved(claim: Certificate, db: Database) -> bool:
    try:
        return verify(claim, db).proved
    except CapacityError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/soak_verify.jsonl"))
    options = parser.parse_args()
    rows = run_all(trial, list(range(options.trials)), kept=options.out, workers=options.workers)
    write(
        "soak_verify",
        what="random certificates against ranks known by theorem and a second checker: what is "
        "proved, and how much of it is false",
        peer="none: any false proof, and any disagreement, is an error",
        rows=[summary(rows), *(row for row in rows if row["wrong"])],
        packages=["numpy", "scipy", "python-flint", "hypothesis"],
    )


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over all trials: by the way a claim came, and of what is proved by kind."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row["counts"])
    wrong = [one for row in rows for one in row["wrong"]]
    return {
        "trials": len(rows),
        "false_proofs": sum(one["false"] for one in wrong),
        "disagreements_with_the_second_checker": sum(one["disagree"] for one in wrong),
        "valid_not_proved": total["valid drawn"] - total["valid proved"],
        "claims": {
            way: {key[len(way) + 1 :]: n for key, n in total.items() if key.startswith(f"{way} ")}
            for way in CLAIMS
        },
        "proved_by_kind": {k: n for k, n in sorted(total.items()) if k.split()[0] not in CLAIMS},
    }


if __name__ == "__main__":
    main()
