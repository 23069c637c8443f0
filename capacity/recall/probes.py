"""BEAR and LAMA, two published probes of language models, as facts, templates and candidates.

Both have tables of items with the columns ``sub_label`` and ``obj_label``, and templates with the
places ``[X]`` and ``[Y]``. BEAR has one table per relation, several templates of each, and the
answers that are compared; LAMA has one template per relation.

References
----------
Petroni et al. 2019, "Language Models as Knowledge Bases?", for LAMA; Wiland, Ploner, Akbik 2024,
"BEAR: A Unified Framework for Evaluating Relational Knowledge in Causal and Masked Language
Models", whose files ``lm-pub-quiz`` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pandas as pd

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.recall.templates import Template

# of T-REx, and of Google-RE
_PREDICATES = ("predicate_id", "pred")


@briefly_shown
@dataclass(frozen=True)
class Probe:
    """Facts with templates, ready for `capacity.recall.recall`.

    Attributes
    ----------
    facts : Database
        The items. Their terms are the labels of subjects and objects, and the codes of relations.
    templates : dict of str to tuple of str
        Templates of each relation.
    candidates : dict of str to tuple of str
        Answers that are compared, of the relations whose probe lists them.
    notes : tuple of str
        What differs from the items: those that are there twice, and subjects with one label.
    """

    facts: Database
    templates: dict[str, tuple[str, ...]]
    candidates: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def from_bear(
    tables: Mapping[str, pd.DataFrame], metadata: Mapping[str, Mapping[str, Any]]
) -> Probe:
    """Convert BEAR, or another data set of ``lm-pub-quiz``.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        The items of each relation, by its code: for a file ``P36.jsonl`` the code ``P36`` and the
        table ``pandas.read_json(path, lines=True)``. Columns: ``sub_label``, and ``obj_label`` or
        ``obj_id``; ``sub_id`` distinguishes subjects in `Probe.notes`.
    metadata : mapping of str to mapping
        What ``metadata_relations.json`` contains: for each code ``templates`` (texts with ``[X]``
        and ``[Y]``), and optionally ``answer_space_labels`` and ``answer_space_ids``.

    Returns
    -------
    Probe
        The facts, all templates, and the answer spaces as candidates.

    Raises
    ------
    InvalidTypeError
        If a table is no DataFrame.
    InvalidArgumentError
        If a relation has no metadata, no template or no item, a table lacks a column, an item lacks
        a label, or an answer space lacks the object of an item.

    Examples
    --------
    >>> table = pd.DataFrame({"sub_label": ["Peru", "Norway"], "obj_label": ["Lima", "Oslo"]})
    >>> metadata = {"P36": {"templates": ["The capital of [X] is [Y]."],
    ...                     "answer_space_labels": ["Lima", "Oslo", "Quito"]}}
    >>> probe = from_bear({"P36": table}, metadata)
    >>> probe.templates, probe.candidates
    ({'P36': ('The capital of {subject} is {object}.',)}, {'P36': ('Lima', 'Oslo', 'Quito')})
    """
    rows: list[_Item] = []
    templates: dict[str, tuple[str, ...]] = {}
    candidates: dict[str, tuple[str, ...]] = {}
    for code, table in tables.items():
        about = metadata.get(code)
        if about is None:
            raise InvalidArgumentError(
                f"`metadata` must have an entry for every relation; {shown(code)} has none. Pass "
                "what metadata_relations.json contains."
            )
        space = [_label(one, code, "answer") for one in about.get("answer_space_labels", ())]
        frame = _frame(table, code, ("sub_label",))
        if "obj_label" not in frame.columns:
            ids = about.get("answer_space_ids", ())
            if "obj_id" not in frame.columns or len(ids) != len(space):
                _lacks(code, "obj_label")
            frame = frame.assign(
                obj_label=frame["obj_id"].map(dict(zip(ids, space, strict=True))).astype(object)
            )
        own = list(_items(frame, code))
        rows += own
        templates[code] = _templates(about.get("templates", ()), code)
        if space:
            missing = sorted({one.object for one in own} - {*space})
            if missing:
                raise InvalidArgumentError(
                    f"`answer_space_labels` of {shown(code)} must contain the object of every "
                    f"item; {shown(missing[0])} is missing. Add it."
                )
            candidates[code] = tuple(dict.fromkeys(space))
    return _probe(rows, templates, candidates)


def from_lama(items: pd.DataFrame, relations: pd.DataFrame) -> Probe:
    """Convert the parts T-REx or Google-RE of LAMA.

    Parameters
    ----------
    items : DataFrame
        The items, such as ``pandas.concat`` of ``pandas.read_json(path, lines=True)`` of the files
        ``TREx/*.jsonl``. Columns: ``sub_label``, ``obj_label``, and the relation as
        ``predicate_id`` or ``pred``; ``sub_uri`` distinguishes subjects in `Probe.notes`.
    relations : DataFrame
        What ``relations.jsonl`` contains. Columns: ``relation`` and ``template``, a text with
        ``[X]`` and ``[Y]``. The blank before a full stop at its end is removed.

    Returns
    -------
    Probe
        The facts and their templates, without candidates: those are the objects of a relation.

    Raises
    ------
    InvalidTypeError
        If an argument is no DataFrame.
    InvalidArgumentError
        If a table lacks a column, an item its label, or a relation its template.

    Examples
    --------
    >>> items = pd.DataFrame({"sub_label": ["Allan Peiper"], "obj_label": ["Alexandra"],
    ...                       "predicate_id": ["P19"]})
    >>> relations = pd.DataFrame({"relation": ["P19"], "template": ["[X] was born in [Y] ."]})
    >>> from_lama(items, relations).templates
    {'P19': ('{subject} was born in {object}.',)}
    """
    frame = _frame(items, "items", ("sub_label", "obj_label"))
    known = _frame(relations, "relations", ("relation", "template"))
    column = next((name for name in _PREDICATES if name in frame.columns), None)
    if column is None:
        _lacks("items", " or ".join(_PREDICATES))
    texts = dict(zip(known["relation"].map(str), known["template"], strict=True))
    rows: list[_Item] = []
    templates: dict[str, tuple[str, ...]] = {}
    for name, table in frame.groupby(column, sort=False):
        code = str(name)
        if code not in texts:
            raise InvalidArgumentError(
                f"`relations` must have a template for every relation of the items; {shown(code)} "
                "has none. Add its row, or omit its items."
            )
        rows += _items(table.rename(columns={"sub_uri": "sub_id"}), code)
        templates[code] = _templates([texts[code]], code)
    return _probe(rows, templates, {})


@dataclass(frozen=True)
class _Item:
    """A row of a table."""

    subject: str
    relation: str
    object: str
    id: str


def _frame(table: Any, name: str, columns: Sequence[str]) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        raise InvalidTypeError(
            f"The table of {shown(name)} must be a DataFrame; got {shown(table)}. Read it by "
            "pandas.read_json(path, lines=True)."
        )
    for column in columns:
        if column not in table.columns:
            _lacks(name, column)
    if table.empty:
        raise InvalidArgumentError(f"The table of {shown(name)} must have a row; it is empty.")
    return table


def _lacks(name: str, column: str) -> NoReturn:
    raise InvalidArgumentError(
        f"The table of {shown(name)} must have the column {column}; it is missing. Rename another."
    )


def _items(table: pd.DataFrame, code: str) -> Iterable[_Item]:
    ids = table["sub_id"] if "sub_id" in table.columns else table["sub_label"]
    for subject, found, one in zip(table["sub_label"], table["obj_label"], ids, strict=True):
        yield _Item(_label(subject, code, "sub_label"), code, _label(found, code, "obj_label"),
                    str(one))  # fmt: skip


def _label(value: object, code: str, name: str) -> str:
    text = "" if pd.isna(value) else " ".join(str(value).split())  # pyright: ignore
    if not text:
        raise InvalidArgumentError(
            f"Every item of {shown(code)} must have a label; {name} is {shown(value)} in one. Omit "
            "such items."
        )
    return text


def _templates(texts: Sequence[str], code: str) -> tuple[str, ...]:
    if isinstance(texts, str) or not len(texts) or not all(isinstance(one, str) for one in texts):
        raise InvalidArgumentError(
            f"{shown(code)} must have templates, a list of texts with [X] and [Y]; got "
            f"{shown(texts)}."
        )
    made: list[str] = []
    for text in texts:
        # braces of the text would be places of ours
        ours = text.strip().replace("{", "(").replace("}", ")")
        ours = ours.replace("[X]", "{subject}").replace("[Y]", "{object}")
        ours = f"{ours[:-2]}." if ours.endswith(" .") else ours
        made.append(Template(ours).text)
    return tuple(dict.fromkeys(made))


def _probe(
    rows: Sequence[_Item],
    templates: dict[str, tuple[str, ...]],
    candidates: dict[str, tuple[str, ...]],
) -> Probe:
    facts = list(dict.fromkeys((one.subject, one.relation, one.object) for one in rows))
    notes: list[str] = []
    if len(facts) < len(rows):
        n = len(rows) - len(facts)
        notes.append(f"Items that are there a second time, and are no further fact: {n}.")
    ids: dict[str, set[str]] = {}
    for one in rows:
        ids.setdefault(one.subject, set()).add(one.id)
    several = sorted(name for name, of in ids.items() if len(of) > 1)
    if several:
        notes.append(
            f"Labels of several subjects: {len(several)}, such as {shown(several[0])}. Those with "
            "one label are one subject here, and any of their objects is a right answer."
        )
    return Probe(Database.from_triples(facts, multi="keep"), templates, candidates, tuple(notes))
