"""The size of databases of facts, and the capacity of attention layers, by tensor rank.

A database of facts (subject, predicate, object) is a 0/1 3-tensor D; a single-layer attention-only
decoder is a 3-tensor L of the same shape. The rank of D measures the size of the database, and the
rank of L the capacity of the layer (L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076).

===========================================  =======================================================
`load`, `Database`                           read facts from RDF or a table, or make them
`database_bounds`                            bounds of the rank without a search
`rank_interval`, `effective_rank_interval`   certified intervals of the rank, the effective rank
`verify`                                     check a certificate, or both ends of an interval
`cp_estimate`                                an estimate of the rank by CP decompositions
`dimension`                                  the dimension that an embedding of a graph needs
`describe`                                   what a graph is made of, and what carries its rank
`LayerConfig`, `AttentionLayer`              an attention layer (extra ``layers``, as all below)
`Recipe`, `train`, `evaluate`                train it on a database, and measure what it recalls
`Progress`, `Seed`                           types of the arguments of that name
===========================================  =======================================================

The rest is in packages: `capacity.tensor` (integer tensors of any order), `capacity.database`
(readers, writers, policies), `capacity.rank` (bounds, certificates, methods), `capacity.stores`
(facts of any size, counted where they are), `capacity.layer` (engines, constructions),
`capacity.embedding` (dimensions of embeddings), `capacity.evaluator` (accuracies, grids, laws),
`capacity.sweep` (thousands of runs), `capacity.transformer` (pretrained models), `capacity.recall`
(facts that a language model knows), `capacity.plots`, `capacity.report` (pages to send to a
colleague), `capacity.testing` (Hypothesis strategies) and `capacity.errors`. Names load on first
use: asking for a rank imports neither torch nor seaborn. The command is ``capacity --help``.

Examples
--------
>>> from capacity import Database, rank_interval
>>> facts = [("Astrid", "born_in", "Singapore"), ("Bernard", "born_in", "Malaysia")]
>>> db = Database.from_triples(facts)
>>> print(rank_interval(db))
[2, 2]
"""

from capacity._version import __version__ as __version__
from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    __file__,
    need_torch=("AttentionLayer", "train"),
    # names of commands whose functions are called otherwise
    elsewhere_as={
        "grid": "capacity.evaluator.accuracy_grid(capacity.sweep.load(folder))",
        "attention": "capacity.transformer.effective_attention(capture(model, inputs))",
        "doctor": "`capacity doctor` in a shell",
    },
)
