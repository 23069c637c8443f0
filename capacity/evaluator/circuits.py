"""Circuits of a layer as tables over named tokens, and what it makes of one pair.

The circuits W_EU, W_QK^h and W_VO^h of Wong 2025, section 3, are matrices over all tokens. The
tensor L uses these parts of them (equations (4) to (8)), and the tables hold these alone: W_EU and
W_QK^h from predicates, which ask, W_QK^h and W_VO^h at subjects and predicates, which are attended
to, and W_EU and W_VO^h at objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_integer
from capacity.database.choosing.lookup import position
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.database.terms.term import Term
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.logit_terms import layer_terms
from capacity.layer.recall import log_probabilities

if TYPE_CHECKING:
    import pandas as pd

    from capacity.layer.model.attention_layer import AttentionLayer

Ints = NDArray[np.integer]
# most tokens that a table of terms has
MAX_SHOWN = 1_000_000


def circuit_tables(
    layer: AttentionLayer, db: DatabaseLike, *, tokens: Iterable[Term | str] | None = None
) -> dict[str, pd.DataFrame]:
    """Tabulate the circuits of a layer, labelled by tokens.

    Parameters
    ----------
    layer : AttentionLayer
        Layer without norm, bias or positions, with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that names the tokens: subjects, predicates and objects.
    tokens : iterable of Term or str, optional
        The tokens to keep, by names that `Database` knows; all of them if omitted.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``W_EU`` (predicates x objects), and for each head h ``W_QK h`` (predicates x subjects and
        predicates), which has the scores of attention in nats, and ``W_VO h`` (subjects and
        predicates x objects), which has what is added to the logits, in nats. In float64.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, a layer with norm, bias or positions, or `tokens` without a
        subject, a predicate or an object.
    UnknownTokenError
        If no token has a name, or several do.

    Examples
    --------
    >>> from capacity.layer import store_in_value_output
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> tables = circuit_tables(store_in_value_output(db), db)
    >>> list(tables)
    ['W_EU', 'W_QK 0', 'W_VO 0']
    >>> float(tables["W_QK 0"].loc["p", "p"].round(3))
    -40.0
    """
    import pandas as pd

    from capacity.layer.model.attention_layer import AttentionLayer
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    layer.require_plain()
    chosen = None if tokens is None else _ids_of(db, tokens)
    subjects, predicates, objects = (
        _kept(ids, chosen, role)
        for ids, role in (
            (db.subject_ids, "subject"), (db.predicate_ids, "predicate"), (db.object_ids, "object"),
        )
    )  # fmt: skip
    # a token in both roles comes once, as a subject
    attended = np.concatenate([subjects, predicates[~np.isin(predicates, subjects)]])
    # circuits over the tokens that are shown: over all they may not fit in memory
    ids = np.unique(np.concatenate([attended, objects]))
    weights = {name: p.detach().cpu().double() for name, p in layer.named_parameters()}
    small = AttentionLayer.of_weights(
        layer.config, {**weights, "W_E": weights["W_E"][ids], "W_U": weights["W_U"][:, ids]}
    )
    ask, at, say = (np.searchsorted(ids, part) for part in (predicates, attended, objects))

    def table(matrix: NDArray[np.float64], rows: Ints, columns: Ints, index: str) -> pd.DataFrame:
        names = [[db.name(db.tokens[i]) for i in ids[part]] for part in (rows, columns)]
        return pd.DataFrame(
            matrix[np.ix_(rows, columns)], index=pd.Index(names[0], name=index), columns=names[1]
        )

    W_EU, W_QK, W_VO = (w.detach().numpy() for w in (small.W_EU, small.W_QK, small.W_VO))
    tables = {"W_EU": table(W_EU, ask, say, "asks")}
    for head in range(layer.config.n_heads):
        tables[f"W_QK {head}"] = table(W_QK[head], ask, at, "asks")
        tables[f"W_VO {head}"] = table(W_VO[head], at, say, "attended to")
    return tables


def _ids_of(db: Database, tokens: Iterable[Term | str]) -> Ints:
    """Find tokens by their names; one name alone is a list of one."""
    listed = [tokens] if isinstance(tokens, str | Term) else list(tokens)
    known = tuple(db.tokens)
    return np.array(
        [position(one, known, db.prefixes, lambda: db.labels, "token") for one in listed],
        dtype=np.int64,
    )


def _kept(ids: Ints, chosen: Ints | None, role: str) -> Ints:
    """Keep the tokens of a role that were chosen, in the order of the database."""
    kept = ids if chosen is None else ids[np.isin(ids, chosen)]
    if not len(kept):
        raise InvalidArgumentError(
            f"`tokens` must have a subject, a predicate and an object; it has no {role}. Add one "
            f"of the {len(ids):,} {role}s."
        )
    return kept


@briefly_shown
@dataclass(frozen=True)
class PairAnswer:
    """Attention and logits of a layer after one pair of a subject and a predicate.

    Attributes
    ----------
    subject, predicate : str
        Names of the two tokens.
    objects : tuple of str
        Names of the objects that the database has for the pair; none outside the domain.
    attention : pandas.DataFrame
        Attention of the predicate, a row per head, to the subject and to itself; rows sum to 1.
    logits : pandas.DataFrame
        The terms of the logits, in nats, and their sum, ``logit``, in rows: ``embedding``, each
        head's term from the subject and from the predicate, and ``constant`` for a layer with norm
        or biases. A column per token, the likeliest first.
    probabilities : tuple of float
        Probability of each column's token, among all tokens.
    """

    subject: str
    predicate: str
    objects: tuple[str, ...]
    attention: pd.DataFrame
    logits: pd.DataFrame
    probabilities: tuple[float, ...]


def pair_answer(
    layer: AttentionLayer,
    db: DatabaseLike,
    subject: Term | str,
    predicate: Term | str,
    *,
    most: int = 8,
) -> PairAnswer:
    """Decompose what a layer computes after one pair: its attention, and the terms of the logits.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that names the tokens.
    subject, predicate : Term or str
        The pair, by names that `Database` knows; it may lie outside the domain.
    most : int
        Number of likeliest tokens to show; the objects of the pair are shown besides.

    Returns
    -------
    PairAnswer
        Attention, terms and probabilities.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, `most` out of its range, or weights that aren't finite.
    UnknownTokenError
        If no subject or no predicate has a name, or several do.

    Examples
    --------
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> answer = pair_answer(store_in_query_key(db), db, "b", "p", most=2)
    >>> answer.objects, answer.logits.columns.tolist()
    (('y',), ['y', 'x'])
    >>> answer.attention.round(2)
               b     p
    head 0  0.67  0.33
    """
    import pandas as pd
    import torch

    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    most = require_integer("most", most, least=1, most=MAX_SHOWN)
    k = position(subject, db.subjects, db.prefixes, lambda: db.labels, "subject")
    q = position(predicate, db.predicates, db.prefixes, lambda: db.labels, "predicate")
    pair = np.array([[db.subject_ids[k], db.predicate_ids[q]]], dtype=np.int64)
    here = (db.triples[:, 0] == k) & (db.triples[:, 1] == q)
    asked = db.token_triples[here, 2].astype(np.int64)
    with torch.no_grad():
        heads = layer.capture(torch.as_tensor(pair, device=layer.W_E.device)).layers[0]
        attention = heads.pattern[0, :, -1].double().cpu().numpy()
    names = [db.name(db.tokens[i]) for i in pair[0].tolist()]
    terms: dict[str, NDArray[np.float64]] = {}
    for name, term in layer_terms(layer, pair).named(by_head=True).items():
        source, _, head = name.partition("_")
        terms[f"head {head}, {source}" if head else name] = term[0]
    logit = np.sum(list(terms.values()), axis=0)
    order = np.argsort(-logit, kind="stable")
    shown = [i for n, i in enumerate(order.tolist()) if n < most or i in asked]
    rows = pd.DataFrame({**terms, "logit": logit}).T[shown]
    rows.columns = pd.Index([db.name(db.tokens[i]) for i in shown])
    p = np.exp(log_probabilities(logit[None]))[0, shown]
    return PairAnswer(
        names[0],
        names[1],
        tuple(db.name(db.tokens[i]) for i in asked.tolist()),
        pd.DataFrame(attention, index=[f"head {h}" for h in range(len(attention))], columns=names),
        rows,
        tuple(p.tolist()),
    )
