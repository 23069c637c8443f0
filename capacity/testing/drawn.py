"""Small random databases, of labels and of RDF terms, and layers with random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from capacity.database.facts import Database
from capacity.database.terms.term import Term, label
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig
from capacity.testing.choices import Choices

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer


# no lone surrogates, which no file holds; no carriage return, which XML rewrites; no NUL
_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff"), max_size=6
)


def labels() -> st.SearchStrategy[Term]:
    """Draw plain labels of table cells, the empty one and ``NA`` among them.

    Returns
    -------
    SearchStrategy of Term
        Terms of kind 'label'.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(labels(), lambda term: term.text == "NA").kind
    'label'
    """
    return st.one_of(st.sampled_from(["", "NA", "null", '"', "'", "a,b", "#"]), _TEXT).map(label)


def rdf_terms(role: str = "object") -> st.SearchStrategy[Term]:
    """Draw IRIs, and literals if they may be objects.

    Blank nodes are omitted, since their names are local to a file.

    Parameters
    ----------
    role : {'subject', 'predicate', 'object'}
        Role of the terms; RDF allows literals as objects alone.

    Returns
    -------
    SearchStrategy of Term
        Terms of kind 'iri' or 'literal'.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(rdf_terms("subject"), lambda term: True).text
    'http://example.org/a0'
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
    """Draw small databases of labels, in which a token may be both subject and object.

    Parameters
    ----------
    functional : bool, optional
        True for functional databases, False for those with a multi-valued pair; both if omitted.
    max_subjects, max_predicates, max_objects, max_triples : int
        Upper bounds of the sizes.

    Returns
    -------
    SearchStrategy of Database
        Databases of at least one fact.

    Raises
    ------
    InvalidArgumentError
        While drawing, if multi-valued pairs need more objects or facts than allowed.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(databases(functional=False), lambda db: True).n_triples
    2
    """
    if functional is False and min(max_objects, max_triples) < 2:
        raise InvalidArgumentError(
            "A multi-valued pair needs `max_objects` and `max_triples` of at least 2."
        )
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
def hard_databases(draw: st.DrawFn) -> Database:
    """Draw small databases whose rank unfoldings alone seldom prove.

    There are three to five subjects and three or four predicates. Either every pair has one of
    three objects, or about half of all triples with three or four objects are facts.

    Returns
    -------
    SearchStrategy of Database
        Databases of at most 80 facts.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(hard_databases(), lambda db: db.is_functional and db.n_pairs >= 9).n_triples
    9
    """
    return hard_database(Choices.drawn(draw))


def hard_database(choose: Choices) -> Database:
    """Draw from `hard_databases` by given choices."""
    k, q = choose.integer(3, 5), choose.integer(3, 4)
    pairs = [(i, j) for i in range(k) for j in range(q)]
    if choose.chance(1, 2):
        n = 3
        rows = [(i, j, choose.integer(0, n - 1)) for i, j in pairs]
    else:
        n = choose.integer(3, 4)
        rows = [(i, j, v) for i, j in pairs for v in range(n) if choose.chance(1, 2)]
    rows = rows or [(0, 0, 0)]
    return Database.from_triples([(f"k{i}", f"q{j}", f"v{v}") for i, j, v in rows], multi="keep")


@st.composite
def rdf_databases(draw: st.DrawFn, *, max_triples: int = 8) -> Database:
    """Draw small databases of IRIs and literals, which every RDF format can hold.

    Parameters
    ----------
    max_triples : int
        Largest number of facts.

    Returns
    -------
    SearchStrategy of Database
        Databases of at least one fact.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(rdf_databases(), lambda db: True).n_triples
    1
    """
    row = st.tuples(rdf_terms("subject"), rdf_terms("predicate"), rdf_terms("object"))
    return Database.from_triples(
        draw(st.lists(row, min_size=1, max_size=max_triples)), multi="keep"
    )


@st.composite
def layer_configs(draw: st.DrawFn, *, max_d_model: int = 6, max_heads: int = 4) -> LayerConfig:
    """Draw sizes of plain layers, with d_head_qk, d_head_vo <= d_model.

    Parameters
    ----------
    max_d_model : int
        Largest dimension of the embeddings.
    max_heads : int
        Largest number of heads.

    Returns
    -------
    SearchStrategy of LayerConfig
        Sizes, without any of the options.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(layer_configs(), lambda config: config.n_heads > 1).name
    'd1-h2-qk1-vo1'
    """
    d_model = draw(st.integers(1, max_d_model))
    head = st.integers(1, d_model)
    return LayerConfig(d_model, draw(st.integers(1, max_heads)), draw(head), draw(head))


@st.composite
def layers(
    draw: st.DrawFn, d_vocab: int, *, configs: st.SearchStrategy[LayerConfig] | None = None
) -> AttentionLayer:
    """Draw layers in float64 with random weights.

    Parameters
    ----------
    d_vocab : int
        Number of tokens.
    configs : SearchStrategy of LayerConfig, optional
        Sizes and options; `layer_configs` with its defaults if omitted.

    Returns
    -------
    SearchStrategy of AttentionLayer
        Layers with the initial weights of random seeds.

    Examples
    --------
    >>> from hypothesis import find
    >>> tuple(find(layers(5), lambda layer: True).W_E.shape)
    (5, 1)
    """
    import torch

    from capacity.layer.model.attention_layer import AttentionLayer

    config = draw(configs or layer_configs())
    return AttentionLayer(config, d_vocab, seed=draw(st.integers(0, 2**32)), dtype=torch.float64)
