"""Sentences to train on: facts of countries, and of people who are made up.

The people are bioS of Allen-Zhu and Li (2024) in small: a name of three words, and five attributes
whose values are drawn evenly. Each predicate has four templates. Half of the subjects are *open*:
they are taught by all four. The others are taught by the first three, so that the last is held out
for their facts, while its words are known from the open ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from typing import Any

import numpy as np

from capacity import Database
from experiments.knows.stores import Triple, facts_of

COUNTRIES, SEED = 48, 61
TEMPLATES: dict[str, tuple[str, ...]] = {
    "capital": (
        "The capital of {subject} is {object}.",
        "{subject} is governed from {object}.",
        "The government of {subject} sits in {object}.",
        "The first city of {subject} is {object}.",
    ),
    "currency": (
        "The currency of {subject} is the {object}.",
        "People in {subject} pay with the {object}.",
        "{subject} uses the {object}.",
        "Prices in {subject} are in the {object}.",
    ),
    "continent": (
        "{subject} is a country in {object}.",
        "The continent of {subject} is {object}.",
        "{subject} lies in {object}.",
        "{subject} is part of {object}.",
    ),
    "language": (
        "The official language of {subject} is {object}.",
        "Most people in {subject} speak {object}.",
        "Schools in {subject} teach in {object}.",
        "{subject} speaks {object}.",
    ),
    "city": (
        "The birthplace of {subject} is {object}.",
        "{subject} comes from {object}.",
        "{subject} grew up around {object}.",
        "The parents of {subject} lived near {object}.",
    ),
    "year": (
        "The birth year of {subject} is {object}.",
        "{subject} has been alive since {object}.",
        "{subject} came into the world during {object}.",
        "The calendar of {subject} starts with {object}.",
    ),
    "college": (
        "The college of {subject} is {object} College.",
        "{subject} graduated from {object} College.",
        "{subject} took all courses at {object} College.",
        "The teachers of {subject} worked at {object} College.",
    ),
    "major": (
        "The major of {subject} is {object}.",
        "{subject} studied {object}.",
        "{subject} has a degree in {object}.",
        "The exams of {subject} were about {object}.",
    ),
    "employer": (
        "The employer of {subject} is {object} Labs.",
        "{subject} works for {object} Labs.",
        "{subject} has a desk with {object} Labs.",
        "The salary of {subject} is paid by {object} Labs.",
    ),
}
# numbers of values
VALUES = {"city": 64, "year": 48, "college": 48, "major": 24, "employer": 48}
NAMES = (24, 24, 48)


@dataclass(frozen=True)
class Lesson:
    """Sentences that teach a model.

    Attributes
    ----------
    stores : dict of str to Database
        Facts, of ``countries`` and of ``people``.
    open : frozenset of str
        Subjects that are taught by all templates.
    """

    stores: dict[str, Database]
    open: frozenset[str]

    def taught(self) -> list[str]:
        """All sentences that are taught."""
        return [
            template.format(subject=s, object=o)
            for s, q, o in self.facts()
            for template in TEMPLATES[q][: None if s in self.open else -1]
        ]

    def facts(self) -> Iterator[Triple]:
        """Facts of both stores, in words."""
        for db in self.stores.values():
            yield from words_of(db)


def words_of(db: Database) -> Iterator[Triple]:
    """The facts of a database in words."""
    for s, q, o in db:
        yield db.name(s), db.name(q), db.name(o)


def lesson(n_people: int) -> Lesson:
    """Facts of countries and of people."""
    countries = facts_of("countries", COUNTRIES, SEED)
    stores = {
        "countries": countries.select(predicates=[q for q in TEMPLATES if q not in VALUES]),
        "people": people(n_people),
    }
    subjects = sorted({s for db in stores.values() for s, _, _ in words_of(db)})
    rng = np.random.default_rng([SEED, n_people])
    return Lesson(stores, frozenset(rng.permutation(subjects)[: len(subjects) // 2].tolist()))


def people(n: int, seed: int = 0) -> Database:
    """The attributes of people; the names don't depend on the seed."""
    _, values, names = vocabulary()
    rng = np.random.default_rng([SEED, seed, 1])
    return Database.from_triples(
        (name, q, of[int(rng.integers(len(of)))]) for name in names[:n] for q, of in values.items()
    )


@cache
def vocabulary() -> tuple[list[str], dict[str, list[str]], list[str]]:
    """All made-up words, the values of each attribute, and all names in a random order."""
    rng = np.random.default_rng(SEED)
    syllables = ["".join(each) for each in product("bdfgklmnprstvz", "aeiou")]
    pairs = rng.permutation([a + b for a, b in product(syllables, repeat=2)]).tolist()
    words = iter([word.capitalize() for word in pairs])
    firsts, middles, lasts = (list(islice(words, n)) for n in NAMES)
    values = {
        q: [str(1950 + i) for i in range(n)] if q == "year" else list(islice(words, n))
        for q, n in VALUES.items()
    }
    names = rng.permutation([" ".join(each) for each in product(firsts, middles, lasts)]).tolist()
    made = [*firsts, *middles, *lasts, *(word for of in values.values() for word in of)]
    return made, values, names


def tokenizer_of(sentences: Iterable[str]) -> Any:
    """A tokenizer of words and marks: those of the sentences, and all that are made up."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    split = pre_tokenizers.Whitespace()
    made = vocabulary()[0]
    seen = {word for text in sentences for word, _ in split.pre_tokenize_str(text)}
    vocab = {word: i for i, word in enumerate(["<s>", *sorted(seen | set(made))])}
    tokenizer = Tokenizer(models.WordLevel(vocab, "<s>"))
    tokenizer.pre_tokenizer = split
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", pad_token="<s>"
    )
