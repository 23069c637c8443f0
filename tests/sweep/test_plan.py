import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capacity.errors import CapacityError, DatabaseFormatError, SweepError
from capacity.sweep import make_plan, read_plan
from tests.odd_places import KINDS, put
from tests.oracles import EXAMPLES, ROOT

SMALL: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "seed": 0, "max_triples": 20}},
    "layers": {"d_model": [1, 2], "n_heads": [1], "d_head_qk": [1, 2], "d_head_vo": [1, 2]},
    "recipe": {"epochs": 3},
}


def changed(section: str, **options: Any) -> dict[str, Any]:
    return {**SMALL, section: {**SMALL.get(section, {}), **options}}


def test_every_layer_with_heads_within_d_model_meets_every_database() -> None:
    plan = make_plan(SMALL)
    # d_model 1: one layer; d_model 2: 2 x 2
    assert len(plan.runs) == 2 * (1 + 4)
    assert len({run.key for run in plan.runs}) == 10
    assert all(run.layer.d_head_qk <= run.layer.d_model for run in plan.runs)


def test_the_papers_364_layers() -> None:
    sizes = list(range(1, 7))
    layers = {"d_model": sizes, "n_heads": [1, 2, 3, 4], "d_head_qk": sizes, "d_head_vo": sizes}
    plan = make_plan({**SMALL, "layers": layers, "runs": {"pairs": 100, "seed": 3}})
    assert len(plan.runs) == 100
    everything = make_plan({**SMALL, "layers": layers})
    assert len(everything.runs) == 2 * 364


def test_pairs_are_drawn_without_replacement_and_by_the_seed() -> None:
    a, b, c = (make_plan(changed("runs", pairs=6, seed=s)) for s in (0, 0, 1))
    assert len({run.key for run in a.runs}) == 6
    assert a.key == b.key != c.key


def test_the_pairs_of_a_seed_are_those_of_all_pairs_in_order() -> None:
    every = make_plan(SMALL).runs
    # what is drawn must stay what it was, or every sweep that was begun would be another
    drawn = np.random.default_rng(7).choice(len(every), 6, replace=False)
    plan = make_plan(changed("runs", pairs=6, seed=7))
    assert [(run.database_id, run.layer) for run in plan.runs] == [
        (every[i].database_id, every[i].layer) for i in sorted(drawn)
    ]


def test_a_key_depends_on_all_that_determines_the_result_and_on_nothing_else() -> None:
    plan = make_plan(SMALL)
    same = make_plan(changed("databases", files=[{"path": str(EXAMPLES / "figure-1.ttl")}]))
    assert {run.key for run in plan.runs} < {run.key for run in same.runs}
    others = [
        changed("recipe", learning_rate=0.5),
        changed("runs", seed=1),
        changed("databases", synthetic={"count": 2, "seed": 9}),
    ]
    for other in others:
        assert not {run.key for run in plan.runs} & {run.key for run in make_plan(other).runs}


def test_the_same_facts_are_one_database() -> None:
    path = str(EXAMPLES / "figure-1.ttl")
    twice = make_plan({**SMALL, "databases": {"files": [{"path": path}, {"path": path}]}})
    assert len({run.database_id for run in twice.runs}) == 1


def test_subsets_of_a_file_are_drawn() -> None:
    entry = {
        "path": str(EXAMPLES / "countries.ttl"),
        "subset": {"subjects": 3, "seed": 1, "count": 4},
    }
    plan = make_plan({**SMALL, "databases": {"files": [entry]}})
    sizes = {run.database_id: run.database.shape[0] for run in plan.runs}
    assert list(sizes.values()) == [3] * 4


BAD = {
    "unknown key `epoch`; .* Did you mean `epochs`": changed("recipe", epoch=3),
    "unknown key `layer`": {**SMALL, "layer": {}},
    "must have the key `d_model`": {**SMALL, "layers": {"n_heads": [1]}},
    "must be a list of sizes; got 4": changed("layers", d_model=4),
    "`n_heads` must be an integer of at least 1; got 0": changed("layers", n_heads=[0]),
    "must hold a layer with": changed("layers", d_model=[1], d_head_qk=[2]),
    "in .recipe.: `optimizer` must be one of adam, adamw": changed("recipe", optimizer="sgd"),
    "must be at most the 10 pairs": changed("runs", pairs=11),
    "`pairs` in .runs. must be an integer": changed("runs", pairs=0),
    "must hold `synthetic` or at least one of `files`": {**SMALL, "databases": {}},
    "`multi` in .* must be one of": changed("databases", files=[{"path": "x", "multi": "last"}]),
    "`files` in .databases. must be a list": changed("databases", files=3),
    "`path` in .* must be a string": changed("databases", files=[{"path": 3}]),
    "in .layers.: ": changed("layers", d_model=["a"]),
    "must be a table of keys": {**SMALL, "recipe": 3},
}


MANY = list(range(1, 401))
TOO_LARGE = {
    r"at most 100,000 databases; got 1,000,000,000,000\.": changed(
        "databases", synthetic={"count": 10**12}
    ),
    # 400^4, before their order is looked at
    r"at most 1,000,000 combinations; got 25,600,000,000\.": changed(
        "layers", d_model=MANY, n_heads=MANY, d_head_qk=MANY, d_head_vo=MANY
    ),
    # and the two synthetic ones
    r"at most 100,000 databases; got 1,000,000,000,002\.": changed(
        "databases", files=[{"path": "none", "subset": {"subjects": 2, "count": 10**12}}]
    ),
    # 50,000 databases x the layers (d_model, 1, 1, 1)
    r"at most 1,000,000 runs; got 20,000,000\.": {
        **SMALL,
        "databases": {"synthetic": {"count": 50_000}},
        "layers": {"d_model": MANY, "n_heads": [1], "d_head_qk": [1], "d_head_vo": [1]},
    },
    r"at most 1,000,000 pairs; got 10,000,000\.": changed("runs", pairs=10**7),
    r"`seed` in \[runs\] must be .* below 2\*\*63; got 1180591620717411303424\.": changed(
        "runs", seed=2**70
    ),
    r"`seed` in \[runs\] must be .* a value of type int that is too long": changed(
        "runs", seed=10**5000
    ),
    r"in \[layers\]: `n_heads` must be at most": changed("layers", n_heads=[2**63]),
    r"in \[recipe\]: `epochs` must be at most": changed("recipe", epochs=2**70),
    r"in \[recipe\]: `learning_rate` must be a number": changed("recipe", learning_rate=10**400),
    r"in \[recipe\]: `stop_tau` must be a number": changed("recipe", stop_tau=10**400),
}


@pytest.mark.parametrize("reason", TOO_LARGE)
def test_what_asks_for_too_much_is_refused_before_anything_is_drawn(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: object, **__: object) -> None:
        pytest.fail("something was drawn")

    monkeypatch.setattr("capacity.sweep.grammar.sections.random_database", drawn)
    monkeypatch.setattr("capacity.sweep.grammar.plan_file.Run", drawn)
    monkeypatch.setattr("capacity.sweep.grammar.sections.load", drawn)
    with pytest.raises(SweepError, match=reason) as refusal:
        make_plan(TOO_LARGE[reason])
    assert len(str(refusal.value)) < 400


def test_pairs_of_many_databases_and_layers_are_drawn_without_listing_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(*_: object) -> None:
        pytest.fail("all pairs were listed")

    sizes = list(range(1, 31))
    layers = {"d_model": [30], "n_heads": sizes, "d_head_qk": sizes, "d_head_vo": sizes}
    product = itertools.product
    # of values of layers, or of recipes and seeds, and not of databases and layers
    monkeypatch.setattr(
        "itertools.product",
        lambda *lists: listed() if any(len(one) > 100 for one in lists) else product(*lists),
    )
    plan = make_plan(
        {
            "databases": {"synthetic": {"count": 60, "max_triples": 20}},
            "layers": layers,
            "runs": {"pairs": 3},
        }
    )
    # of more than 1.6 million pairs
    assert len(plan.runs) == 3


@pytest.mark.parametrize("reason", BAD)
def test_mistakes_are_named_before_anything_trains(reason: str) -> None:
    with pytest.raises(SweepError, match=reason):
        make_plan(BAD[reason])


def test_databases_must_be_there_and_functional(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFormatError, match="no such file"):
        make_plan({**SMALL, "databases": {"files": [{"path": "none.ttl"}]}})
    (tmp_path / "multi.tsv").write_text("a\tp\tx\na\tp\ty\n")
    entry = {"path": str(tmp_path / "multi.tsv"), "multi": "keep"}
    with pytest.raises(SweepError, match="must be functional to train on"):
        make_plan({**SMALL, "databases": {"files": [entry]}})
    entry = {"path": str(EXAMPLES / "figure-1.ttl"), "subset": {"subjects": 9}}
    with pytest.raises(SweepError, match="between 1 and the 5 subjects"):
        make_plan({**SMALL, "databases": {"files": [entry]}})


def test_files_are_found_from_the_current_folder_or_beside_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "facts.tsv").write_text("a\tp\tx\n")
    (tmp_path / "plan.toml").write_text(
        '[[databases.files]]\npath = "facts.tsv"\n'
        "[layers]\nd_model = [1]\nn_heads = [1]\nd_head_qk = [1]\nd_head_vo = [1]\n"
    )
    assert len(read_plan(tmp_path / "plan.toml").runs) == 1
    monkeypatch.chdir(tmp_path)
    assert len(read_plan("plan.toml").runs) == 1


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    text = (ROOT / "experiments" / "configs" / "demo.toml").read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + text)
    plain = tmp_path / "plain.toml"
    plain.write_bytes(text)
    assert read_plan(path).key == read_plan(plain).key


def test_files_that_are_no_toml_are_named(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"none\.toml: must be a readable TOML file"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[layers\n")
    with pytest.raises(SweepError, match=r"bad\.toml.*line 1"):
        read_plan(tmp_path / "bad.toml")


ODD_TOML = {
    r"nested too deep": "a = " + "[" * 100_000,
    r"too many digits": "[runs]\nseed = " + "1" * 5000,
    r"holds more than 1,048,576 bytes": "#" * 2**20 + "\n",
    r"more than 500 dots": "a." * 100_000 + "a = 1",
    r"can't decode byte": "\udcff",
    r"unknown key `x{60}`;": "x" * 1000 + " = 1",
    r"must be a table of keys; got 'x{56}\.\.\.\.": 'recipe = "' + "x" * 1000 + '"',
}


@pytest.mark.parametrize("reason", ODD_TOML)
def test_odd_files_are_refused_in_one_short_line_that_names_them(
    reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "odd.toml"
    path.write_bytes(ODD_TOML[reason].encode(errors="surrogateescape"))
    with pytest.raises(SweepError, match=rf"odd\.toml: .*{reason}") as refusal:
        read_plan(path)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("kind", [*KINDS, "a name with a NUL"])
def test_a_plan_is_read_from_a_regular_file(kind: str, tmp_path: Path) -> None:
    path = put(kind, tmp_path / "plan.toml") if kind in KINDS else tmp_path / "plan\0.toml"
    with pytest.raises(SweepError, match="must be a readable TOML file"):
        read_plan(path)


def test_databases_by_names_that_no_file_can_have_are_refused(tmp_path: Path) -> None:
    for name in ("x" * 5000, "a\0b"):
        with pytest.raises(CapacityError):
            make_plan({**SMALL, "databases": {"files": [{"path": name}]}}, folder=tmp_path)


def test_the_demo_has_at_most_90_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = read_plan("experiments/configs/demo.toml")
    assert len(plan.runs) <= 90
    kinds = {run.database_id.split("-")[0] for run in plan.runs}
    assert kinds == {"countries", "synthetic"}
