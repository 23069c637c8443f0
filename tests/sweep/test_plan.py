from pathlib import Path
from typing import Any

import pytest

from capacity.errors import DatabaseFormatError, SweepError
from capacity.sweep import make_plan, read_plan
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
    "`path` in .* must be a text": changed("databases", files=[{"path": 3}]),
    "in .layers.: ": changed("layers", d_model=["a"]),
    "must be a table of keys": {**SMALL, "recipe": 3},
}


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


def test_files_that_are_no_toml_are_named(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"none\.toml: must be a readable TOML file"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[layers\n")
    with pytest.raises(SweepError, match=r"bad\.toml.*line 1"):
        read_plan(tmp_path / "bad.toml")


def test_the_demo_has_at_most_90_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = read_plan("experiments/configs/demo.toml")
    assert len(plan.runs) <= 90
    kinds = {run.database_id.split("-")[0] for run in plan.runs}
    assert kinds == {"countries", "synthetic"}
