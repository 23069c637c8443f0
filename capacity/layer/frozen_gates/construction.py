"""Facts written into W_V, W_O and W_U, with gates that are drawn at random.

Object v is encoded as a number s_v between 0 and 1. For a vector c with e_q . c > 0 for all
predicates q, and another one b, let object v have the logits x . w_v with

    w_v = 2 s_v b - s_v^2 c,    and w = -4 c for every token that is no object.

A residual stream with x . b = s x . c and x . c > 0 gives them the value x . c (2 s_v s - s_v^2) =
x . c (s^2 - (s_v - s)^2), which is largest at s_v = s. The heads write along one vector o with
o . b = 1 and o . c = 0, so that x . c = e_q . c stays, and

    x . b = e_q . b + sum_h psi_h . u_h,    where W_V^h W_O^h = u_h o.

So b and the u_h solve linear equations, one for each fact, with the matrix F of
`capacity.layer.frozen_gates.gate_rank`. One dimension of values is enough, and more are left zero.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from capacity.checks import Seed, generator
from capacity.database.facts import Database
from capacity.database.required import require_triples
from capacity.errors import InvalidArgumentError
from capacity.layer.frozen_gates.gate_rank import random_gate_rank
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.config import LayerConfig

Array = NDArray[np.float64]
# standard deviations of the logits of attention, one a draw: steeper gates differ more between
# pairs, and too steep ones are 0 or 1
STEEPNESS = (4.0, 8.0, 2.0, 16.0, 4.0, 8.0)
# factor on the margin that tau needs, against rounding
SPARE = 1.25


def random_gate_layer(
    db: Database, config: LayerConfig, tau: float = 0.99, *, seed: Seed = 0
) -> AttentionLayer:
    """Write facts into W_V, W_O and W_U, with W_E, W_Q and W_K drawn at random.

    It holds every database with these pairs, whatever its objects, since `random_gate_rank` of the
    pairs is their number. W_E is normal, but for the last coordinate of predicates, which is
    positive; W_Q and W_K are normal, and scaled.

    Parameters
    ----------
    db : Database
        A functional database.
    config : LayerConfig
        Sizes of a plain layer with d_model >= 2.
    tau : float
        Least probability of every fact's object, strictly between 0.5 and 1.
    seed : int or numpy.random.Generator
        Seed of W_E, W_Q and W_K.

    Returns
    -------
    AttentionLayer
        A layer in float64 with ``d_vocab = db.n_tokens`` that memorises the database at `tau`.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidArgumentError
        For facts of another arity than 3, a layer that `random_gate_rank` refuses, a `tau` out of
        range; if the layer is too small for any objects of these pairs, or float64 too coarse for
        equations that are nearly singular. That was met with over 500 facts of objects of their own
        at d_model = 2 and the limit, and not with 1,284 at d_model = 4.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> layer = random_gate_layer(db, LayerConfig(2, 1, 1, 1))
    >>> layer.config.name
    'd2-h1-qk1-vo1'
    """
    require_triples(db, "random_gate_layer(db, config)")
    db.require_functional("Writing facts into weights")
    if not 0.5 < tau < 1:
        raise InvalidArgumentError(f"`tau` must lie strictly between 0.5 and 1; got {tau}.")
    facts = db.token_triples.astype(np.int64)
    rng = generator(seed)
    rank = random_gate_rank(facts[:, :2], config, seed=rng)
    if rank < len(facts):
        raise InvalidArgumentError(
            f"Random gates must give any objects to all {len(facts):,} pairs; those of "
            f"{config.name} do for {rank:,} of them at most. Take more heads or a larger d_model, "
            "or `store_in_query_key`, which writes into W_E."
        )
    for steepness in STEEPNESS:
        layer = AttentionLayer.of_weights(config, _weights(db, facts, config, steepness, rng))
        if _raised(layer, facts, tau):
            return layer
    raise InvalidArgumentError(
        f"float64 must suffice to solve the equations; in {len(STEEPNESS)} draws of the gates of "
        f"{config.name} it didn't for {len(facts):,} facts of {len(db.object_ids):,} objects, "
        "though the theorem holds. Take more heads or a larger d_model."
    )


def _weights(
    db: Database,
    facts: NDArray[np.int64],
    config: LayerConfig,
    steep: float,
    rng: np.random.Generator,
) -> dict[str, torch.Tensor]:
    """Draw the gates, and solve for the rest."""
    d, heads, qk = config.d_model, config.n_heads, config.d_head_qk
    shapes = config.shapes(db.n_tokens)
    drawn = {name: rng.standard_normal(shapes[name]) for name in ("W_E", "W_Q", "W_K")}
    e = drawn["W_E"]
    # an open set of embeddings, so that almost all of them are in general position
    e[db.predicate_ids, -1] = np.abs(e[db.predicate_ids, -1]) + 0.5
    # e_q . W_Q W_K (e_k - e_q) has a variance of about 2 qk d^2
    drawn["W_Q"] *= steep / (config.attention_scale * d * math.sqrt(2 * qk))
    k, q, v = facts.T
    apart = e[k] - e[q]
    scores = np.einsum("nd,hde,hec,nc->nh", e[q], drawn["W_Q"], drawn["W_K"], apart, optimize=True)
    gates = 1 / (1 + np.exp(-np.clip(scores * config.attention_scale, -700, 700)))
    psi = e[q][:, None] + gates[:, :, None] * apart[:, None]
    s = np.zeros(db.n_tokens)
    s[db.object_ids] = np.arange(1, len(db.object_ids) + 1) / (len(db.object_ids) + 1)
    F = np.concatenate([e[q], psi.reshape(len(facts), heads * d)], axis=1)
    solved = np.linalg.lstsq(F, s[v] * e[q, -1], rcond=0)[0]
    b, u = solved[:d], solved[d:].reshape(heads, d)
    values, out = np.zeros(shapes["W_V"]), np.zeros(shapes["W_O"])
    # o is b without its last coordinate, which makes o . c = 0, over its square, for o . b = 1
    o = np.append(b[:-1], 0.0)
    values[:, :, 0], out[:, 0] = u, o / (o @ o)
    W_U = np.zeros(shapes["W_U"])
    W_U[-1] = -4
    W_U[:, db.object_ids] = 2 * np.outer(b, s[db.object_ids])
    W_U[-1, db.object_ids] -= s[db.object_ids] ** 2
    weights = {**drawn, "W_V": values, "W_O": out, "W_U": W_U}
    return {name: torch.from_numpy(weights[name]) for name in shapes}


def _raised(layer: AttentionLayer, facts: NDArray[np.int64], tau: float) -> bool:
    """Scale W_U until all facts pass tau; return False if some object isn't the argmax."""
    odds = math.log(max(layer.d_vocab - 1, 1) * tau / (1 - tau))
    ids = torch.from_numpy(facts)
    with torch.no_grad():
        logits = layer(ids[:, :2])[:, -1]
        right = logits.gather(1, ids[:, 2:])
        margin = float((right - logits.scatter(1, ids[:, 2:], -torch.inf)).min())
        if not 0 < margin < math.inf:
            return layer.d_vocab == 1
        layer.W_U *= SPARE * odds / margin
        passed = layer(ids[:, :2])[:, -1].log_softmax(-1).gather(1, ids[:, 2:])
    return bool((passed >= math.log(tau)).all())
