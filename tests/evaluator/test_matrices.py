"""Figures of circuits, pairs and databases show what the tables hold, or refuse in words."""

import importlib.util
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch

from capacity.database import Database, load, random_database
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.evaluator import circuit_tables, evaluate
from capacity.layer import AttentionLayer, LayerConfig
from capacity.plots import plot_circuits, plot_database, plot_matrices, plot_pair
from tests.oracles import EXAMPLES, figure_1


def drawn(db: Database, n_heads: int = 2) -> AttentionLayer:
    return AttentionLayer(LayerConfig(4, n_heads, 2, 2), db.n_tokens, seed=1)


def test_every_circuit_has_a_panel_with_its_tokens_and_numbers() -> None:
    db = figure_1()
    layer = drawn(db)
    tables = circuit_tables(layer, db)
    panels = {axes.get_title(): axes for axes in plot_circuits(layer, db).axes}
    for title, table in zip(
        ["W_EU", "W_QK, head 0", "W_VO, head 0", "W_QK, head 1", "W_VO, head 1"],
        tables.values(),
        strict=True,
    ):
        axes = panels[title]
        # one row per object, so that panels of one head have the same columns
        table = table if title.startswith("W_QK") else table.T
        assert [t.get_text() for t in axes.get_xticklabels()] == table.columns.tolist()
        assert [t.get_text() for t in axes.get_yticklabels()] == table.index.tolist()
        shown = np.ma.getdata(axes.collections[0].get_array()).ravel()  # pyright: ignore
        assert shown.tolist() == table.to_numpy().ravel().tolist()
        assert len(axes.texts) == table.size
    # one scale for what is added to logits, symmetric
    limits = {panels[t].collections[0].get_clim() for t in ("W_EU", "W_VO, head 0", "W_VO, head 1")}
    most = max(float(tables[n].abs().to_numpy().max()) for n in ("W_EU", "W_VO 0", "W_VO 1"))
    assert limits == {(-most, most)}


@pytest.mark.parametrize("facts", [[("a", "p", "x"), ("b", "p", "y")], None])
def test_panels_and_scales_of_circuits_lie_apart_and_fill_the_figure(
    facts: list[tuple[str, str, str]] | None,
) -> None:
    db = figure_1() if facts is None else Database.from_triples(facts)
    figure = plot_circuits(drawn(db), db)
    figure.canvas.draw()
    boxes = [axes.get_position() for axes in figure.axes if axes.axison]
    boxes += [axes.get_position() for axes in figure.axes[0].child_axes]
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    # a panel of attention ends where that of values below it does
    panels = {axes.get_title(): axes.get_position() for axes in figure.axes}
    for head in (0, 1):
        above, below = panels[f"W_QK, head {head}"], panels[f"W_VO, head {head}"]
        assert (above.x0, above.x1) == pytest.approx((below.x0, below.x1), abs=0.02)


def test_many_tokens_have_to_be_chosen() -> None:
    db = random_database(0, triples=(150, 200))
    layer = drawn(db)
    assert max(db.shape) > 40
    with pytest.raises(InvalidArgumentError, match=r"at most 40 rows and columns.*`tokens` takes"):
        plot_circuits(layer, db)
    some = [*db.subjects[:3], *db.predicates[:2], *db.objects[:4]]
    figure = plot_circuits(layer, db, tokens=some)
    (effect,) = (axes for axes in figure.axes if axes.get_title() == "W_EU")
    names = [t.get_text() for t in effect.get_yticklabels()]
    assert set(map(db.name, db.objects[:4])) <= set(names)
    with pytest.raises(InvalidArgumentError, match=r"at most 24 matrices; got 25"):
        plot_circuits(drawn(figure_1(), n_heads=12), figure_1())


def test_a_pair_is_told_in_the_title_and_its_object_is_in_bold() -> None:
    db = figure_1()
    layer = drawn(db)
    with torch.no_grad():
        # every logit is 0 but that of Malaysia
        layer.W_U.zero_()
        layer.W_E[:, 0] = 1
        layer.W_V.zero_()
        layer.W_U[0, [db.name(t) for t in db.tokens].index("Malaysia")] = 3
    # e^3 / (e^3 + 9) = 0.69
    figure = plot_pair(layer, db, "Colin", "born_in")
    assert figure.get_suptitle() == "Colin born_in: Malaysia (p = 0.69), which is right"
    labels = figure.axes[1].get_xticklabels()
    bold = [t.get_text() for t in labels if t.get_fontweight() == "bold"]
    assert bold == ["Malaysia  0.69"]
    wrong = plot_pair(layer, db, "Astrid", "born_in").get_suptitle()
    assert wrong == "Astrid born_in: Malaysia (p = 0.69), not Singapore"
    nonsense = plot_pair(layer, db, "Astrid", "currency").get_suptitle()
    assert nonsense.endswith("a pair without an object")


@pytest.mark.slow
def test_names_are_drawn_as_they_stand_though_they_look_like_formulas(tmp_path: Path) -> None:
    db = Database.from_triples([("$a^$", r"$\frac$", "$x_$"), ("b", "p", "")])
    layer = drawn(db)
    plot_circuits(layer, db, path=tmp_path / "circuits.png")
    plot_pair(layer, db, "$a^$", r"$\frac$", path=tmp_path / "pair.png")
    plot_database(db, path=tmp_path / "database.png")
    assert len(list(tmp_path.iterdir())) == 3


def test_matrices_without_a_cell_or_of_too_many_are_refused(tmp_path: Path) -> None:
    one = pd.DataFrame([[1.0]], index=["a"], columns=["b"])
    for none in ({}, {"empty": one.iloc[:0]}):
        with pytest.raises(InvalidArgumentError, match="at least one cell"):
            plot_matrices(none)
    with pytest.raises(InvalidArgumentError, match="long has 41 x 1"):
        plot_matrices({"long": pd.DataFrame(np.zeros((41, 1)))})
    with pytest.raises(InvalidArgumentError, match="`across` must be at least 1; got 0"):
        plot_matrices({"one": one}, across=0)
    with pytest.raises(InvalidArgumentError, match=r"must end in \.png"):
        plot_matrices({"one": one}, path=tmp_path / "one.txt")


def test_subjects_that_share_a_predicate_stand_in_one_table() -> None:
    figure = plot_database(figure_1())
    people, countries, sentences = figure.axes
    assert [t.get_text() for t in people.texts][:4] == [
        "born_in",
        "lives_in",
        "Astrid",
        "Singapore",
    ]
    assert {t.get_text() for t in countries.texts} == {
        "currency", "Malaysia", "Singapore", "Ringgit", "Dollar",
    }  # fmt: skip
    told = [t.get_text() for t in sentences.texts]
    assert told[:2] == ["Astrid born_in ", "Singapore"]
    # a sentence is drawn in two parts
    assert len(told) == 2 * 8
    # tables that share no predicate but by a third subject are one
    chain = Database.from_triples(
        [("a", "p", "x"), ("b", "p", "x"), ("b", "q", "y"), ("c", "q", "y")]
    )
    assert len(plot_database(chain).axes) == 2


def test_a_large_database_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidArgumentError, match=r"1 to 60 facts.*db\.sample_subjects"):
        plot_database(random_database(0, triples=(61, 100)))
    many = Database.from_triples([("a", f"p{i}", "x") for i in range(9)])
    with pytest.raises(InvalidArgumentError, match=r"at most 8 predicates.*got 9"):
        plot_database(many)
    with pytest.raises(InvalidTypeError):
        plot_database(7)


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_paper", EXAMPLES / "draw_paper.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_3_3_has_the_papers_matrices() -> None:
    draw = script()
    db = draw.figure_1().select(predicates=["born_in", "lives_in"])
    layer = draw.example_3_3(db)
    found = {name: m.to_numpy().tolist() for name, m in draw.matrices(layer, db).items()}
    half = 0.5
    # in the order Astrid, Bernard, Colin, born_in, lives_in; Malaysia, Singapore
    assert found == {
        "W_QK": [[1] * 5] * 2,
        "W_VO": [[0, 0], [0, 4], [4, 0], [0, 2], [2, 0]],
        "A[:, born_in, :]": [[half, 0, 0, half, 0], [0, half, 0, half, 0], [0, 0, half, half, 0]],
        "A[:, lives_in, :]": [[half, 0, 0, 0, half], [0, half, 0, 0, half], [0, 0, half, 0, half]],
        "(A V)[:, born_in, :]": [[0, 1], [0, 3], [2, 1]],
        "(A V)[:, lives_in, :]": [[1, 0], [1, 2], [3, 0]],
    }
    assert not layer.W_EU.any()
    # among the objects, argmax is D
    assert evaluate(layer, db, over="objects").argmax == 1.0


@pytest.mark.slow
def test_the_script_writes_the_figures_beside_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = script()
    (tmp_path / "figure-1.ttl").write_bytes((EXAMPLES / "figure-1.ttl").read_bytes())
    monkeypatch.setattr(draw, "HERE", tmp_path)
    draw.main()
    for name in ("figure-1.png", "example-3-3.png"):
        assert (tmp_path / name).stat().st_size > 10_000
        assert (EXAMPLES / name).is_file()
    assert draw.figure_1() == figure_1()
    assert load(EXAMPLES / "figure-1.ttl").n_triples == 8
