"""Bits of a database that a layer stores, in two conventions.

The object of a fact (k, q) -> v could be any of the set V_q of objects that predicate q has in the
database. A code that uses only V_q needs log2 |V_q| bits for it. A code that uses the layer needs
-log2 p(v | k, q), with its probability over all tokens. The difference,

    gain(k, q, v) = log2 |V_q| + log2 p(v | k, q),

is at most log2 |V_q|, is 0 if the layer knows V_q alone and spreads its probability evenly over it,
and is negative if it does worse. Two totals over the facts of a database are in use:

* *averaged*: max(0, sum of gain), after Allen-Zhu & Li 2024, who put the average loss of a model
  into a formula for the whole data set, so that facts that are recalled wrongly count against the
  others;
* *clipped*: the sum of max(0, gain), after Morris et al. 2025, for whom what is memorised of a
  datum is a difference of two code lengths of which the second may choose the shorter code, so that
  it is never negative.

They are equal if no gain is negative; otherwise clipped is the larger one. Both are at most the sum
of log2 |V_q|, the *content*.

This is an adaptation to facts. Allen-Zhu & Li also count the names of the subjects, and values of
several tokens, as knowledge; here subjects, predicates and the sets V_q are given, and the choice
of the object is all that counts. Morris et al. measure whole sequences of random tokens, each of
which is one datum; here a fact is. In both, the sequences are drawn evenly, so that their content
is an entropy; a database isn't drawn, and log2 |V_q| is the length of a code that uses nothing but
V_q. If the objects of a predicate have unequal frequencies or follow a rule, a shorter code exists,
and a layer that has learnt that alone has a positive gain.

References
----------
Z. Allen-Zhu, Y. Li, Physics of language models: Part 3.3, knowledge capacity scaling laws, 2024,
arXiv 2404.05405 (about 2 bits a parameter); J. X. Morris et al., How much do language models
memorize?, 2025, arXiv 2505.24832 (about 3.6).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError
from capacity.layer.recall import pair_logits

if TYPE_CHECKING:
    from capacity.layer.model.decoder import AnyLayer


@dataclass(frozen=True)
class StoredBits:
    """Bits of a database that a layer stores, and how many numbers it has to do so.

    Attributes
    ----------
    averaged : float
        max(0, sum of the gains of all facts), in bits, after Allen-Zhu & Li.
    clipped : float
        Sum of the positive gains, in bits, after Morris et al.
    content : float
        Sum of log2 |V_q| over the facts, in bits: the most that can be stored.
    n_facts : int
        Number of facts.
    n_parameters : int
        Number of weights of the heads, as the paper counts.
    n_all_parameters : int
        Number of all weights, embeddings and unembeddings (and biases, norms and positions)
        included.
    """

    averaged: float
    clipped: float
    content: float
    n_facts: int
    n_parameters: int
    n_all_parameters: int

    @property
    def averaged_per_parameter(self) -> float:
        """Averaged bits for each weight of the layer."""
        return self.averaged / self.n_all_parameters

    @property
    def clipped_per_parameter(self) -> float:
        """Clipped bits for each weight of the layer."""
        return self.clipped / self.n_all_parameters

    @property
    def averaged_per_head_parameter(self) -> float:
        """Averaged bits for each weight of the heads; embeddings aren't counted."""
        return self.averaged / self.n_parameters

    @property
    def clipped_per_head_parameter(self) -> float:
        """Clipped bits for each weight of the heads; embeddings aren't counted."""
        return self.clipped / self.n_parameters

    def to_row(self) -> dict[str, float]:
        """A row of a table of layers, with a column for each number.

        Returns
        -------
        dict of str to float
            The attributes and the four ratios; the names of all but the numbers of parameters and
            facts begin with ``bits_``.

        Examples
        --------
        >>> sorted(StoredBits(6.0, 7.0, 8.0, 4, 10, 20).to_row())[:3]
        ['bits_averaged', 'bits_averaged_per_head_parameter', 'bits_averaged_per_parameter']
        """
        ratios = {
            name: getattr(self, name)
            for name in (
                "averaged_per_parameter", "clipped_per_parameter",
                "averaged_per_head_parameter", "clipped_per_head_parameter",
            )
        }  # fmt: skip
        return {
            name if name.startswith("n_") else f"bits_{name}": value
            for name, value in {**asdict(self), **ratios}.items()
        }


def stored_bits(layer: AnyLayer, db: DatabaseLike) -> StoredBits:
    """Measure how many bits of a database are stored by a layer, in both conventions.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Functional database.

    Returns
    -------
    StoredBits
        Totals in bits, and bits a parameter; the totals are NaN if a logit isn't finite.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or no facts.

    Examples
    --------
    The predicate p has two objects, one bit per fact, and q has one:

    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> bits = stored_bits(store_in_query_key(db, 0.99), db)
    >>> bits.content, round(bits.averaged, 1), round(bits.clipped, 1)
    (2.0, 2.0, 2.0)
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    db.require_functional("Stored bits")
    facts = db.token_triples
    if not len(facts):
        raise InvalidArgumentError("There must be a fact to store; got none.")
    _, q, v = db.triples.T
    # distinct (q, v) pairs, counted by q
    n_objects = np.bincount(np.unique(np.stack([q, v]), axis=1)[0], minlength=len(db.predicate_ids))
    choices = np.log2(n_objects[q])
    gains = choices + _log2_probabilities(layer, db)
    sizes = layer.config
    return StoredBits(
        averaged=math.nan if np.isnan(gains).any() else max(0.0, float(gains.sum())),
        clipped=float(np.maximum(gains, 0).sum()),
        content=float(choices.sum()),
        n_facts=len(facts),
        n_parameters=sizes.n_parameters,
        n_all_parameters=sum(parameter.numel() for parameter in layer.parameters()),
    )


def _log2_probabilities(layer: AnyLayer, db: Database) -> np.ndarray:
    """Each fact's log2 p(v | k, q) over all tokens; all NaN if a logit isn't finite."""
    z = pair_logits(layer, db.token_triples[:, :2])
    if not np.isfinite(z).all():
        return np.full(len(z), np.nan)
    right = z[np.arange(len(z)), db.token_triples[:, 2]]
    top = z.max(axis=1)
    return (right - top - np.log(np.exp(z - top[:, None]).sum(axis=1))) / math.log(2)
