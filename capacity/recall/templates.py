"""Templates: sentences with a place for the subject and one for the object.

A file of templates is TOML with one line per predicate, whose key is an IRI, a prefixed name or a
label, and whose value is one template or a list of them::

    "dbo:capital" = ["The capital of {subject} is {object}.", "{object} is {subject}'s capital."]
    currency = "In {subject} people pay in {object}."
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from capacity.checks import cut, shown
from capacity.database.choosing.lookup import position
from capacity.database.facts import Database
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import annotation_predicates, schema_predicates
from capacity.errors import FormatError, InvalidArgumentError, InvalidTypeError
from capacity.safe_files import read_file

# a path of a TOML file, or what one contains
TemplatesLike: TypeAlias = (
    str | os.PathLike[str] | Mapping[str, str | Sequence[str]] | Mapping[Term, str | Sequence[str]]
)
MAX_BYTES = 2**24
_PLACE = re.compile(r"\{([^{}]*)\}")
_ADVICE = "Write a sentence such as 'The capital of {subject} is {object}.'"


@dataclass(frozen=True)
class Template:
    """A sentence with ``{subject}``, once or more, and ``{object}``, once.

    Parameters
    ----------
    text : str
        The sentence.

    Raises
    ------
    InvalidArgumentError
        If a place is missing, if there are several for the object, or if other names are in braces.

    Examples
    --------
    >>> Template("The capital of {subject} is {object}.").around("Japan")
    ('The capital of Japan is ', '.')
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidTypeError(f"A template must be a text; got {shown(self.text)}. {_ADVICE}")
        names = _PLACE.findall(self.text)
        wrong = [name for name in names if name not in ("subject", "object")]
        if wrong:
            raise InvalidArgumentError(
                f"A template must name {{subject}} and {{object}} alone in braces; "
                f"{shown(self.text)} names {{{wrong[0]:.60}}}. {_ADVICE}"
            )
        if names.count("object") != 1 or "subject" not in names:
            raise InvalidArgumentError(
                "A template must contain {subject}, and {object} once; "
                f"{shown(self.text)} contains them {names.count('subject')} and "
                f"{names.count('object')} times. {_ADVICE}"
            )

    def around(self, subject: str) -> tuple[str, str]:
        """Return the text before the object and the text after it, with the subject in its place.

        Parameters
        ----------
        subject : str
            Name of the subject.
        """
        before, after = self.text.split("{object}")
        return before.replace("{subject}", subject), after.replace("{subject}", subject)


def read_templates(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Read a TOML file of templates.

    Parameters
    ----------
    path : path
        The file: one line per predicate, as in the module's docstring.

    Returns
    -------
    dict of str to tuple of str
        The templates of each predicate, by its name in the file.

    Raises
    ------
    FormatError
        If it isn't TOML in UTF-8, or a value is neither a text nor a list of texts.
    StorageError
        If it can't be read, or is larger than 16 MiB.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "templates.toml")
    ...     _ = path.write_text('capital = "The capital of {subject} is {object}."')
    ...     read_templates(path)
    {'capital': ('The capital of {subject} is {object}.',)}
    """
    where = os.fspath(path)
    try:
        lines = tomllib.loads(read_file(path, max_bytes=MAX_BYTES).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FormatError(
            where,
            f"it is no file of templates in TOML: {cut(str(error))}",
            advice='Write one line per predicate, names with a colon in quotes: "ex:capital" = '
            '"The capital of {subject} is {object}."',
        ) from None
    for name, value in lines.items():
        if isinstance(value, dict):
            raise FormatError(
                where,
                f"{name:.60} is a table, and must be a template or a list of them",
                advice="A name with a dot must be in quotes.",
            )
    return {name: _several(name, value) for name, value in lines.items()}


def templates_for(
    db: Database,
    given: TemplatesLike | None,
    names_of: Callable[[Iterable[Term]], Mapping[Term, str]],
) -> tuple[dict[Term, tuple[Template, ...]], list[str]]:
    """Find the templates of predicates, and what to report about them.

    Parameters
    ----------
    db : Database
        The facts.
    given : TemplatesLike, optional
        Templates by the names of predicates, or a file of them. By default each predicate that is
        neither schema nor an annotation has one that is made from its name.
    names_of : callable
        Function that returns the names of predicates, from which their templates are made.

    Returns
    -------
    dict of Term to tuple of Template
        Templates of the predicates that are asked for, in the order of the database.
    list of str
        Notes: which templates were made, and which predicates have none.

    Raises
    ------
    InvalidArgumentError
        If a template lacks a place, or two names are those of one predicate, or there is none.
    UnknownTokenError
        If no predicate has a name, or several do.
    """
    if given is None:
        return _defaults(db, names_of)
    if isinstance(given, str | os.PathLike):
        given = read_templates(given)
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            "`templates` must be the path of a TOML file, or a mapping of predicates to templates; "
            f"got {shown(given)}."
        )
    by_predicate: dict[Term, tuple[Template, ...]] = {}
    for name, value in given.items():
        at = position(name, db.predicates, db.prefixes, lambda: db.labels, "predicate")
        predicate = db.predicates[at]
        if predicate in by_predicate:
            raise InvalidArgumentError(
                f"Each predicate must have one line of templates; {db.name(predicate):.60} has "
                f"two, the second as {shown(str(name))}. Write a list of templates."
            )
        by_predicate[predicate] = tuple(map(Template, _several(str(name), value)))
    if not by_predicate:
        raise InvalidArgumentError(
            "`templates` must have a line for a predicate; it is empty. Without `templates` each "
            "predicate is asked for by its name."
        )
    others = [db.name(one) for one in db.predicates if one not in by_predicate]
    named = f"{', '.join(others[:5])}{' and others' if len(others) > 5 else ''}"
    notes = [f"Predicates without a template, which weren't asked for: {named}."] if others else []
    return {one: by_predicate[one] for one in db.predicates if one in by_predicate}, notes


def _defaults(
    db: Database, names_of: Callable[[Iterable[Term]], Mapping[Term, str]]
) -> tuple[dict[Term, tuple[Template, ...]], list[str]]:
    unasked = schema_predicates(db) | annotation_predicates(db)
    names = names_of(
        predicate
        for predicate, left in zip(db.predicates, unasked.tolist(), strict=True)
        if not left
    )
    if not names:
        raise InvalidArgumentError(
            "The facts must have a predicate that is neither schema nor an annotation, unless "
            "`templates` names one; they have none. Pass `templates`."
        )
    # correct for nouns and for verbs
    by_predicate = {
        predicate: (Template(f"{{subject}}, {_without_braces(words_of(name))}: {{object}}."),)
        for predicate, name in names.items()
    }
    made = "; ".join(
        f"{db.name(predicate)}: {templates[0].text}"
        for predicate, templates in by_predicate.items()
    )
    return by_predicate, [f"Templates made from the names of predicates: {made:.400}"]


def _without_braces(name: str) -> str:
    return name.replace("{", "(").replace("}", ")")


def _several(name: str, value: object) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(t, str) for t in texts):
        raise InvalidTypeError(
            f"Templates of {name:.60} must be a text or a list of texts; got {shown(value)}. "
            f"{_ADVICE}"
        )
    twice = next((text for i, text in enumerate(texts) if text in texts[:i]), None)
    if twice is not None:
        raise InvalidArgumentError(
            f"Templates of {name:.60} must differ; {shown(twice)} is there twice. Remove one."
        )
    return tuple(texts)


def words_of(name: str) -> str:
    """Write the name of a predicate as words.

    Examples
    --------
    >>> words_of("birthPlace"), words_of("born_in")
    ('birth place', 'born in')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("_", " "))
    return apart.lower() if apart != name else name
