"""The dimension that an embedding of a graph needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from capacity.checks import Seed, integer_seed, require_choice
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.embedding.estimate import estimate
from capacity.embedding.model import Model, Reason, Side
from capacity.embedding.models import MODELS, models_of
from capacity.embedding.proofs import Witness
from capacity.embedding.quantities import Quantities
from capacity.embedding.queries import QueryGraph, Task
from capacity.embedding.results.result import Dimension
from capacity.embedding.verifier.scores import is_witness
from capacity.errors import InvalidArgumentError
from capacity.progress import Progress
from capacity.rank import Effort
from capacity.rank.options import BUDGETS

# scores of queries and objects that a witness may have, its steps of training, and the starts of
# each dimension where there are few scores
SEARCH: dict[Effort, tuple[int, int, int]] = {
    "quick": (10_000_000, 1_000, 2),
    "standard": (10_000_000, 4_000, 12),
    "thorough": (40_000_000, 16_000, 48),
}
FEW_SCORES = 10_000
# largest dimension that is trained
MOST = 512


def dimension(
    db: DatabaseLike,
    model: str = "CP",
    task: Task = "ranking",
    *,
    shared: bool | None = None,
    effort: Effort = "quick",
    seed: Seed = 0,
    witness: bool = True,
    cited: bool = True,
    progress: Progress | None = None,
) -> Dimension:
    """Bound the dimension that a family of models needs for the facts of a graph.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        The graph: triples, functional or not.
    model : str
        The family: linear (any model with a linear output layer), CP, DistMult, ComplEx, SimplE,
        RESCAL or TuckER, whose dimension is that of entities; attention (a layer as in
        `capacity.layer`), whose dimension is d_model.
    task : {'exact', 'signs', 'ranking', 'both-sides'}
        What scores must do: be the facts, 0 and 1; be above 0 at the facts and below 0 elsewhere;
        rank the answers of every (s, q, ?) above all else; of every (?, q, o), too.
    shared : bool, optional
        Whether subjects and objects are the same entities, with the same vectors in families that
        share them, and all entities may answer any query; if omitted, where some entity is both.
    effort : {'quick', 'standard', 'thorough'}
        Work for ranks and for a witness.
    seed : int or numpy.random.Generator
        Seed of all searches.
    witness : bool
        Whether to look for a witness, which is a trained model, by torch; not for exact scores.
    cited : bool
        Whether bounds may rest on published theorems, as for `rank_interval`.
    progress : callable, optional
        Called with what is tried (`capacity.Progress`).

    Returns
    -------
    Dimension
        The bounds with their reasons.

    Raises
    ------
    InvalidArgumentError
        If an option is unknown, the facts aren't triples, or there is none; for ``both-sides`` of
        a linear output layer, which has no vectors of subjects.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget.

    Examples
    --------
    Everybody knows the next person. Symmetric scores can't rank a directed cycle; CP can.

    >>> from capacity import Database
    >>> circle = [(a, "knows", b) for a, b in ("AB", "BC", "CA")]
    >>> db = Database.from_triples(circle)
    >>> print(dimension(db, "DistMult", witness=False))
    DistMult: no dimension does
    >>> print(dimension(db, "CP", witness=False))
    CP: [2, 2]
    """
    (found,) = dimensions(
        db, (model,), task, shared=shared, effort=effort, seed=seed, witness=witness,
        cited=cited, progress=progress,
    )  # fmt: skip
    return found


def dimensions(
    db: DatabaseLike,
    models: Iterable[str] | None = None,
    task: Task = "ranking",
    *,
    shared: bool | None = None,
    effort: Effort = "quick",
    seed: Seed = 0,
    witness: bool = True,
    cited: bool = True,
    progress: Progress | None = None,
) -> tuple[Dimension, ...]:
    r"""Bound the dimensions that several families of models need for the facts of a graph.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        The graph: triples, functional or not.
    models : iterable of str, optional
        Families; if omitted, all that can do the task.
    task, shared, effort, seed, witness, cited, progress : optional
        As for `dimension`.

    Returns
    -------
    tuple of Dimension
        One for each family.

    Raises
    ------
    InvalidArgumentError
        As for `dimension`.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget.

    Examples
    --------
    >>> from capacity import Database
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "A")])
    >>> print(*dimensions(db, ["DistMult", "RESCAL"], "exact"), sep="\n")
    DistMult: [2, 2]
    RESCAL: [2, 2]
    """
    require_choice("`task`", task, get_args(Task))
    require_choice("`effort`", effort, BUDGETS)
    if isinstance(models, str):
        raise InvalidArgumentError(
            f"`models` must be several names; got the text {models!r}. Call "
            f"dimension(db, {models!r}), or pass [{models!r}]."
        )
    names = models_of(task) if models is None else tuple(dict.fromkeys(models))
    for name in names:
        require_choice("`model`", name, MODELS)
        if name not in models_of(task):
            raise InvalidArgumentError(
                f"The queries (?, q, o) need a model that scores any triple; {name!r} encodes "
                "(s, q). Ask for task='ranking', or for another model."
            )
    db = require_triples(db, "dimension(db)")
    of = Quantities(db, QueryGraph.of(db, shared), effort, integer_seed(seed), cited)
    return tuple(_one(of, MODELS[name], task, witness, progress) for name in names)


def _one(
    of: Quantities, family: Model, task: Task, witness: bool, progress: Progress | None
) -> Dimension:
    reasons = _best_first([*family.bounds(of, task)])
    found, notes = None, ()
    if family.trained and reasons[0].side != "impossible" and task != "exact" and witness:
        found, notes = _searched(of, family, task, reasons, progress)
    return Dimension(
        family.name,
        task,
        of.graph.entities is not None,
        reasons,
        found,
        estimate(of) if (family.name, task) == ("CP", "ranking") else None,
        notes,
        of.effort,
        of.seed,
        of.db.facts_sha256,
        of.db.multi,
        of.certificates,
    )


def _best_first(reasons: list[Reason]) -> tuple[Reason, ...]:
    order: dict[Side, int] = {"impossible": 0, "necessary": 1, "sufficient": 2}

    def key(one: Reason) -> tuple[int, int]:
        return order[one.side], -one.value if one.side == "necessary" else one.value

    return tuple(sorted(reasons, key=key))


def _searched(
    of: Quantities,
    family: Model,
    task: Task,
    reasons: tuple[Reason, ...],
    progress: Progress | None,
) -> tuple[Witness | None, tuple[str, ...]]:
    """Look for a witness below the best upper bound."""
    cells, steps, starts = SEARCH[of.effort]
    graph = of.graph
    n_subjects, n_relations, n_objects = graph.places
    n_queries = graph.n_queries if task == "ranking" else n_subjects * n_relations
    size = n_queries * n_objects
    if size > cells:
        return None, (f"no witness searched: {size:,} scores, and {of.effort!r} trains {cells:,}",)
    try:
        from capacity.embedding.witnesses.training import least_witness
    except ImportError:
        return None, ("no witness searched: it needs torch (extra 'layers')",)
    least = max((one.value for one in reasons if one.side == "necessary"), default=1)
    most = min(one.value for one in reasons if one.side == "sufficient") - 1
    if most < least:
        return None, ()
    guess = estimate(of)
    bits = guess.bits / (2 * family.parameters(of))
    found, failed = least_witness(
        graph,
        family.name,
        task,
        least=least,
        start=round(bits),
        most=min(most, MOST),
        steps=steps,
        starts=starts if size <= FEW_SCORES else 1,
        seed=of.seed,
        tell=None
        if progress is None
        else lambda what: progress(f"{family.name}: {what}", 0, 1, None),
    )
    if found is not None and not is_witness(found, of.db, task, shared=graph.entities is not None):
        return None, ("a model was found, but its integers are too large to be checked",)
    if found is None:
        return None, (f"no witness found up to dimension {failed:,}, which proves nothing",)
    if failed >= least:
        return found, (f"no witness found at dimension {failed:,}, which proves nothing",)
    return found, ()
