"""Sizes of layers and embeddings that would hold a database, as far as the library knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capacity.checks import MAX_SIZE
from capacity.database.facts import Database
from capacity.embedding.results.result import Dimension
from capacity.evaluator.laws.size_law import HeldSize, held_size
from capacity.layer.model.config import LayerConfig, layer_rank_assumed, query_key_config

# of the layer to begin with
MOST_HEADS = 6
# of the layers of four heads that the law of reach was fitted to, and their smallest databases
WIDTHS, LEAST_FORETOLD = range(4, 9), 34
# families whose dimension is that of the vectors of things; the others are parts of networks
_EMBEDDINGS = ("CP", "DistMult", "ComplEx", "SimplE", "RESCAL", "TuckER")


@dataclass(frozen=True)
class HoldingLayer:
    """Sizes of layers of attention that would hold a database.

    Attributes
    ----------
    written : LayerConfig or None
        That of `capacity.layer.store_in_query_key`; None for multi-valued facts, which none holds.
    count : int
        The paper's count, a bound of the rank.
    start : LayerConfig or None
        Sizes to begin training with; None where a layer can't be as large, or `written` is None.
    necessary : int or None
        A lower bound of d_model; None if it isn't known.
    foretold : tuple of LayerConfig and HeldSize, or None
        The smallest layer, of four heads with d_head_qk = 2 and d_head_vo = 1, as the experiment
        had them with d_model from 4 to 8, of which at least one of eight starts by the best recipe
        is predicted to hold as many facts (`capacity.evaluator.held_size`); None where the law was
        fitted to no layer as large, or to no databases as small.
    """

    written: LayerConfig | None
    count: int
    start: LayerConfig | None
    necessary: int | None
    foretold: tuple[LayerConfig, HeldSize] | None = None

    @property
    def start_rank(self) -> int | None:
        """The rank that the paper assumes of `start` (equation (9))."""
        return None if self.start is None else layer_rank_assumed(self.start)


def holding_layer(db: Database, count: int, found: Sequence[Dimension]) -> HoldingLayer:
    """Find the sizes of layers that would hold a database.

    Parameters
    ----------
    db : Database
        Facts of arity 3.
    count : int
        The paper's count of them (`capacity.rank.paper_bound`).
    found : sequence of Dimension
        Dimensions for rankings; of the family ``attention``, the lower bound is taken.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> found = holding_layer(db, 3, ())
    >>> found.written.name, found.start.name
    ('d3-h1-qk2-vo1', 'd2-h1-qk2-vo1')
    """
    needs = next((one.necessary for one in found if one.model == "attention"), None)
    if not db.is_functional:
        return HoldingLayer(None, count, None, needs)
    return HoldingLayer(query_key_config(db), count, _start(count), needs, _foretold(db.n_triples))


def _start(count: int) -> LayerConfig | None:
    """A layer of several heads with d_model + n_heads d_head_vo about the count; None if too large.

    Training often fails with one head where it succeeds with several (experiments/facts).
    """
    # with fewer facts, as many heads as leave d_model = 2
    n_heads = min(MOST_HEADS, max(1, count // 2 - 1))
    d_model = max(2, -(-count // (n_heads + 1)))
    inner = min(d_model, max(1, -(-(count - d_model) // n_heads)))
    if d_model > MAX_SIZE:
        return None
    return LayerConfig(d_model, n_heads, min(2, d_model), inner)


def _foretold(n_triples: int) -> tuple[LayerConfig, HeldSize] | None:
    """The smallest layer within the fit that is predicted to hold as many triples by reach."""
    layers = [LayerConfig(d_model, 4, 2, 1) for d_model in WIDTHS]
    sizes = [(layer, held_size(layer, by="reach")) for layer in layers]
    if n_triples < LEAST_FORETOLD:
        return None
    return next(((layer, size) for layer, size in sizes if size.triples >= n_triples), None)


def smallest_embedding(found: Sequence[Dimension]) -> Dimension | None:
    """Choose the family of embeddings whose proved dimension is smallest; None if there is none."""
    known = [one for one in found if one.model in _EMBEDDINGS and one.sufficient is not None]
    return min(
        known,
        key=lambda one: (one.sufficient or 0, _EMBEDDINGS.index(one.model)),
        default=None,
    )
