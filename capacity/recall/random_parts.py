"""`beside_random_parts`: measures of what a model knows beside random parts of the facts.

A model knows frequent answers before rare ones, so a random part of the facts has more different
objects than what it knows, and a larger rank, whatever else it knows. A fair part has facts of the
same predicates, and with equally frequent answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import Seed, generator, require_choice, require_integer, shown
from capacity.database.codes.lengths import description_length
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.embedding.families import dimension
from capacity.errors import InvalidArgumentError
from capacity.progress import Progress, bar
from capacity.rank.analysis import rank_interval
from capacity.rank.bounds import paper_bound

Match: TypeAlias = Literal["answers", "predicate", "nothing"]
Measure: TypeAlias = Literal["bound", "rank", "description_length", "dimension"]
# ends of the interval over draws
_ENDS = (0.025, 0.975)


def beside_random_parts(
    known: DatabaseLike,
    facts: DatabaseLike,
    *,
    draws: int = 100,
    seed: Seed = 0,
    match: Sequence[Match] = get_args(Match),
    measures: Sequence[Measure] = get_args(Measure),
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Compare what is known with random parts of the facts of the same size.

    Each random part has as many facts as `known`, drawn without replacement from `facts`:

    * ``answers``: as many as `known` of each predicate and of each frequency of the answer, which
      is the number of facts of `facts` with that predicate and object;
    * ``predicate``: as many as `known` of each predicate;
    * ``nothing``: any.

    A difference that only ``nothing`` shows follows from which predicates are known, and one that
    ``answers`` doesn't show from how frequent the answers are.

    Parameters
    ----------
    known : Database, or what `capacity.database.as_database` takes
        Facts that are known, such as ``recall(...).known()``.
    facts : Database, or what `capacity.database.as_database` takes
        All facts that were asked for, such as ``recall(...).facts``.
    draws : int
        Number of random parts of each kind, from 2 to 1,000,000.
    seed : int or numpy.random.Generator
        Seed of the draws, of all kinds and measures.
    match : sequence of {"answers", "predicate", "nothing"}
        Kinds of random parts.
    measures : sequence of {"bound", "rank", "description_length", "dimension"}
        What is measured: the database rank bound (Wong 2025, Proposition 2.1), the interval of the
        rank, the length of a description of the objects, or the dimension of CP that ranks the
        facts, without a witness.
    progress : callable, optional
        Called with ``("random parts", done, total, None)``; by default a bar on a terminal.

    Returns
    -------
    DataFrame
        One row per kind and measure, with the columns

        * ``match``; ``measure``: ``bound``, ``rank_lower``, ``rank_upper``, ``description_length``
          (in bits; missing if `facts` has multi-valued pairs), ``dimension_necessary``,
          ``dimension_sufficient``;
        * ``known``: of what is known;
        * ``mean``, ``low``, ``high``: mean over random parts, and the ends of the interval that
          contains 95 % of them;
        * ``share_at_most``: (1 + the number of random parts whose value is at most that of what is
          known) / (1 + `draws`), which is a one-sided p-value of the hypothesis that what is known
          is such a random part;
        * ``n_open``: number of facts that a random part can do without. If it is small, the random
          parts are nearly `known` itself.

    Raises
    ------
    InvalidArgumentError
        If nothing is known, or a fact that isn't among `facts`; or if an option isn't valid.

    Examples
    --------
    >>> facts = [(s, "in", o) for s, o in ("ax", "bx", "cx", "dy", "ez")]
    >>> table = beside_random_parts(facts[:3], facts, draws=20, measures=["bound"])
    >>> table[["match", "known", "mean", "n_open"]].values.tolist()
    [['answers', 1.0, 1.0, 0], ['predicate', 1.0, 2.3, 3], ['nothing', 1.0, 2.2, 3]]
    """
    part = require_triples(known, "beside_random_parts(known, facts)")
    whole = require_triples(facts, "beside_random_parts(known, facts)")
    draws = require_integer("draws", draws, least=2, most=10**6)
    for one in match:
        require_choice("`match`", one, get_args(Match))
    for one in measures:
        require_choice("`measures`", one, get_args(Measure))
    rows = _rows_of(part, whole)
    columns = _functions(measures, functional=whole.is_functional)
    own = {name: value for measured in columns for name, value in measured(part).items()}
    rng = generator(seed)
    summaries: list[dict[str, object]] = []
    total = len(match) * draws
    with bar() as default:
        report = progress or default
        for i, kind in enumerate(match):
            groups = _groups(whole, kind)
            sizes = np.bincount(groups[rows], minlength=groups.max() + 1)
            values: list[dict[str, float]] = []
            for done in range(draws):
                report("random parts", i * draws + done, total, None)
                drawn = whole.subset(_drawn(groups, sizes, rng))
                values.append({k: v for measured in columns for k, v in measured(drawn).items()})
            # of a group that is known whole every part has all
            is_open = sizes < np.bincount(groups)
            summaries += _summarised(kind, own, pd.DataFrame(values), int(sizes[is_open].sum()))
        report("random parts", total, total, None)
    return pd.DataFrame(summaries)


def _summarised(
    kind: Match, own: Mapping[str, float], values: pd.DataFrame, n_open: int
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, value in own.items():
        drawn = values[name].to_numpy(float)
        low, high = np.quantile(drawn, _ENDS)
        at_most = (1 + int((drawn <= value).sum())) / (1 + len(drawn))
        rows.append({
            "match": kind, "measure": name, "known": value, "mean": float(drawn.mean()),
            "low": float(low), "high": float(high),
            "share_at_most": at_most if np.isfinite([value, *drawn]).all() else np.nan,
            "n_open": n_open,
        })  # fmt: skip
    return rows


def _rows_of(part: Database, whole: Database) -> NDArray[np.int64]:
    """Numbers of the facts of a part among all facts."""
    numbers = {fact: i for i, fact in enumerate(whole)}
    missing = [fact for fact in part if fact not in numbers]
    if missing or not len(part):
        what = f"{' '.join(map(str, missing[0]))} isn't there" if missing else "it is empty"
        raise InvalidArgumentError(
            f"`known` must have a fact, and none that `facts` lacks; {shown(what)}. Pass "
            "recall(...).known() and recall(...).facts."
        )
    return np.array([numbers[fact] for fact in part])


def _groups(facts: Database, kind: Match) -> NDArray[np.int64]:
    """Group of each fact, of which a random part has as many as what is known."""
    _, predicates, objects = facts.triples.T.astype(np.int64)
    if kind == "nothing":
        return np.zeros(len(predicates), np.int64)
    if kind == "predicate":
        return predicates
    pairs = predicates * (objects.max() + 1) + objects
    _, at, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    both = np.stack([predicates, counts[at]], axis=1)
    return np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)


def _drawn(
    groups: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Rows of as many random facts of each group as its size."""
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    sorted_groups = groups[order]
    place = np.arange(len(groups)) - np.searchsorted(sorted_groups, sorted_groups)
    chosen = np.zeros(len(groups), bool)
    chosen[order] = place < sizes[sorted_groups]
    return chosen


def _functions(
    measures: Sequence[Measure], *, functional: bool
) -> list[Callable[[Database], dict[str, float]]]:
    known: dict[Measure, Callable[[Database], dict[str, float]]] = {
        "bound": lambda db: {"bound": float(paper_bound(db))},
        "rank": _rank,
        "description_length": lambda db: {"description_length": description_length(db).bits},
        "dimension": _dimension,
    }
    return [
        known[one] for one in dict.fromkeys(measures) if functional or one != "description_length"
    ]


def _rank(db: Database) -> dict[str, float]:
    # a wider interval, of a search that was interrupted, is none of a part
    found = rank_interval(db).uninterrupted()
    return {"rank_lower": float(found.lower), "rank_upper": float(found.upper)}


def _dimension(db: Database) -> dict[str, float]:
    found = dimension(db, "CP", witness=False)
    # a family that no dimension makes able has none
    ends = (found.necessary, found.sufficient)
    names = ("dimension_necessary", "dimension_sufficient")
    return {
        name: np.nan if end is None else float(end) for name, end in zip(names, ends, strict=True)
    }
