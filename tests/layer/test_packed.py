"""Many layers in one tensor: the same weights, and work that doesn't grow with their number."""

import itertools
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import capacity.layer.engines.triton as triton
from capacity.database import Database, random_database
from capacity.layer import AttentionLayer, LayerConfig, Recipe
from capacity.layer.engines.triton.engine import groups_of, run_many
from capacity.layer.engines.triton.facts import Facts
from capacity.layer.packed import PackedLayers

CONFIGS = st.builds(
    lambda d, heads, qk, vo, scale, options: LayerConfig(
        d, heads, min(d, qk), min(d, vo), scale=scale, **options
    ),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from([{}, {"bias": True, "layer_norm": True, "n_positions": 3}]),
)


@given(st.lists(st.tuples(CONFIGS, st.integers(2, 40)), min_size=1, max_size=5))
def test_layers_packed_drawn_and_written_back_are_the_same(
    sizes: list[tuple[LayerConfig, int]],
) -> None:
    configs, d_vocabs = zip(*sizes, strict=True)
    layers = [AttentionLayer(c, n, seed=i) for i, (c, n) in enumerate(sizes)]
    packed = PackedLayers.of(layers)
    drawn = PackedLayers.drawn(configs, d_vocabs, range(len(layers)))
    assert torch.equal(packed.values, drawn.values)
    for i, (layer, arrays) in enumerate(zip(layers, packed.arrays(), strict=True)):
        own = dict(layer.named_parameters())
        assert packed.weights(i).keys() == arrays.keys() == own.keys()
        for name, weight in packed.weights(i).items():
            assert torch.equal(weight, own[name])
            assert np.array_equal(arrays[name], weight.numpy())
    others = [AttentionLayer(c, n, seed=99) for c, n in sizes]
    packed.write_back(others)
    for layer, other in zip(layers, others, strict=True):
        for mine, its in zip(layer.parameters(), other.parameters(), strict=True):
            assert torch.equal(mine, its)


def test_a_layer_whose_weights_were_given_in_another_order_is_packed_in_the_same() -> None:
    config = LayerConfig(3, 2, 1, 2)
    layer = AttentionLayer(config, 5, seed=4)
    backwards = dict(reversed([(n, w.detach()) for n, w in layer.named_parameters()]))
    other = AttentionLayer.of_weights(config, backwards)
    assert torch.equal(PackedLayers.of([layer]).values, PackedLayers.of([other]).values)


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(20, 90)), min_size=1, max_size=4),
    st.booleans(),
)
def test_facts_of_many_databases_are_those_of_each(
    drawn: list[tuple[int, int]], both: bool
) -> None:
    databases = [random_database(seed, triples=(1, most)) for seed, most in drawn]
    together = Facts.of(databases, torch.device("cpu"), both=both)
    for i, db in enumerate(databases):
        alone = Facts.of([db], torch.device("cpu"), both=both)
        for name, ragged in together.arrays.items():
            own = ragged.values[ragged.starts[i] :][: ragged.lengths[i]]
            assert torch.equal(own, alone.arrays[name].values), name
        assert together.n_rows[i] == alone.n_rows[0]
        assert_rows_are_the_facts(alone, db, both=both)


def assert_rows_are_the_facts(found: Facts, db: Database, *, both: bool) -> None:
    """Read the arrays back, as the kernel reads them."""
    number = found.numbers.values.numpy()
    token = np.argsort(number)
    arrays = {name: ragged.values.numpy() for name, ragged in found.arrays.items()}
    starts, n_first = arrays["target_starts"], int(found.n_rows[0] - found.n_facts[0])
    rows = [
        (int(token[s]), int(token[p]), sorted(token[arrays["targets"][begin:end]].tolist()))
        for s, p, begin, end in zip(
            arrays["subjects"], arrays["predicates"], starts[:-1], starts[1:], strict=True
        )
    ]
    facts = db.token_triples.tolist()
    assert rows[n_first:] == [(k, q, [v]) for k, q, v in facts]
    # after a subject alone, each of its facts' predicates
    subjects = sorted({k for k, _, _ in facts}) if both else []
    assert rows[:n_first] == [
        (k, k, sorted(q for its, q, _ in facts if its == k)) for k in subjects
    ]
    # each fact weighs the same, half at each position
    share = (0.5 if both else 1.0) / len(facts)
    assert arrays["weights"] == pytest.approx([share * len(row[2]) for row in rows])
    # the rows of each active token, whose numbers come first, those with most rows before others
    uses = Counter(arrays["subjects"].tolist()) + Counter(arrays["predicates"].tolist())
    assert sorted(uses) == list(range(found.n_active[0]))
    assert [uses[i] for i in sorted(uses)] == sorted(uses.values(), reverse=True)
    for name in ("subject", "predicate"):
        starts = arrays[f"{name}_starts"]
        for i, (begin, end) in enumerate(itertools.pairwise(starts)):
            own = arrays[f"{name}_rows"][begin:end]
            assert own.tolist() == np.flatnonzero(arrays[f"{name}s"] == i).tolist()


def test_packed_weights_come_back_from_where_the_kernel_has_them() -> None:
    sizes = [(1, 1, 1, 1), (6, 4, 6, 2), (9, 2, 3, 8), (3, 5, 2, 3)]
    databases = [random_database(seed, triples=(1, 120)) for seed in range(len(sizes))]
    packed = PackedLayers.drawn(
        [LayerConfig(*some) for some in sizes], [db.n_tokens for db in databases], range(4)
    )
    before = packed.values.clone()
    for members, group in groups_of(packed, databases, Recipe()):
        for i, row in zip(members, group.values, strict=True):
            # the same numbers, and padding
            own = torch.cat([w.ravel() for w in packed.weights(i).values()])
            assert row.count_nonzero() == len(own)
            assert torch.equal(row[row != 0].sort().values, own.sort().values)
        group.unpack(2 * group.values, packed.values)
    assert torch.equal(packed.values, 2 * before)


class Counted(TorchDispatchMode):
    """Counts tensor operations, and those that would move data to or from a device."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations[str(func)] += 1
        return func(*args, **(kwargs or {}))


class Kernel:
    """Stands for the kernel: it learns nothing, and counts its launches."""

    def __init__(self) -> None:
        self.launches = 0

    def __getitem__(self, grid: tuple[int]) -> Any:
        return self._launch

    def _launch(self, values: torch.Tensor, *_moments: Any, **arguments: Any) -> None:
        self.launches += 1
        last, total = arguments["last_epoch"], arguments["total_epochs"]
        arguments["epochs"].fill_(min(last, total))
        if last > total:
            arguments["going"].zero_()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    stands_in = Kernel()
    module = type(sys)("capacity.layer.engines.triton.kernel")
    vars(module)["train"] = stands_in
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(triton, "kernel", module, raising=False)
    return stands_in


def test_the_operations_of_a_launch_are_as_many_for_any_number_of_runs(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: Counter[str] = Counter()
    for name in ("cpu", "to"):
        whole = getattr(torch.Tensor, name)

        def counted(*arguments: Any, name: str = name, whole: Any = whole, **options: Any) -> Any:
            copies[name] += 1
            return whole(*arguments, **options)

        monkeypatch.setattr(torch.Tensor, name, counted)
    found: list[tuple[Counter[str], Counter[str], int]] = []
    for n_runs in (6, 60):
        databases = [random_database(i, triples=(4, 40)) for i in range(n_runs)]
        packed = PackedLayers.drawn(
            [LayerConfig(1 + i % 6, 1 + i % 4, 1, 1) for i in range(n_runs)],
            [db.n_tokens for db in databases],
        )
        copies.clear()
        kernel.launches = 0
        with Counted() as counted_operations:
            trainings = run_many(packed, databases, Recipe(epochs=500), [])
        assert [training.epochs for training in trainings] == [500] * n_runs
        found.append((counted_operations.operations, Counter(copies), kernel.launches))
    few, many = found
    assert few == many
    operations, moves, launches = many
    # one shape, 256 epochs a launch
    assert launches == 2
    # facts, places, scales and rates go there; of each launch some epochs, and the losses in them
    # come back; and in the end whether weights are finite
    assert sum(moves.values()) == 4 + 2 * launches + 1
    assert operations["aten.copy_.default"] <= 30 * launches
