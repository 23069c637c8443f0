"""The rank of what random gates see: a lower end of the facts held with frozen gates. No torch.

F is the matrix with a row (e_q, psi_1, ..., psi_H) for each pair (k, q), of (n_heads + 1) d_model
columns. Every assignment of objects to the pairs can be held if F has as many independent rows as
there are pairs; and, for two objects or more, only if it has. Subtract the columns of e_q from
those of each head: the row becomes (e_q, a_1 (e_k - e_q), ..., a_H (e_k - e_q)).

* Let the gates be indeterminates. By Laplace's expansion along the blocks of columns, a minor is a
  sum over the ways to split its pairs among the blocks, and different ways have different monomials
  in the gates. So pairs are independent if and only if they split so that each part is independent
  in its block. For embeddings in general position those are d_model pairs at most, of different
  predicates in the first block, and without a cycle, as edges from subject to predicate, in
  the block of a head.
* The true gates of almost all W_E, W_Q and W_K reach that rank, for d_model >= 2 and any d_head_qk:
  along a ray t W_QK they are sigmoid(t theta) with numbers theta between which no integer relation
  holds, and such functions of t are algebraically independent.
"""

from __future__ import annotations

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, generator, require_affordable, shown
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig

# sums of products of two residues fit 64 bits
PRIME = 2**31 - 1
# bytes of an entry on its way into flint, in numbers of 8 bytes
ENTRY = 8


def random_gate_facts(config: LayerConfig) -> int:
    """Number of pairs that get any objects whatever at random gates, if the pairs allow it.

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
    """Largest number of these pairs that get any objects whatever at random gates.

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
            f"the shape {shown(pairs.shape)} of {pairs.dtype}. Say db.token_triples[:, :2]."
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
