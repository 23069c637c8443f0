"""The grammar of a sweep's file: what multiplies runs, and what is refused."""

import tomllib
from dataclasses import fields, replace
from typing import Any

import pytest
from typer.testing import CliRunner

from capacity.cli import application
from capacity.errors import SweepError
from capacity.evaluator import accuracy_column
from capacity.layer import Compute, LayerConfig, Recipe
from capacity.sweep import make_plan
from capacity.sweep.grammar.layers import omitted_layers
from capacity.sweep.grammar.reference_page import reference
from tests.oracles import ROOT

SMALL: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "seed": 0, "max_triples": 20}},
    "layers": {"d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [1, 2]},
    "recipe": {"epochs": 3},
}


def changed(section: str, **options: Any) -> dict[str, Any]:
    return {**SMALL, section: {**SMALL.get(section, {}), **options}}


def synthetic(**options: Any) -> dict[str, Any]:
    return {**SMALL, "databases": {"synthetic": {"count": 5, **options}}}


def test_every_field_of_a_layer_can_be_swept() -> None:
    # another value than the default, for all that has one
    others = {"scale": True, "layer_norm": True, "bias": True, "n_positions": 3}
    options = {each.name for each in fields(LayerConfig)} - set(SMALL["layers"])
    assert set(others) == options
    both = {name: [LayerConfig(1, 1, 1, 1).to_dict()[name], value]
            for name, value in others.items()}  # fmt: skip
    plan = make_plan(changed("layers", **both))
    # 2 databases, 2 sizes, and two values of each option
    assert len(plan.runs) == 2 * 2 * 2**4
    assert len({run.key for run in plan.runs}) == len(plan.runs)
    assert {(run.layer.scale, run.layer.bias) for run in plan.runs} == {
        (False, False), (False, True), (True, False), (True, True),
    }  # fmt: skip


def test_seeds_and_recipes_multiply_runs_and_start_from_the_same_weights() -> None:
    recipes = [{"epochs": 3}, {"epochs": 3, "learning_rate": 0.1}]
    plan = make_plan({**SMALL, "recipe": recipes, "runs": {"seeds": [0, 1, 2]}})
    assert len(plan.runs) == 2 * 2 * 2 * 3
    assert len({run.key for run in plan.runs}) == len(plan.runs)
    assert {run.seed for run in plan.runs} == {0, 1, 2}
    assert {run.recipe for run in plan.runs} == {Recipe(**one) for one in recipes}
    # recipes are compared from the same weights; seeds aren't
    assert len({run.draw for run in plan.runs}) == 2 * 2 * 3


def test_the_runs_of_one_seed_are_the_same_runs_in_a_sweep_of_several() -> None:
    one, several = make_plan(SMALL), make_plan(changed("runs", seeds=[2, 0]))
    assert {run.key for run in one.runs} < {run.key for run in several.runs}


def test_the_seed_of_the_draw_is_that_of_the_runs_unless_seeds_are_given() -> None:
    pairs = {"pairs": 2, "seed": 7}
    assert {run.seed for run in make_plan(changed("runs", **pairs)).runs} == {7}
    plan = make_plan(changed("runs", **pairs, seeds=[1]))
    assert {run.seed for run in plan.runs} == {1}
    drawn = [(run.database_id, run.layer) for run in make_plan(changed("runs", **pairs)).runs]
    assert [(run.database_id, run.layer) for run in plan.runs] == drawn


def test_more_thresholds_are_another_question_and_the_usual_ones_are_not() -> None:
    usual = make_plan(SMALL)
    assert usual.taus == (0.75, 0.95, 0.99)
    more, again = make_plan(changed("runs", taus=[0.999])), make_plan(changed("runs", taus=[0.95]))
    assert more.taus == (0.75, 0.95, 0.99, 0.999)
    assert again.key == usual.key
    assert not {run.key for run in more.runs} & {run.key for run in usual.runs}
    assert more.question != usual.question
    # they train alike
    assert [run.draw for run in more.runs] == [run.draw for run in usual.runs]


def test_synthetic_databases_have_the_sizes_that_are_asked_for() -> None:
    sizes = {"tables": [1, 1], "subjects": [6, 7], "predicates": [3, 3], "triples": [18, 21]}
    plan = make_plan(synthetic(**sizes, pool=[0.1, 0.1], shared_pool=0.0))
    for db in plan.databases.values():
        n_subjects, n_predicates, n_objects = db.shape
        assert 6 <= n_subjects <= 7
        assert n_predicates == 3
        # round(0.1 * 7) = 1 for each predicate, and none is shared
        assert n_objects == 3
    assert len(plan.databases) >= 2
    several = {"synthetic": [{"count": 1, "max_triples": 9}, {"count": 2, "triples": [40, 60]}]}
    assert len(make_plan({**SMALL, "databases": several}).databases) == 3


def test_max_triples_is_short_for_triples() -> None:
    short, long = make_plan(synthetic(max_triples=30)), make_plan(synthetic(triples=[4, 30]))
    assert short.key == long.key


BAD = {
    "`layer_norm` in .layers. must be a list of values; got True": changed(
        "layers", layer_norm=True
    ),
    "in .layers.: `layer_norm` must be a bool; got 1": changed("layers", layer_norm=[1]),
    "`n_positions` in .layers. must be 0, for none, or at least 2": changed(
        "layers", n_positions=[0, 1]
    ),
    "name each value once": changed("layers", bias=[True, True]),
    "unknown key `layernorm`; .* Did you mean `layer_norm`": changed("layers", layernorm=[True]),
    "`seeds` in .runs. must name each seed once": changed("runs", seeds=[1, 1]),
    "`seeds` in .runs. must be a list of 1 to": changed("runs", seeds=[]),
    "`seeds` in .runs. must be an integer of at least 0": changed("runs", seeds=[-1]),
    "in .runs., `taus`: `tau` must lie strictly between": changed("runs", taus=[0.5]),
    "`taus` in .runs. must be a number": changed("runs", taus=["high"]),
    "at most 100 taus; got 101": changed("runs", taus=[0.6 + i / 1000 for i in range(101)]),
    "in ..recipe.. 2: `optimizer` must be one of": {
        **SMALL, "recipe": [{}, {"optimizer": "sgd"}]
    },
    "must hold each recipe once": {**SMALL, "recipe": [{}, {"epochs": 2000}]},
    "must hold each recipe once, and at least one": {**SMALL, "recipe": []},
    "unknown key `engine`": changed("recipe", engine="fused"),
    "in .compute.: `dtype` must be one of": changed("compute", dtype="float16"),
    "unknown key `device`": changed("compute", device="cuda"),
    "`subjects` in .* a list of two numbers, the least and the largest; got 5": synthetic(
        subjects=5
    ),
    "`subjects` in .* must name the least first": synthetic(subjects=[5, 2]),
    "`subjects` in .* must be an integer of at least 1; *|got 0": synthetic(subjects=[0, 2]),
    "`chained` in .* must be a number between 0 and 1; got 2": synthetic(chained=2),
    "`pool` in .* must be a number between": synthetic(pool=[-1, 2]),
    "must have `triples` or `max_triples`, not both": synthetic(triples=[4, 9], max_triples=9),
    "in `synthetic` of .databases.: `triples` must overlap": synthetic(
        tables=[1, 1], subjects=[1, 1], predicates=[1, 1]
    ),
    "at most 1,000,000 cells or objects a database; got": synthetic(subjects=[1, 10**6]),
    "at most 1,000,000 runs; got 4,000,000": changed(
        "runs", seeds=list(range(1000)), pairs=4000
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", BAD)
def test_mistakes_are_named_with_their_place(reason: str) -> None:
    with pytest.raises(SweepError, match=reason):
        make_plan(BAD[reason])


def test_the_committed_reference_is_the_one_of_the_code_and_names_every_key() -> None:
    assert (ROOT / "docs/sweep-reference.md").read_text() == reference()
    printed = CliRunner().invoke(application(), ["sweep", "--reference"])
    assert printed.exit_code == 0
    assert printed.output == reference()
    for kind in (LayerConfig, Recipe):
        assert all(f"| `{each.name}` |" in reference() for each in fields(kind))
    # where a sweep trains is said on the command line
    assert "| `device` |" not in reference()


def test_the_example_in_the_reference_is_a_plan() -> None:
    example = reference().partition("```toml\n")[2].partition("```")[0]
    plan = make_plan(tomllib.loads(example), folder=ROOT)
    # pairs, seeds and recipes
    assert len(plan.runs) == 100 * 3 * 2


def test_what_computes_is_part_of_a_runs_key_and_not_of_its_question() -> None:
    run = make_plan(SMALL).runs[0]
    other = replace(run, compute=Compute(dtype="float64"))
    assert run.question == other.question
    assert run.key != other.key


def test_columns_of_thresholds_in_the_reference_are_those_of_the_table() -> None:
    assert accuracy_column(0.999) in reference()


def test_a_size_that_is_left_out_is_the_even_share_and_changes_no_key() -> None:
    layers = {"d_model": [4, 6], "n_heads": [1, 3, 4]}
    # 4 / 1, 4 / 4, 6 / 1 and 6 / 3 are whole, 4 / 3 and 6 / 4 aren't
    plan = make_plan({**SMALL, "layers": layers})
    names = [run.layer.name for run in plan.runs[:4]]
    assert names == ["d4-h1-qk4-vo4", "d4-h4-qk1-vo1", "d6-h1-qk6-vo6", "d6-h3-qk2-vo2"]
    given = {"d_model": [6], "n_heads": [3], "d_head_qk": [2], "d_head_vo": [2]}
    assert make_plan({**SMALL, "layers": given}).runs[0].key == plan.runs[3].key
    # each combination is a layer, or is counted with one reason
    for more in ({}, {"d_head_vo": [1, 5]}, {"d_head_qk": [5], "d_head_vo": [1, 7]}):
        config = {**SMALL, "layers": {**layers, **more}}
        n_layers = len({run.layer for run in make_plan(config).runs})
        all_there_are = 6 * len(more.get("d_head_vo", [1]))
        assert n_layers + sum(omitted_layers(config).values()) == all_there_are
    with pytest.raises(SweepError, match="no combination of its values is one"):
        make_plan({**SMALL, "layers": {"d_model": [4], "n_heads": [3]}})
