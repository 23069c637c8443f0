"""The page about what a language model knows: known facts by predicate, by template and by fact."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from capacity.checks import in_a_line, shown
from capacity.errors import FormatError, InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by
from capacity.report.rendering import Column, Table, cell, rendered, sentence, table
from capacity.safe_files import read_file

if TYPE_CHECKING:
    import pandas as pd

    from capacity.recall.result import Recall

# columns of the table of `recall` that the page needs, by how they are read from CSV
_TEXTS = ("subject", "predicate", "object", "template", "answer", "greedy")
_NUMBERS = ("fact", "rank", "probability", "n_candidates", "rank_calibrated")
_TRUTHS = ("right", "greedy_right")
COLUMNS = (*_TEXTS, *_NUMBERS, *_TRUTHS)
MAX_BYTES = 2**30
# rows of the table of facts; the page would be too large with more
_MOST_FACTS = 1_000


def recall_report(
    source: str | os.PathLike[str] | pd.DataFrame | Recall, *, title: str | None = None
) -> str:
    """Write a page about the facts that a language model knows that can be sent to a colleague.

    It has the numbers of known facts by predicate, and by predicate and template, also by
    calibrated scores, and the facts themselves with what the model answers.

    Parameters
    ----------
    source : path, DataFrame or Recall
        File that ``capacity recall --out`` wrote, `Recall.table`, or what `capacity.recall`
        returned.
    title : str, optional
        Name of the model; by default that of the file, or the class of the model.

    Returns
    -------
    str
        The page, one HTML file that loads nothing.

    Raises
    ------
    InvalidTypeError
        If `source` is none of these.
    InvalidArgumentError
        If the table lacks a column, or has no row.
    FormatError
        If the file isn't such a table.
    StorageError
        If it can't be read.
    MissingExtraError
        Without pandas (extra ``layers``), or jinja2 (extra ``report``).

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"fact": 0, "subject": "Peru", "predicate": "capital", "object": "Lima",
    ...        "template": "{subject}: {object}", "answer": "Lima", "right": True, "rank": 1,
    ...        "probability": 0.9, "n_candidates": 2, "n_right": 1, "greedy": "Lima",
    ...        "greedy_right": True, "rank_calibrated": None}
    >>> page = recall_report(pd.DataFrame([row]), title="A model")
    >>> "What A model knows" in page, "<script src" in page
    (True, False)
    """
    with needed_by("A report of a model"):
        import pandas as pd

        from capacity.recall.result import Recall, facts_in, predicates_in, templates_in
    notes: tuple[str, ...] = ()
    method = ""
    if isinstance(source, Recall):
        answers, notes, method = source.table, source.notes, source.method
        title = title or source.model
    elif isinstance(source, pd.DataFrame):
        answers, title = source, title or "the model"
    elif isinstance(source, str | os.PathLike):
        answers, title = _read(Path(source)), title or Path(source).stem
    else:
        raise InvalidTypeError(
            "`source` must be a file that `capacity recall --out` wrote, its table, or what "
            f"`recall` returned; got {shown(source)}."
        )
    missing = [name for name in COLUMNS if name not in answers.columns]
    if missing or answers.empty:
        raise InvalidArgumentError(
            "A table of answers must have a row, and the columns of `Recall.table`; "
            f"{f'{missing[0]} is missing' if missing else 'it is empty'}. Write it by "
            "`capacity recall --out`."
        )
    # facts of a part of a table are counted anew
    answers = answers.assign(fact=pd.factorize(answers["fact"], sort=True)[0])
    facts, predicates, templates = facts_in(answers), predicates_in(answers), templates_in(answers)
    return rendered(
        "recall.html.j2",
        title=f"What {title} knows",
        method=method,
        n_facts=len(facts),
        n_rows=len(answers),
        n_templates=len(templates),
        n_known=int((facts["known"] >= 0.5).sum()),
        n_best=int((facts["known"] > 0).sum()),
        n_worst=int((facts["known"] == 1).sum()),
        greedy=float(answers["greedy_right"].astype(bool).mean()),
        predicates=_predicates(predicates),
        templates=_templates(templates),
        of_facts=_facts(facts.head(_MOST_FACTS), answers),
        n_shown=min(len(facts), _MOST_FACTS),
        notes=notes,
    )


def is_recall_table(path: Path) -> bool:
    """Return whether a file is a table that ``capacity recall --out`` wrote, by its columns.

    Parameters
    ----------
    path : path
        Any file.
    """
    try:
        if not path.is_file():
            return False
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                names = next(csv.reader([file.readline(2**16)]), [])
        elif path.suffix.lower() == ".parquet":
            import pyarrow.parquet

            names = pyarrow.parquet.read_schema(path).names
        else:
            return False
    except (OSError, ValueError, csv.Error):
        # whatever it is, reading it as facts explains what is wrong
        return False
    return set(COLUMNS) <= set(names)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    data = io.BytesIO(read_file(path, max_bytes=MAX_BYTES))
    try:
        if path.suffix.lower() != ".csv":
            return pd.read_parquet(data)
        # a name may be NA, or empty; a number that is missing is empty
        read = pd.read_csv(data, dtype=dict.fromkeys(_TEXTS, str), keep_default_na=False,
                           na_values={name: [""] for name in _NUMBERS})  # fmt: skip
        return read.astype({"rank": "Int64", "rank_calibrated": "Int64"} if not read.empty else {})
    # the readers raise errors of many kinds
    except Exception as error:
        raise FormatError(
            str(path),
            f"it is no table of answers: {in_a_line(error)}",
            advice="Write it by `capacity recall --out`, as .csv or .parquet.",
        ) from None


_KNOWN = Column("known", "Facts whose object is the best candidate for at least half of the "
                "templates.", "number")  # fmt: skip


def _predicates(rows: pd.DataFrame) -> Table:
    """One row per predicate."""
    return table(
        "predicates",
        "Known facts of each predicate",
        [
            Column("predicate", "The predicate."),
            Column("facts", "Number of its facts that were asked for.", "number", "descending"),
            _KNOWN,
            Column("share", "Share of the facts that are known.", "number"),
            Column("by one", "Facts whose object is the best candidate for one template at least.",
                   "number"),
            Column("by all", "Facts whose object is the best candidate for all templates.",
                   "number"),
            Column("templates", "Number of its templates.", "number"),
            Column("candidates", "Number of objects that were compared.", "number"),
            Column("greedy", "Share of answers, of all templates, in which the model writes the "
                   "object by itself.", "number"),
        ],
        (
            [row["predicate"], row["facts"], row["known"], row["known"] / row["facts"],
             row["known_best"], row["known_worst"], row["templates"], row["candidates"],
             row["greedy_right"]]
            for row in _plain(rows.sort_values("facts", ascending=False, kind="stable"))
        ),
    )  # fmt: skip


def _templates(rows: pd.DataFrame) -> Table:
    """One row per predicate and template."""
    return table(
        "templates",
        "Known facts by each template",
        [
            Column("template", "The sentence, with the places of subject and object."),
            Column("predicate", "The predicate."),
            Column("facts", "Number of facts that were asked for by it.", "number"),
            Column("known", "Facts whose object is the best candidate.", "number"),
            Column("share", "Share of the facts.", "number", "descending"),
            Column("calibrated", "Facts whose object is the best candidate by calibrated scores, "
                   "which are scores minus their mean over subjects; - where there are none.",
                   "number"),
            Column("greedy", "Facts whose object the model writes by itself.", "number"),
            Column("probability", "Mean probability of the object among candidates; - where only "
                   "best answers were searched for.", "number"),
        ],
        (
            [sentence(row["template"]), row["predicate"], row["facts"], row["known"], row["share"],
             row["known_calibrated"], row["greedy_right"], row["probability"]]
            for row in _plain(
                rows.assign(share=rows["known"] / rows["facts"])
                .astype({"known_calibrated": "Int64"})
                .sort_values("share", ascending=False, kind="stable")
            )
        ),
    )  # fmt: skip


def _facts(facts: pd.DataFrame, answers: pd.DataFrame) -> Table:
    """One row per fact."""
    best = answers.groupby("fact")["answer"].agg(lambda of: of.value_counts().index[0])
    return table(
        "facts",
        "Facts, and what the model answers",
        [
            Column("subject", "The subject."),
            Column("predicate", "The predicate."),
            Column("object", "The object."),
            Column("answer", "Best candidate for most templates."),
            Column("templates", "Share of templates for which the object is the best candidate.",
                   "number"),
            Column("rank", "Best rank of the object among candidates, over templates; - for a rank "
                   "above 1 where only best answers were searched for.", "number"),
            Column("probability", "Mean probability of the object among candidates.", "number"),
        ],
        (
            [row["subject"], row["predicate"], row["object"], cell(best[row["fact"]]), row["known"],
             row["rank_best"], row["probability_mean"]]
            for row in _plain(facts)
        ),
    )  # fmt: skip


def _plain(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with the numbers of Python, and None for what is missing."""
    plain = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return [
        {
            str(name): value.item() if hasattr(value, "item") else value
            for name, value in cast("dict[Any, Any]", row).items()
        }
        for row in plain
    ]
