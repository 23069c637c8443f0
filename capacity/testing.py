"""Hypothesis strategies for databases, layers and tensors of known rank (extra ``testing``).

The project's own property tests draw from these; users can hold their own bounds and layers against
the same inputs.

Examples
--------
>>> from hypothesis import given
>>> from capacity.rank import paper_bound, rank_interval
>>> @given(databases())
... def upper_bound_never_exceeds_the_papers(db):
...     assert rank_interval(db).upper.value <= paper_bound(db)
>>> upper_bound_never_exceeds_the_papers()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.terms import Term, label
from capacity.layer.config import LayerConfig

if TYPE_CHECKING:
    from capacity.layer.attention import AttentionLayer

# no lone surrogates, which no file holds; no carriage return, which XML rewrites; no NUL
_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff"), max_size=6
)


def labels() -> st.SearchStrategy[Term]:
    """Plain table labels, the empty one and ``NA`` among them."""
    return st.one_of(st.sampled_from(["", "NA", "null", '"', "'", "a,b", "#"]), _TEXT).map(label)


def rdf_terms(role: str = "object") -> st.SearchStrategy[Term]:
    """IRIs and, in the place of an object, literals.

    Parameters
    ----------
    role : {'subject', 'predicate', 'object'}
        What RDF allows there. Blank nodes are left out: their names are a file's own.
    """
    iris = st.integers(0, 9).map(lambda i: Term("iri", f"http://example.org/{'abc'[i % 3]}{i}"))
    if role != "object":
        return iris
    xsd = "http://www.w3.org/2001/XMLSchema#"
    literals = st.one_of(
        _TEXT.map(lambda text: Term("literal", text)),
        st.tuples(_TEXT, st.sampled_from(["en", "fr-be"])).map(
            lambda pair: Term("literal", pair[0], language=pair[1])
        ),
        st.tuples(st.sampled_from(["1", "01", "+1"]), st.sampled_from(["integer", "decimal"])).map(
            lambda pair: Term("literal", pair[0], xsd + pair[1])
        ),
    )
    return st.one_of(iris, literals)


@st.composite
def databases(
    draw: st.DrawFn,
    *,
    functional: bool | None = None,
    max_subjects: int = 5,
    max_predicates: int = 4,
    max_objects: int = 5,
    max_triples: int = 20,
) -> Database:
    """Small databases of labels.

    Parameters
    ----------
    functional : bool, optional
        Only functional ones, or only those with a multi-valued pair; left out: both.
    max_subjects, max_predicates, max_objects, max_triples : int
        Upper bounds of the sizes. A token may have several roles.
    """
    if functional is False and min(max_objects, max_triples) < 2:
        raise ValueError("A multi-valued pair needs `max_objects` and `max_triples` of at least 2.")
    # subjects and objects share the names t0, t1, ..., so that chains occur
    k = st.integers(0, max_subjects - 1)
    q = st.integers(0, max_predicates - 1)
    v = st.integers(0, max_objects - 1)
    if functional:
        pairs = draw(st.dictionaries(st.tuples(k, q), v, min_size=1, max_size=max_triples))
        rows = [(*pair, value) for pair, value in pairs.items()]
    else:
        rows = draw(st.lists(st.tuples(k, q, v), min_size=1, max_size=max_triples, unique=True))
        if functional is False:
            first = rows[0]
            rows = [*rows[: max_triples - 1], (first[0], first[1], (first[2] + 1) % max_objects)]
    return Database.from_triples([(f"t{a}", f"p{b}", f"t{c}") for a, b, c in rows], multi="keep")


@st.composite
def rdf_databases(draw: st.DrawFn, *, max_triples: int = 8) -> Database:
    """Small databases of IRIs and literals, which every RDF format can hold."""
    row = st.tuples(rdf_terms("subject"), rdf_terms("predicate"), rdf_terms("object"))
    return Database.from_triples(
        draw(st.lists(row, min_size=1, max_size=max_triples)), multi="keep"
    )


@st.composite
def layer_configs(draw: st.DrawFn, *, max_d_model: int = 6, max_heads: int = 4) -> LayerConfig:
    """Sizes of the paper's layers: d_head_qk, d_head_vo <= d_model."""
    d_model = draw(st.integers(1, max_d_model))
    head = st.integers(1, d_model)
    return LayerConfig(d_model, draw(st.integers(1, max_heads)), draw(head), draw(head))


@st.composite
def layers(
    draw: st.DrawFn, d_vocab: int, *, configs: st.SearchStrategy[LayerConfig] | None = None
) -> AttentionLayer:
    """Layers in float64 with random weights, for `d_vocab` tokens."""
    import torch

    from capacity.layer.attention import AttentionLayer

    config = draw(configs or layer_configs())
    return AttentionLayer(config, d_vocab, seed=draw(st.integers(0, 2**32)), dtype=torch.float64)


@dataclass(frozen=True)
class KnownRank:
    """An integer tensor whose rank is known.

    Attributes
    ----------
    tensor : ndarray of int64, shape (n0, n1, n2)
    rank : int
    factors : tuple of three ndarrays, shapes (n0, rank), (n1, rank), (n2, rank)
        ``tensor[i, j, k] = sum_r a[i, r] b[j, r] c[k, r]``.
    """

    tensor: NDArray[np.int64]
    rank: int
    factors: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@st.composite
def tensors_of_known_rank(draw: st.DrawFn, *, max_dim: int = 5) -> KnownRank:
    """Integer 3-tensors of known rank over the rationals and over the reals.

    The rank is R since there is a decomposition in R terms, and an unfolding of rank R: a and b
    have independent columns (each holds a unit triangular block of R rows) and c no zero column,
    so the columns b_r (x) c_r are independent, and a times their transpose, an unfolding, has rank
    R. The modes come in any order.
    """
    dims: Any = [draw(st.integers(1, max_dim)) for _ in range(3)]
    order = draw(st.permutations(range(3)))
    rank = draw(st.integers(1, min(dims[order[0]], dims[order[1]])))
    entry = st.integers(-2, 2)

    def matrix(n: int) -> NDArray[np.int64]:
        values = draw(st.lists(entry, min_size=n * rank, max_size=n * rank))
        return np.array(values, dtype=np.int64).reshape(n, rank)

    factors = [matrix(n) for n in dims]
    for mode in order[:2]:
        block = factors[mode][:rank]
        factors[mode][:rank] = np.triu(block, 1) + np.eye(rank, dtype=np.int64)
    third = factors[order[2]]
    third[0, ~third.any(axis=0)] = 1
    a, b, c = factors
    return KnownRank(np.einsum("ir,jr,kr->ijk", a, b, c), rank, (a, b, c))
