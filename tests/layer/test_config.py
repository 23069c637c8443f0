import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.checks import shown
from capacity.errors import CapacityError
from capacity.layer import LayerConfig, layer_rank_assumed, layer_rank_upper, layer_rank_upper_paper
from capacity.layer.engines.registry import Compute
from capacity.layer.run.recipe import Recipe
from capacity.testing import layer_configs


def test_bounds_and_counts_are_the_papers() -> None:
    config = LayerConfig(4, 3, 1, 2)
    assert layer_rank_assumed(config) == 4 + 3 * 2  # equation (9)
    assert layer_rank_upper_paper(config, 5) == 4 + 3 * 2 * 5
    assert config.n_parameters == 2 * 3 * 4 * (2 + 1)  # section 4
    assert config.n_embedding_parameters(10) == 2 * 4 * 10


@given(layer_configs(), st.integers(1, 20), st.integers(1, 20), st.integers(1, 20))
def test_the_sharper_bound_never_exceeds_proposition_3_5(
    config: LayerConfig, k: int, q: int, v: int
) -> None:
    upper = layer_rank_upper(config, (k, q, v))
    assert 1 <= upper <= layer_rank_upper_paper(config, q)
    # no tensor of this shape has a larger rank
    assert upper <= min(k * q, k * v, q * v)


def test_equation_9_can_exceed_what_is_proved() -> None:
    config = LayerConfig(2, 4, 1, 2)
    assert layer_rank_assumed(config) == 10
    # L has 2 predicate slices, each in the 2-dimensional row space of W_U
    assert layer_rank_upper(config, (9, 2, 9)) == 4


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((0, 1, 1, 1), "`d_model` must be an integer of at least 1; got 0"),
        ((2, 1, 3, 1), "`d_head_qk` must be at most d_model = 2"),
        ((2, 1, 1, 3), "`d_head_vo` must be at most d_model = 2"),
        ((2, 1.0, 1, 1), "`n_heads` must be an integer"),
        ((2, True, 1, 1), "`n_heads` must be an integer"),
        ((10**9, 1, 1, 1), "`d_model` must be at most 1,048,576; got 1000000000"),
        ((2, 2**70, 1, 1), "`n_heads` must be at most"),
        (
            (8, 3),
            "`d_head_qk` may be omitted only if n_heads divides .* d_model = 8 and n_heads = 3",
        ),
        ((8, 3, 2), "`d_head_vo` may be omitted only .*Pass a `d_head_vo` from 1 to 8"),
        # 2 // 4 is no size of a head
        ((2, 4), "`d_head_qk` may be omitted only"),
        ((8, 0), "`n_heads` must be an integer of at least 1; got 0"),
        ((10**5000, 1, 1, 1), "got a value of type int that is too long to write"),
    ],
    ids=shown,
)
def test_impossible_layers_are_refused(sizes: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LayerConfig(*sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("d_model", "n_heads"), [(8, 2), (6, 6), (5, 1)])
def test_heads_share_the_residual_stream_evenly_by_default(d_model: int, n_heads: int) -> None:
    size = d_model // n_heads
    config = LayerConfig(d_model, n_heads)
    # the same layer, so that no key of a run tells which sizes were given
    assert config == LayerConfig(d_model, n_heads, size, size)
    assert config.to_dict() == LayerConfig(d_model, n_heads, size, size).to_dict()
    assert LayerConfig(d_model, n_heads, d_head_vo=1) == LayerConfig(d_model, n_heads, size, 1)


def test_options_stand_in_the_name() -> None:
    config = LayerConfig(4, 1, 2, 2, scale=True, n_positions=3)
    assert config.name == "d4-h1-qk2-vo2-scale-n_positions3"
    with pytest.raises(ValueError, match="without norm, bias and positions"):
        layer_rank_upper(config, (2, 2, 2))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("optimizer", "sgd"), ("learning_rate", 0.0), ("learning_rate", float("nan")),
        ("epochs", -1), ("epochs", 1.5), ("beta2", 1.0), ("weight_decay", -0.1),
        ("schedule", "linear"), ("batch_size", -1), ("positions", "subject"), ("stop_tau", 0.5),
        ("stop_tau", 1.0), ("init", "zeros"),
    ],
)  # fmt: skip
def test_recipes_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{option}` must be"):
        Recipe(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value"),
    [("dtype", "float16"), ("engine", "magic"), ("device", "tpu"), ("engine", ["fused"])],
)
def test_another_way_to_compute_is_refused(option: str, value: object) -> None:
    with pytest.raises(CapacityError, match=f"`{option}` must be one of .*; got "):
        Compute(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("epochs", 2 * 10**9), ("epochs", 10**30), ("epochs", 10**5000), ("batch_size", 2**31),
        ("batch_size", 10**400), ("learning_rate", 10**400), ("beta2", 10**400),
        ("weight_decay", 10**400), ("stop_tau", 10**400), ("optimizer", 10**5000),
        ("learning_rate", "1" * 1000),
    ],
    ids=shown,
)  # fmt: skip
def test_numbers_without_end_are_refused_in_a_line(option: str, value: object) -> None:
    with pytest.raises(CapacityError, match=f"`{option}` must be") as refusal:
        Recipe(**{option: value})  # type: ignore[arg-type]
    assert len(str(refusal.value)) < 200
    assert "\n" not in str(refusal.value)


def test_the_default_recipe_is_the_papers() -> None:
    recipe = Recipe()
    assert (recipe.optimizer, recipe.learning_rate, recipe.epochs) == ("adam", 1e-3, 2000)
    assert (recipe.positions, recipe.stop_tau) == ("both", 0.99)
