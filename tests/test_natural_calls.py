"""Calls that people write before they read anything, each of which answers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rdflib
import scipy.sparse
import torch

import capacity
from capacity import Database, rank_interval, verify
from capacity.database import (
    Converter,
    as_database,
    register_database_converter,
    unregister_database_converter,
)
from capacity.errors import CapacityError, MultiValuedWarning
from capacity.rank import CertificatePair
from capacity.tensor import (
    as_tensor,
    matrix_multiplication,
    register_tensor_converter,
    unregister_tensor_converter,
    w_state,
    write_tensor,
)

# a checker of types knows no package that is called
lib: Any = capacity

# the rank of the W state is 3 (its border rank is 2), and that of a 2 x 2 x 2 product is 7, which
# quick bounds don't reach from both sides
CLOSED = rank_interval(w_state(3))
OPEN = rank_interval(matrix_multiplication(2, 2, 3))

# intervals


def test_the_ends_of_an_interval_are_integers() -> None:
    assert (type(CLOSED.lower), type(CLOSED.upper)) == (int, int)
    assert CLOSED.lower == 3
    assert CLOSED.upper <= 7
    assert OPEN.lower < OPEN.upper


def test_an_interval_unpacks_and_contains_and_formats() -> None:
    lower, upper = OPEN
    assert (lower, upper) == (OPEN.lower, OPEN.upper) == tuple(OPEN)
    assert [n in OPEN for n in (lower - 1, lower, upper, upper + 1)] == [False, True, True, False]
    assert f"{CLOSED}" == str(CLOSED) == "[3, 3]"
    assert f"{CLOSED:>4}" == "[   3,    3]"
    assert OPEN.to_dict()["lower"] == lower


def test_intervals_with_equal_ends_are_equal() -> None:
    again = rank_interval(w_state(3))
    assert again == CLOSED
    assert CLOSED == (3, 3)
    assert OPEN not in (CLOSED, (3, 3))
    assert {again, CLOSED, (3, 3)} == {CLOSED}
    assert CLOSED != "[3, 3]"


@pytest.mark.parametrize("number", [3, 4, 3.0, True])
def test_an_interval_is_not_compared_with_a_number_in_silence(number: float) -> None:
    with pytest.raises(CapacityError, match=rf"`{number} in interval`"):
        assert number == CLOSED


def test_proofs_of_the_ends_are_verified_alone_and_together() -> None:
    lower, upper = CLOSED.certificates
    assert (lower.value, upper.value) == tuple(CLOSED)
    for proof in (CLOSED, CLOSED.certificates, lower, upper, [upper, lower]):
        assert verify(proof, w_state(3))
    with pytest.raises(CapacityError, match="of a lower and of an upper bound"):
        verify(CertificatePair(upper, lower), w_state(3))


def test_an_interval_is_saved_and_loaded() -> None:
    db = Database.from_triples([("Ada", "born in", "London"), ("Alan", "born in", "London")])
    assert capacity.verify(capacity.rank_interval(db), db)


# what holds facts, of any library

ROWS = [("Ada", "born in", "London"), ("Alan", "born in", "London"), ("Ada", "knows", "Alan")]
DB = Database.from_triples(ROWS)
NAMES = ["subject", "predicate", "object"]


def _store(kind: Any) -> Any:
    import pyoxigraph as ox

    return kind(
        [ox.Quad(*(ox.NamedNode(f"x:{cell.replace(' ', '_')}") for cell in row)) for row in ROWS]
    )


def _pykeen() -> Any:
    from pykeen.datasets.base import EagerDataset

    factory = capacity.database.to_pykeen(DB)
    return EagerDataset(factory, factory)


def _rdflib(kind: str) -> Any:
    import rdflib

    graph: Any = rdflib.Graph() if kind == "Graph" else rdflib.Dataset()
    into: Any = graph if kind == "Graph" else graph.graph("x:g")
    for row in ROWS:
        into.add(tuple(rdflib.URIRef(f"x:{cell.replace(' ', '_')}") for cell in row))
    return graph


def _written(folder: Path) -> Path:
    capacity.database.write(DB, folder / "facts.tsv")
    return folder / "facts.tsv"


def _opened(folder: Path) -> Any:
    return io.BytesIO(_written(folder).read_bytes())


# by name, what makes such an object, with a folder to write to
FORMS: dict[str, Callable[[Path], Any]] = {
    "database": lambda folder: DB,
    "path": _written,
    "text of a path": lambda folder: str(_written(folder)),
    "paths": lambda folder: [_written(folder)],
    "open file": _opened,
    "list": lambda folder: ROWS,
    "lists": lambda folder: [list(row) for row in ROWS],
    "set": lambda folder: set(ROWS),
    "generator": lambda folder: (row for row in ROWS),
    "array of text": lambda folder: np.array(ROWS),
    "array of objects": lambda folder: np.array(ROWS, object),
    "DataFrame": lambda folder: pd.DataFrame(ROWS, columns=pd.Index(NAMES)),
    "DataFrame without names": lambda folder: pd.DataFrame(ROWS),
    "pyarrow": lambda folder: pa.table(dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))),
    "networkx": lambda folder: capacity.database.to_networkx(DB),
    "PyKEEN": lambda folder: capacity.database.to_pykeen(DB),
    "data set of PyKEEN": lambda folder: _pykeen(),
}
# their cells are IRIs
RDF = {
    "Graph of rdflib": lambda folder: _rdflib("Graph"),
    "Dataset of rdflib": lambda folder: _rdflib("Dataset"),
    "Store of pyoxigraph": lambda folder: _store(lambda quads: _filled(quads)),
    "Dataset of pyoxigraph": lambda folder: _store(lambda quads: _dataset(quads)),
}


def _filled(quads: Any) -> Any:
    import pyoxigraph as ox

    store = ox.Store()
    store.extend(quads)
    return store


def _dataset(quads: Any) -> Any:
    import pyoxigraph as ox

    return ox.Dataset(quads)


@pytest.mark.parametrize("name", [*FORMS, *RDF])
def test_every_form_of_facts_is_the_same_database(name: str, tmp_path: Path) -> None:
    db = as_database({**FORMS, **RDF}[name](tmp_path))
    if name in RDF:
        assert {tuple(token.text for token in row) for row in triples_of(db)} == {
            tuple(f"x:{cell.replace(' ', '_')}" for cell in row) for row in ROWS
        }
        assert {token.kind for token in db.tokens} == {"iri"}
    else:
        assert db == DB


def triples_of(db: Database) -> list[tuple[Any, ...]]:
    return [tuple(db.tokens[i] for i in row) for row in db.token_triples.tolist()]


@pytest.mark.parametrize("numbers", [np.array, torch.tensor, list], ids=["array", "torch", "list"])
def test_integers_are_labels_of_their_digits(numbers: Callable[[Any], Any]) -> None:
    rows = [[0, 7, 1], [10, 7, -2]]
    assert as_database(numbers(rows)) == Database.from_triples([("0", "7", "1"), ("10", "7", "-2")])
    assert as_database(torch.tensor(rows, dtype=torch.int32)).n_facts == 2


def test_zeros_and_ones_with_three_modes_are_the_tensor_of_facts() -> None:
    w = w_state(3).to_numpy()
    assert rank_interval(as_database(w)) == rank_interval(w) == (3, 3)
    assert as_database(torch.tensor(w)) == capacity.database.from_numpy(w)


@pytest.mark.parametrize(
    "wrong", [7, None, b"a p x", {"a": 1}, "", 0.5, np.ones((2, 4), int), np.ones((2, 3)),
              np.ones((2, 3), bool), w_state(3), torch.nn.Linear(2, 2), [], [("a", "p")], [7, 8],
              ("a", "p", "x"), [(True, "p", "x")], [(0.5, "p", "x")], rank_interval],
    ids=lambda wrong: str(wrong)[:20].partition(" at ")[0],
)  # fmt: skip
def test_what_holds_no_facts_is_refused_in_words(wrong: Any) -> None:
    with pytest.raises(CapacityError, match=r"[a-z]+ [a-z]+ [a-z]+"):
        as_database(wrong)


WIDE = {"name": ["Ann", "Bob"], "likes": ["tea, jam", "tea"], "born": ["1980", None]}
# Ann likes tea and jam and was born, Bob likes tea
WIDE_FACTS = {("Ann", "likes", "tea"), ("Ann", "likes", "jam"), ("Ann", "born", "1980"),
              ("Bob", "likes", "tea")}  # fmt: skip


def _wide(folder: Path, name: str) -> Path:
    frame = pd.DataFrame(WIDE)
    if name == "csv":
        frame.to_csv(folder / "wide.csv", index=False)
    else:
        frame.to_json(folder / "wide.json", orient="records")
    return folder / f"wide.{name}"


TABLES: dict[str, Callable[[Path], Any]] = {
    "DataFrame": lambda folder: pd.DataFrame(WIDE),
    "DataFrame with an index": lambda folder: pd.DataFrame(WIDE).set_index("name"),
    "pyarrow": lambda folder: pa.table(WIDE),
    "path": lambda folder: _wide(folder, "csv"),
    "paths": lambda folder: [_wide(folder, "csv")],
    "records": lambda folder: str(_wide(folder, "json")),
}


@pytest.mark.parametrize("name", TABLES)
def test_options_go_to_what_reads_a_table(name: str, tmp_path: Path) -> None:
    db = as_database(TABLES[name](tmp_path), table="wide", split=",", multi="keep")
    assert {tuple(map(str, fact)) for fact in db} == WIDE_FACTS
    # subjects of another column, which stands anywhere
    if "index" not in name:
        given = TABLES[name](tmp_path)
        db = as_database(given, table="wide", columns=["likes", "name"], multi="keep")
        assert {tuple(map(str, fact)) for fact in db} == {
            ("tea, jam", "name", "Ann"), ("tea", "name", "Bob"),
        }  # fmt: skip


def test_options_go_to_graphs_and_files_of_rdf(tmp_path: Path) -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", relation="knows")
    assert str(as_database(graph, predicate="relation")[0][1]) == "knows"
    table = io.BytesIO(_wide(tmp_path, "csv").read_bytes())
    options = {"format": "csv", "table": "wide", "split": ","}
    assert as_database(table, multi="keep", **options).n_facts == 4
    (tmp_path / "g.nq").write_text("<x:a> <x:p> <x:b> <x:g> .\n<x:a> <x:p> <x:c> <x:h> .\n")
    assert as_database(tmp_path / "g.nq", graph="x:g").n_facts == 1
    assert as_database(tmp_path / "g.nq", exclude=[], multi="first").n_facts == 1
    dataset = rdflib.Dataset()
    for name, thing in (("x:g", "x:b"), ("x:h", "x:c")):
        row = (rdflib.URIRef("x:a"), rdflib.URIRef("x:p"), rdflib.URIRef(thing))
        dataset.graph(rdflib.URIRef(name)).add(row)
    assert as_database(dataset, graph="x:h").n_facts == 1


@pytest.mark.parametrize(
    ("facts", "options", "said"),
    [
        (DB, {"table": "wide"}, "`table`.*already"),
        (ROWS, {"table": "wide"}, r"three cells.*`table`.*DataFrame"),
        (np.array(ROWS), {"columns": [0]}, "`columns`.*`array` has none"),
        (pd.DataFrame(WIDE), {"tabel": "wide"}, r"`tabel`.*table, terms.*Did you mean `table`\?"),
        (pd.DataFrame(WIDE), {"form": "wide"}, "`form`.*DataFrame.* has table, terms"),
        (pd.DataFrame(WIDE), {"table": "broad"}, "`table`.*wide"),
        ("none.csv", {"tables": "wide"}, r"`tables`.*`file` has.*Did you mean `table`\?"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_option_of_no_use_is_named(facts: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError, match=f"(?s){said}"):
        as_database(facts, **options)


def test_options_go_past_a_converter_that_has_none() -> None:
    class Frames:
        pass

    register_database_converter(Converter("frames", (Frames,), lambda _: pd.DataFrame(WIDE)))
    try:
        assert as_database(Frames(), table="wide", split=",", multi="keep").n_facts == 4
        with pytest.raises(CapacityError, match="`tabel`"):
            as_database(Frames(), tabel="wide")
    finally:
        unregister_database_converter("frames")


def test_a_policy_is_applied_to_facts_of_any_form() -> None:
    rows = [*ROWS, ("Ada", "born in", "Paris")]
    with pytest.warns(MultiValuedWarning):
        assert as_database(rows).multi == "keep"
    for form in (rows, pd.DataFrame(rows), Database.from_triples(rows, multi="keep")):
        assert as_database(form, multi="drop-pair").n_facts == 2
    # functions of facts keep all, and say nothing
    assert rank_interval(rows) == rank_interval(as_database(rows, multi="keep"))


def _layer(db: Any = DB) -> Any:
    return capacity.AttentionLayer(capacity.LayerConfig(2, 1, 1, 1), as_database(db).n_tokens)


# every public function of facts that needs no more than them, a layer or a path
FUNCTIONS: dict[str, Callable[[Any, Path], object]] = {
    "rank_interval": lambda facts, _: capacity.rank_interval(facts),
    "effective_rank_interval": lambda facts, _: capacity.effective_rank_interval(facts),
    "database_bounds": lambda facts, _: capacity.database_bounds(facts),
    "paper_bound": lambda facts, _: capacity.rank.paper_bound(facts),
    "unfolding_rank": lambda facts, _: capacity.rank.unfolding_rank(facts, 0),
    "slice_rank_sum": lambda facts, _: capacity.rank.slice_rank_sum(facts, 0),
    "RankAnalysis": lambda facts, _: capacity.rank.RankAnalysis(facts).rank,
    "verify": lambda facts, _: capacity.verify(capacity.rank_interval(DB), facts),
    "verify_decomposition": lambda facts, _: capacity.rank.verify_decomposition(
        facts, capacity.rank_interval(DB).decomposition()
    ),
    "concise_core": lambda facts, _: capacity.rank.concise_core(facts).tensor.shape,
    "cp_estimate": lambda facts, _: capacity.cp_estimate(facts).rank,
    "numerical_rank_estimates": lambda facts, _: capacity.rank.numerical_rank_estimates(facts),
    "describe": lambda facts, _: str(capacity.rank.describe(facts)),
    "dimension": lambda facts, _: str(capacity.dimension(facts, "CP", witness=False)),
    "dimensions": lambda facts, _: len(capacity.embedding.dimensions(facts, ["CP"], witness=False)),
    "write": lambda facts, path: capacity.database.write(facts, path / "out.nt", format="tsv"),
    "to_pandas": lambda facts, _: capacity.database.to_pandas(facts).to_csv(),
    "to_networkx": lambda facts, _: capacity.database.to_networkx(facts).number_of_edges(),
    "description_length": lambda facts, _: capacity.database.description_length(facts).bits,
    "object_entropy": lambda facts, _: capacity.database.object_entropy(facts),
    "train": lambda facts, _: capacity.train(_layer(), facts, capacity.Recipe(epochs=2)).loss,
    "train_many": lambda facts, _: [
        one.loss
        for one in capacity.layer.train_many(
            [(_layer(), facts), (_layer(), facts)], capacity.Recipe(epochs=2)
        )
    ],
    "evaluate": lambda facts, _: capacity.evaluate(_layer(), facts),
    "memorises": lambda facts, _: capacity.evaluator.memorises(_layer(), facts, 0.5),
    "fact_table": lambda facts, _: capacity.evaluator.fact_table(_layer(), facts).to_csv(),
    "stored_bits": lambda facts, _: capacity.evaluator.stored_bits(_layer(), facts),
    "certified_recall": lambda facts, _: (
        capacity.evaluator.certified_recall(_layer(), facts, 0.6).n_proved
    ),
    "nonsense_pairs": lambda facts, _: capacity.evaluator.nonsense_pairs(facts).tolist(),
    "decoded_facts": lambda facts, _: str(capacity.evaluator.decoded_facts(_layer(), facts, 0.5)),
    "circuit_tables": lambda facts, _: len(capacity.evaluator.circuit_tables(_layer(), facts)),
    "layer_tensor": lambda facts, _: capacity.layer.layer_tensor(_layer(), facts).L.shape,
    "store_in_query_key": lambda facts, _: capacity.layer.store_in_query_key(facts).d_vocab,
    "database_report": lambda facts, _: len(capacity.report.database_report(facts)),
}


class Edges:
    """What another package has."""

    def __init__(self) -> None:
        self.rows = list(ROWS)


@pytest.fixture
def edges() -> Iterator[Edges]:
    kind = Converter("edges", (Edges,), lambda edges: iter(edges.rows))
    register_database_converter(kind)
    yield Edges()
    unregister_database_converter("edges")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_form_from_outside_is_taken_by_every_function(
    name: str, edges: Edges, tmp_path: Path
) -> None:
    function = FUNCTIONS[name]
    assert same(function(edges, tmp_path), function(DB, tmp_path))
    # facts that can be read only once are read once
    assert same(function(iter(ROWS), tmp_path), function(DB, tmp_path))


def same(one: object, other: object) -> bool:
    return repr(one) == repr(other)


def test_a_form_has_one_converter_and_a_name_of_its_own(edges: Edges) -> None:
    with pytest.raises(CapacityError, match="a name of its own"):
        register_database_converter(Converter("edges", (list,), list))
    with pytest.raises(CapacityError, match="must be a `Converter`"):
        register_database_converter(list)  # type: ignore[arg-type]
    with pytest.raises(CapacityError, match="There are edges, file"):
        unregister_database_converter("nodes")


def test_a_converter_that_gives_its_own_kind_back_is_refused() -> None:
    class Loop:
        pass

    register_database_converter(Converter("loop", (Loop,), lambda one: one))
    try:
        with pytest.raises(CapacityError, match="needs a Database"):
            as_database(Loop())
    finally:
        unregister_database_converter("loop")


# tensors, of any library

GHZ = [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]  # rank 2: two slices of rank 1 that aren't multiples


def _tensors() -> dict[str, Any]:
    from tensorly.cp_tensor import CPTensor

    identity = np.eye(2)
    return {
        "lists": GHZ,
        "tuples": tuple(tuple(map(tuple, slice_)) for slice_ in GHZ),
        "array": np.array(GHZ),
        "bools": np.array(GHZ, bool),
        "floats": np.array(GHZ, float),
        "fractions": np.array(GHZ, object) * Fraction(1),
        "torch": torch.tensor(GHZ),
        "torch floats": torch.tensor(GHZ, dtype=torch.float32, requires_grad=True),
        "sparse torch": torch.tensor(GHZ).to_sparse(),
        "tensorly": CPTensor((np.ones(2), [identity, identity, identity])),
        "SparseTensor": as_tensor(GHZ),
    }


@pytest.mark.parametrize("name", _tensors())
def test_every_form_of_a_tensor_is_the_same(name: str, tmp_path: Path) -> None:
    tensor = _tensors()[name]
    assert as_tensor(tensor) == as_tensor(GHZ)
    interval = rank_interval(tensor)
    assert interval == (2, 2)
    assert verify(interval, tensor)
    assert capacity.cp_estimate(tensor).rank == 2
    write_tensor(as_tensor(tensor), tmp_path / "T.npy")
    assert rank_interval(tmp_path / "T.npy") == rank_interval(str(tmp_path / "T.npy")) == (2, 2)


def test_a_sparse_matrix_is_a_tensor_of_two_modes() -> None:
    matrix = scipy.sparse.csr_array(np.diag([1, 2, 0]))
    assert as_tensor(matrix).shape == (3, 3)
    assert rank_interval(matrix) == rank_interval(scipy.sparse.coo_array(matrix)) == (2, 2)
    assert capacity.cp_estimate(matrix).rank == 2


@pytest.mark.parametrize(
    "rows", [[[0, 1, 2], [3, 4, 5]], [(0, 1, 2)], np.eye(3, dtype=np.uint8),
             torch.eye(3, dtype=torch.int64)],
    ids=["lists", "tuple", "array", "torch"],
)  # fmt: skip
@pytest.mark.parametrize("call", [rank_interval, capacity.database_bounds, capacity.cp_estimate])
def test_rows_of_three_integers_are_refused_with_both_calls(rows: Any, call: Any) -> None:
    with pytest.raises(CapacityError, match=r"as_database\(rows\).*as_tensor\(rows\)"):
        call(rows)
    assert as_database(rows, multi="keep").shape != as_tensor(rows).shape or len(rows) == 3
    # nothing else is in doubt
    assert rank_interval(as_tensor(rows)).upper <= 3
    assert rank_interval([[0, 1, 2, 3], [3, 4, 5, 6]]) == (2, 2)
    assert rank_interval(np.eye(3)) == (3, 3)
    assert rank_interval({(0, 1, 2)}) == (1, 1)


def test_a_layer_has_an_estimate_and_no_interval() -> None:
    layer = _layer()
    parts = capacity.layer.layer_tensor(layer, DB)
    for tensor in (layer, parts, parts.L, parts.L.detach().numpy()):
        with pytest.raises(CapacityError, match=r"cp_estimate\(tensor\).*numerical_rank_estimates"):
            rank_interval(tensor)
        assert capacity.rank.numerical_rank_estimates(tensor).unfolding_rank > 0
    of_layer = capacity.rank.numerical_rank_estimates(layer)
    # all tokens in each role have those of a database in theirs among them
    assert of_layer.unfolding_rank >= capacity.rank.numerical_rank_estimates(parts).unfolding_rank


def test_a_tensor_from_outside_is_taken_by_every_function() -> None:
    class Diagonal:
        entries = (1, 2, 3)

    kind = Converter("diagonal", (Diagonal,), lambda given: np.diag(given.entries))
    register_tensor_converter(kind)
    try:
        for function in (rank_interval, capacity.effective_rank_interval):
            assert function(Diagonal()) == (3, 3)
        assert verify(rank_interval(Diagonal()), Diagonal())
        assert capacity.cp_estimate(Diagonal()).rank == 3
        assert capacity.database_bounds(Diagonal()).unfoldings == (3, 3)
    finally:
        unregister_tensor_converter("diagonal")


# the names of commands


def test_commands_are_functions_of_their_names(tmp_path: Path) -> None:
    assert lib.rank(DB) == rank_interval(DB)
    assert lib.rank(_written(tmp_path), effort="quick") == rank_interval(DB)
    assert str(capacity.describe(ROWS)) == str(capacity.rank.describe(DB))
    assert lib.report(DB) == capacity.report.database_report(DB)
    assert lib.report(ROWS, tmp_path / "page.html", effort="quick").read_text() == lib.report(DB)
    # they are rooms all the same
    assert capacity.rank.rank_interval is rank_interval
    assert isinstance(capacity.rank, ModuleType)
    assert "METHODS" in dir(capacity.rank)


def test_commands_that_are_called_otherwise_are_named() -> None:
    for name, said in (("grid", "accuracy_grid"), ("attention", "effective_attention"),
                       ("doctor", "capacity doctor")):  # fmt: skip
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Use .*{said}"):
            getattr(lib, name)


def test_a_wrong_page_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match=r"ends in \.html"):
        lib.report(DB, tmp_path / "page.pdf")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CapacityError, match="--attention FOLDER --text TEXT"):
        lib.report(tmp_path)


def test_a_sweep_is_run_and_reported_by_the_names_of_commands(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "[databases]\nsynthetic = { count = 1, seed = 0, max_triples = 9 }\n"
        "[layers]\nd_model = [1]\nn_heads = [1]\nd_head_qk = [1]\nd_head_vo = [1]\n"
        "[recipe]\nepochs = 2\n"
    )
    lib.sweep(plan, out=tmp_path / "runs")
    assert len(capacity.sweep.load(tmp_path / "runs")) == 1
    assert lib.report(tmp_path / "runs") == capacity.report.sweep_report(tmp_path / "runs")


@pytest.mark.parametrize(
    "odd",
    [
        pd.Series(["a", "b"]), pd.Series([1, 2]), pa.array([1, 2]), np.array(3), np.array("x"),
        np.zeros((0, 3), int), [[]], [1, "a"], [["a", "b", "c"], [1, 2, 3]], [[1, 2], [3]],
        [[None] * 3], object(), 1j, np.array([[b"a", b"b", b"c"]]), "", "a\0b",
        io.StringIO("a p x"), io.BytesIO(b""), pd.DataFrame(), range(3), {1, 2},
        torch.zeros((2, 2), dtype=torch.complex64),
        scipy.sparse.eye_array(2) * 0.5, scipy.sparse.csr_matrix((2, 2)), [(1.5, 2.5, 3.5)],
        pa.table({"s": [1], "p": ["x"], "o": [[1]]}), type, capacity,
    ],
    ids=lambda odd: type(odd).__name__,
)  # fmt: skip
@pytest.mark.parametrize("take", [rank_interval, as_database, as_tensor, capacity.cp_estimate])
def test_whatever_comes_is_taken_or_refused_in_words(take: Callable[..., Any], odd: Any) -> None:
    with suppress(CapacityError):
        take(odd)
