"""The page about a database: how large it is, what carries that, and what would hold it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from capacity.checks import Seed, integer_seed
from capacity.database.describing.advice import flags, named
from capacity.database.describing.dataset import Description, describe
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.embedding.families import dimensions
from capacity.embedding.results.page import reason_in_words
from capacity.embedding.results.result import Dimension
from capacity.embedding.results.serialization import dimension_to_dict
from capacity.progress import Progress
from capacity.rank.analysis import RankAnalysis
from capacity.rank.options import Effort
from capacity.report.drawing.bound_marks import bound_marks
from capacity.report.holding import holding_layer, smallest_embedding
from capacity.report.rendering import (
    Cell,
    Column,
    Table,
    cell,
    downloads,
    rendered,
    sentence,
    table,
)

# rows of a table, so that a page stays small; those that carry most come first
MOST_ROWS = 500
# files that a command names
MOST_FILES = 10
_COMPONENTS = 50


@dataclass(frozen=True)
class _Saving:
    """The selection that takes most of the size away, as options, and the bound that it leaves."""

    flags: str
    leaves: int


def database_report(
    db: DatabaseLike,
    *,
    effort: Effort = "quick",
    seed: Seed = 0,
    options: Sequence[str] = (),
    progress: Progress | None = None,
) -> str:
    """Write a page about a database that can be sent to a colleague.

    Its first screen explains, without words of algebra, how large the database is (the rank of its
    tensor, Wong 2025, section 2), what carries that, and what layer and embedding would hold it.
    Below are the description, all bounds, predicates, multi-valued pairs, components, and the
    certificates as links up to 200 kB.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts of arity 3, functional or not.
    effort : {'quick', 'standard', 'thorough'}
        Work for the rank and for dimensions; no witness is trained.
    seed : int or numpy.random.Generator
        Seed of all searches.
    options : sequence of str
        The options of the command line that chose the facts, for the commands that the page names.
    progress : callable, optional
        Called with what is done (`capacity.Progress`).

    Returns
    -------
    str
        The page, one HTML file that loads nothing.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3, a database without facts, or an unknown effort.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget.
    MissingExtraError
        Without jinja2 (extra ``report``).

    Examples
    --------
    >>> db = Database.from_triples([("Oslo", "in", "Norway"), ("Bergen", "in", "Norway")])
    >>> page = database_report(db)
    >>> page[:15], "<script src" in page
    ('<!DOCTYPE html>', False)
    """
    db = require_triples(db, "database_report(db)")
    description, start = describe(db), integer_seed(seed)
    analysis = RankAnalysis(db, effort=effort, seed=start, progress=progress)
    interval = analysis.rank.uninterrupted()
    marks = bound_marks(analysis.bounds, interval)
    ranking, exact = (
        dimensions(db, None, task, effort=effort, seed=start, witness=False, progress=progress)
        for task in ("ranking", "exact")
    )
    file = db.source.name if db.source is not None else "FILE"
    # the command is for a shell, and the files' names may be anything
    of_file = shlex.join(
        [*_files(db), *options, *(["--effort", effort] if effort != "quick" else [])]
    )
    several = [row for row in description.predicates if not row.functional]
    most = marks[-1].value
    return rendered(
        "database.html.j2",
        title=f"{file} on one page" if db.source is not None else "A database on one page",
        description=description,
        interval=interval,
        marks=marks,
        most=most,
        band=(100 * interval.lower / most, 100 * interval.upper / most),
        saving=_saving(description),
        layer=holding_layer(db, analysis.bounds.paper, ranking),
        embedding=smallest_embedding(ranking),
        kinds=_kinds(description),
        components=_components(description),
        classes=_classes(description),
        predicates=_predicates(description),
        hidden=max(0, len(description.predicates) - MOST_ROWS),
        several=table(
            "several",
            "Predicates with several objects to a subject"
            + (f", the first {MOST_ROWS:,}" if len(several) > MOST_ROWS else ""),
            _SEVERAL,
            (
                (row.name, row.multi_valued_pairs, row.subjects, row.example[0],
                 " | ".join(row.example[1:]))
                for row in several[:MOST_ROWS]
            ),
        ),
        dimensions=_dimensions(db, ranking, exact),
        files=downloads(
            [
                ("rank.json", "Both ends of the rank, with their proofs",
                 f"capacity rank {of_file} --certificate rank.json",
                 [end.to_dict() for end in interval.certificates]),
                ("dimensions.json", "The dimensions of all families, with their proofs",
                 f"capacity dimension {of_file} --no-witness --certificate dimensions.json",
                 [dimension_to_dict(one) for one in (*ranking, *exact)]),
            ]
        ),
    )  # fmt: skip


def _files(db: Database) -> list[str]:
    """Name the files of a database as a command takes them."""
    parts = () if db.source is None else db.source.parts or (db.source,)
    return [part.name for part in parts] if 0 < len(parts) <= MOST_FILES else ["FILE"]


def _saving(of: Description) -> _Saving | None:
    best = next(iter(of.advice), None)
    if best is None or best.leaves >= of.bound:
        return None
    return _Saving(flags(best.selection, named(of.db)), best.leaves)


_KINDS = {
    "schema": "types and other schema",
    "annotations": "labels, comments and other annotations",
    "literals": "values that are literals",
    "blank_nodes": "facts with blank nodes",
}


def _kinds(of: Description) -> Table:
    return table(
        "kinds",
        "Kinds of facts; one fact can be of several",
        [Column("kind", "What the facts are, by the vocabularies in use."),
         Column("facts", "Number of facts of the kind.", "number"),
         Column("share", "Their share of all facts.", "number")],
        ((_KINDS[kind], n, _share(n / of.db.n_facts)) for kind, n in of.kinds.items()),
    )  # fmt: skip


def _components(of: Description) -> Table:
    counts = sorted(Counter(of.components).items(), reverse=True)
    return table(
        "components",
        "Components by size" + (f", the {_COMPONENTS} largest sizes" if len(counts) > _COMPONENTS
                                else ""),
        [Column("facts", "Number of facts of a component.", "number", "descending"),
         Column("components", "How many components have that number.", "number")],
        counts[:_COMPONENTS],
    )  # fmt: skip


def _classes(of: Description) -> Table:
    cut = len(of.classes) > _COMPONENTS
    return table(
        "classes",
        "Classes, by rdf:type" + (f", the {_COMPONENTS} largest" if cut else ""),
        [Column("class", "Object of rdf:type."),
         Column("subjects", "How many subjects have it.", "number", "descending")],
        ((of.db.name(term), n) for term, n in of.classes[:_COMPONENTS]),
    )  # fmt: skip


_PREDICATES = (
    Column("predicate", "The predicate by its short name."),
    Column("label", "Its label in the facts."),
    Column("rank", "Rank of the matrix of its subjects and objects: the number of patterns in its "
           "values.", "number", "descending"),
    Column("of rank", "Its share of the sum of these ranks.", "number"),
    Column("facts", "Number of its facts.", "number"),
    Column("of facts", "Its share of all facts.", "number"),
    Column("subjects", "Number of different subjects.", "number"),
    Column("objects", "Number of different objects.", "number"),
    Column("several", "Subjects that have several objects.", "number"),
    Column("kind", "Whether it is schema, an annotation, or has literals alone."),
    Column("repeats", "The other predicate that it shares most pairs with, if these are a tenth of "
           "its own."),
)  # fmt: skip
_SEVERAL = (
    Column("predicate", "The predicate by its short name."),
    Column("pairs", "Subjects that have several objects.", "number", "descending"),
    Column("subjects", "All of its subjects.", "number"),
    Column("such as", "One of these subjects."),
    Column("has", "Two of the objects of that subject."),
)


def _predicates(of: Description) -> Table:
    cut = f", the {MOST_ROWS:,} of largest rank" if len(of.predicates) > MOST_ROWS else ""
    rows = (
        (
            row.name, row.label or "", row.rank, _share(row.rank_share), row.facts,
            _share(row.facts_share), row.subjects, row.objects, row.multi_valued_pairs,
            ", ".join(word for word, holds in (("schema", row.schema),
                      ("annotation", row.annotation), ("literals", row.literal)) if holds),
            sentence(row.in_words()),
        )
        for row in of.predicates[:MOST_ROWS]
    )  # fmt: skip
    return table("predicates", f"Predicates{cut}", _PREDICATES, rows)


def _share(share: float) -> Cell:
    return cell(share, f"{100 * share:.1f} %")


def _dimensions(db: Database, ranking: Sequence[Dimension], exact: Sequence[Dimension]) -> Table:
    scores = {dim.model: dim for dim in exact}
    return table(
        "dimensions",
        "Dimensions that families of models need, to rank and for exact scores",
        [Column("family", "Family of models; the dimension is that of its vectors, of attention "
                "d_model."),
         Column("at least", "Proved to be needed to rank; empty if no dimension does.", "number"),
         Column("enough", "Proved to be enough to rank.", "number"),
         Column("why", "The proof that the number is enough, or why none is."),
         Column("exact: at least", "Proved to be needed for the score 1 at facts and 0 elsewhere.",
                "number"),
         Column("exact: enough", "Proved to be enough for these scores.", "number")],
        (
            (dim.model, dim.necessary, dim.sufficient, sentence(reason_in_words(dim, db)),
             scores[dim.model].necessary, scores[dim.model].sufficient)
            for dim in ranking
        ),
    )  # fmt: skip
