"""Ends of what a layer holds while W_E, W_Q and W_K stay as they are, and W_V, W_O, W_U are free.

With them the *gates* a_h(k, q) are fixed, the attention of head h from predicate q to subject k
(equation (5)), and only linear maps are left: after the pair (k, q) the residual stream is

    x = e_q + sum_h psi_h W_V^h W_O^h,    psi_h = a_h e_k + (1 - a_h) e_q.

**A lower end: how many pairs get any objects whatever.** F is the matrix with a row (e_q, psi_1,
..., psi_H) for each pair (k, q), of (n_heads + 1) d_model columns. Every assignment of objects to
the pairs can be held if F has as many independent rows as there are pairs; and, for two objects or
more, only if it has. Subtract the columns of e_q from those of each head: the row becomes (e_q, a_1
(e_k - e_q), ..., a_H (e_k - e_q)).

* Let the gates be indeterminates. By Laplace's expansion along the blocks of columns, a minor is a
  sum over the ways to split its pairs among the blocks, and different ways have different monomials
  in the gates. So pairs are independent if and only if they split so that each part is independent
  in its block. For embeddings in general position those are d_model pairs at most, of different
  predicates in the first block, and without a cycle, as edges from subject to predicate, in
  the block of a head.
* The true gates of almost all W_E, W_Q and W_K reach that rank, for d_model >= 2 and any d_head_qk:
  along a ray t W_QK they are sigmoid(t theta) with numbers theta between which no integer relation
  holds, and such functions of t are algebraically independent.

**The layer that holds them, with gates that are drawn at random.** Object v is encoded as a number
s_v between 0 and 1. For a vector c with e_q . c > 0 for all predicates q, and another one b, let
object v have the logits x . w_v with

    w_v = 2 s_v b - s_v^2 c,    and w = -4 c for every token that is no object.

A residual stream with x . b = s x . c and x . c > 0 has for them the value x . c (2 s_v s - s_v^2)
= x . c (s^2 - (s_v - s)^2), which is largest at s_v = s. The heads write along one vector o with
o . b = 1 and o . c = 0, so that x . c = e_q . c stays, and

    x . b = e_q . b + sum_h psi_h . u_h,    where W_V^h W_O^h = u_h o.

So b and the u_h solve linear equations, one for each fact, with the matrix F. One dimension of
values is enough, and more are left zero.

**An upper end: the share of all assignments of objects that can be held at most.** Assign to N
pairs one of V objects each: there are V^N assignments. Whatever other tokens compete, an assignment
is held only if each pair's object has the largest logit of the V. With gates and embeddings fixed,
the differences of two logits at a pair, M = N V (V - 1) / 2 of them, are polynomials in the
weights; a common vector is taken off the columns of W_U, so that V - 1 are left. Different
assignments that are held have different signs of the differences. So there are no more of them than
of sign vectors, which are counted with d = d_model, m = V - 1 and H heads

* in the numbers z = F y, F as above: M hyperplanes in P = min(N, (H + 1) d) m dimensions,
  hence at most 2 sum_{k < P} binomial(M - 1, k) (Cover 1965);
* in W_V^h and W_O^h W_U, matrices of rank r = min(d_head_vo, d, m) at most: degree 2 in
  P = H r (d + m - r) + d m parameters;
* in W_V^h W_O^h, of rank r = d_head_vo at most, and W_U: degree 3 in P = H r (2 d - r) + d m;
* in any matrices for W_V^h W_O^h, and W_U: degree 2 in P = H d^2 + d m;

and by Warren's theorem M >= P polynomials of degree D in P variables have at most (4 e D M / P)^P
sign vectors. A matrix of rank at most r is G B with B some r of its d rows, and G the identity at
them: binomial(d, r) charts a head cover all of them, and their counts add up.

Torch is loaded for the layer alone. Proofs: docs/concepts/frozen-gates.md.

References
----------
Wong 2025, (2) to (8). Cover 1965, Warren 1968 (Theorem 3) for the counts; Edmonds 1968 for unions
of matroids.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from capacity.checks import Seed, generator, require_affordable, require_integer, shown
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig

if TYPE_CHECKING:
    import torch

    from capacity.layer.model.attention_layer import AttentionLayer

# sums of products of two residues fit 64 bits
PRIME = 2**31 - 1
# bytes of an entry on its way into flint, in numbers of 8 bytes
ENTRY = 8


def random_gate_facts(config: LayerConfig) -> int:
    """Count the pairs that can have any objects at random gates, if the pairs allow it.

    (n_heads + 1) d_model, the largest value of `random_gate_rank`. Neither d_head_vo nor d_head_qk
    matters: with more of them no larger set of pairs can be given *every* assignment of objects.
    For more than two objects, d_head_vo = 1 asks for embeddings of the predicates on one side of a
    hyperplane through 0, as `random_gate_layer` draws them and W_E ~ N(0, 1) needn't.

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer with d_model >= 2.

    Returns
    -------
    int
        A lower end of what the layer holds with W_E, W_Q and W_K frozen.

    Raises
    ------
    InvalidArgumentError
        For a layer with norm, bias or positions, or with d_model = 1.

    Examples
    --------
    >>> random_gate_facts(LayerConfig(d_model=4, n_heads=2, d_head_qk=1, d_head_vo=1))
    12
    """
    require_gates(config)
    return (config.n_heads + 1) * config.d_model


def random_gate_rank(pairs: NDArray[np.integer], config: LayerConfig, *, seed: Seed = 0) -> int:
    """Count the most of these pairs that can have any objects at random gates.

    It is the rank of F for almost all W_E, W_Q and W_K, and the number of pairs in the largest set
    that splits into n_heads + 1 sets of at most d_model pairs: one in which all predicates
    differ, and n_heads in which the pairs, as edges between tokens, form no cycle. A pair (q, q) is
    a cycle, and so are (k, q) and (q, k) together.

    Computed by elimination modulo 2^31 - 1 at a random point. What is returned is never too large,
    since a minor that isn't zero there is no zero polynomial; it is too small with a probability of
    at most 2 min(n, (n_heads + 1) d_model) / (2^31 - 1) for n pairs.

    Parameters
    ----------
    pairs : ndarray of int, shape (n, 2)
        Tokens of subject and predicate, as in ``db.token_triples[:, :2]``. A pair that is repeated
        counts once.
    config : LayerConfig
        Sizes of a plain layer with d_model >= 2.
    seed : int or numpy.random.Generator
        Seed of the point.

    Returns
    -------
    int
        The rank, at most `random_gate_facts`.

    Raises
    ------
    InvalidArgumentError
        For pairs of another shape; for a layer with norm, bias or positions, or with d_model = 1.
    MemoryBudgetError
        If the matrix would take more than 8 GiB.

    Examples
    --------
    Two subjects with two predicates are a cycle, and a head takes three of its four edges:

    >>> config = LayerConfig(d_model=4, n_heads=1, d_head_qk=1, d_head_vo=1)
    >>> random_gate_rank(np.array([[0, 2], [0, 3], [1, 2], [1, 3]]), config)
    4
    """
    require_gates(config)
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidArgumentError(
            "`pairs` must be integers of the shape (n, 2), tokens of subject and predicate; got "
            f"the shape {shown(pairs.shape)} of {pairs.dtype}. Pass db.token_triples[:, :2]."
        )
    pairs = np.unique(pairs.astype(np.int64), axis=0)
    tokens, places = np.unique(pairs, return_inverse=True)
    k, q = places.reshape(pairs.shape).T
    n, d, heads = len(pairs), config.d_model, config.n_heads
    require_affordable([(ENTRY, n, (heads + 1) * d)])
    rng = generator(seed)
    e = rng.integers(PRIME, size=(len(tokens), d))
    gates = rng.integers(PRIME, size=(n, heads, 1))
    seen = gates * ((e[k] - e[q]) % PRIME)[:, None] % PRIME
    rows = np.concatenate([e[q], seen.reshape(n, heads * d)], axis=1)
    return flint.nmod_mat(n, (heads + 1) * d, rows.ravel().tolist(), PRIME).rank() if n else 0


def require_gates(config: LayerConfig) -> None:
    """Refuse a layer that the theorem isn't about: an InvalidArgumentError."""
    if not config.is_plain:
        raise InvalidArgumentError(
            f"Gates are counted for layers without norm, bias and positions; got {config.name}."
        )
    if config.d_model < 2:
        raise InvalidArgumentError(
            "`d_model` must be at least 2; got 1, with which argmax names at most two tokens."
        )


MOST_OBJECTS = 2**31 - 1
MOST_PAIRS = 2**62
# against rounding, in bits: what is allowed stays allowed
ROUNDING = 1e-6


def log2_assignments_held(config: LayerConfig, n_pairs: int, n_objects: int) -> float:
    """Bound the base-2 logarithm of the number of assignments of objects that can be held.

    Of the ``n_objects ** n_pairs`` ways to assign an object to each of some pairs, no layer of this
    size with given W_E, W_Q and W_K holds more, by argmax and hence at any tau, however W_V, W_O
    and W_U are trained. So random objects are held with at most this count's share of all, and with
    k draws of the gates at most k times that.

    For two objects, and pairs that are independent as far as their number allows, it is exact.

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer.
    n_pairs : int
        Number N of pairs (subject, predicate).
    n_objects : int
        Number V of objects that a pair may have, at least 2.

    Returns
    -------
    float
        The least of N log2(V) and four counts in the weights, in bits.

    Raises
    ------
    InvalidArgumentError
        For a layer with norm, bias or positions, or numbers out of their range.

    Examples
    --------
    Of 2^16 assignments of two objects just half, 2^15:

    >>> config = LayerConfig(d_model=4, n_heads=1, d_head_qk=1, d_head_vo=2)
    >>> round(log2_assignments_held(config, 16, 2), 6)
    15.0
    """
    if not config.is_plain:
        raise InvalidArgumentError(
            f"Counts are of layers without norm, bias and positions; got {config.name}."
        )
    n = require_integer("n_pairs", n_pairs, least=0, most=MOST_PAIRS)
    n_objects = require_integer("n_objects", n_objects, least=2, most=MOST_OBJECTS)
    d, heads, m = config.d_model, config.n_heads, n_objects - 1
    n_signs = n * n_objects * m // 2
    logits, stream = min(config.d_head_vo, m), config.d_head_vo
    return min(
        n * math.log2(n_objects),
        _cover(n_signs, min(n, (heads + 1) * d) * m),
        heads * _log2_binomial(d, logits)
        + _warren(n_signs, heads * logits * (d + m - logits) + d * m, 2),
        heads * _log2_binomial(d, stream)
        + _warren(n_signs, heads * stream * (2 * d - stream) + d * m, 3),
        _warren(n_signs, heads * d * d + d * m, 2),
    )


def frozen_gates_most(config: LayerConfig, n_objects: int, share: float = 0.5) -> int:
    """Bound the number of pairs of which a share of all assignments of objects may still be held.

    An upper end: of more pairs, fewer than this share of databases with random objects can be held
    by training W_V, W_O and W_U, if W_E, W_Q and W_K don't depend on the objects. It is no
    statement about layers whose W_E is trained, and a weak one for databases with many objects: a
    layer has d_model weights in W_U for each, so that the bound exceeds d_model (n_objects - 1).

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer.
    n_objects : int
        Number V of objects that a pair may have, at least 2.
    share : float
        Share of the assignments, above 0 and at most 1.

    Returns
    -------
    int
        Number of pairs.

    Raises
    ------
    InvalidArgumentError
        For a layer with norm, bias or positions, or numbers out of their range.

    Examples
    --------
    For two objects 2 (n_heads + 1) d_model:

    >>> config = LayerConfig(d_model=4, n_heads=2, d_head_qk=1, d_head_vo=1)
    >>> frozen_gates_most(config, 2), frozen_gates_most(config, 16)
    (24, 255)
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidArgumentError(f"`share` must be above 0 and at most 1; got {shown(share)}.")
    n_objects = require_integer("n_objects", n_objects, least=2)

    def may_hold(n: int) -> bool:
        lost = n * math.log2(n_objects) - log2_assignments_held(config, n, n_objects)
        return lost <= ROUNDING - math.log2(share)

    # each count is concave in N, in logarithms, and 0 bits are lost at first
    most = 1
    while may_hold(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if may_hold(middle) else (least, middle)
    return least


def _cover(n_planes: int, dimension: int) -> float:
    """log2 of Cover's number of regions of hyperplanes through 0 in general position."""
    n, most = n_planes - 1, dimension - 1
    if most >= n:
        return float(n_planes)
    # the share of all sign vectors is a tail of the binomial distribution
    tail = float(betainc(n - most, most + 1, 0.5))
    if tail > 1e-200:
        return n_planes + math.log2(tail)
    # the tail against its largest term: a geometric series, with most < n / 2 here
    return 1 + _log2_binomial(n, most) + math.log2((n - most + 1) / (n - 2 * most + 1))


def _warren(n_polynomials: int, n_variables: int, degree: int) -> float:
    """log2 of Warren's bound of the number of sign vectors."""
    if n_polynomials < n_variables:
        return float(n_polynomials)
    return n_variables * math.log2(4 * math.e * degree * n_polynomials / n_variables)


def _log2_binomial(n: int, k: int) -> float:
    """log2 of a binomial coefficient."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / math.log(2)


Array = NDArray[np.float64]
# standard deviations of the logits of attention, one a draw: steeper gates differ more between
# pairs, and too steep ones are 0 or 1
STEEPNESS = (4.0, 8.0, 2.0, 16.0, 4.0, 8.0)
# factor on the margin that tau needs, against rounding
SPARE = 1.25


def random_gate_layer(
    db: DatabaseLike, config: LayerConfig, tau: float = 0.99, *, seed: Seed = 0
) -> AttentionLayer:
    """Write facts into W_V, W_O and W_U, with W_E, W_Q and W_K drawn at random.

    It holds every database with these pairs, whatever its objects, since `random_gate_rank` of the
    pairs is their number. W_E is normal, but for the last coordinate of predicates, which is
    positive; W_Q and W_K are normal, and scaled.

    Parameters
    ----------
    db : Database, or what `as_database` takes
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
    from capacity.layer.model.attention_layer import AttentionLayer

    db = require_triples(db, "random_gate_layer(db, config)")
    db.require_functional("Writing facts into weights")
    if not 0.5 < tau < 1:
        raise InvalidArgumentError(f"`tau` must lie strictly between 0.5 and 1; got {tau}.")
    facts = db.token_triples.astype(np.int64)
    rng = generator(seed)
    rank = random_gate_rank(facts[:, :2], config, seed=rng)
    if rank < len(facts):
        raise InvalidArgumentError(
            f"Random gates must allow any objects at all {len(facts):,} pairs; those of "
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
    import torch

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
    import torch

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
