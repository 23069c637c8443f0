"""Circuits by the names of tokens, and one pair taken apart."""

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError, InvalidTypeError, UnknownTokenError
from capacity.evaluator import circuit_tables, fact_table, pair_answer, pair_logits
from capacity.layer import AttentionLayer, LayerConfig, layer_tensor
from tests.oracles import figure_1

CONFIG = LayerConfig(4, 2, 2, 3)


def drawn(db: Database) -> AttentionLayer:
    return AttentionLayer(CONFIG, db.n_tokens, seed=1, dtype=torch.float64)


def test_the_tables_are_the_layers_circuits_at_the_tokens_they_name() -> None:
    db = figure_1()
    layer = drawn(db)
    at = {db.name(token): i for i, token in enumerate(db.tokens)}
    tables = circuit_tables(layer, db)
    assert list(tables) == ["W_EU", "W_QK 0", "W_VO 0", "W_QK 1", "W_VO 1"]
    whole = {"W_EU": layer.W_EU}
    for h in range(2):
        whole |= {f"W_QK {h}": layer.W_QK[h], f"W_VO {h}": layer.W_VO[h]}
    for name, table in tables.items():
        rows, columns = ([at[n] for n in axis] for axis in (table.index, table.columns))
        expected = whole[name].detach().numpy()[np.ix_(rows, columns)]
        assert table.to_numpy() == pytest.approx(expected, rel=1e-12, abs=1e-14)
    # five subjects and three predicates are attended to, and four objects said
    assert tables["W_QK 0"].shape == (3, 8)
    assert tables["W_VO 0"].shape == (8, 4)
    assert tables["W_EU"].shape == (3, 4)


def test_the_tensor_l_can_be_computed_from_the_tables_alone() -> None:
    db = random_database(5, triples=(15, 15))
    layer = drawn(db)
    tables = circuit_tables(layer, db)
    L = layer_tensor(layer, db).L.detach().numpy()
    for k, q in np.unique(db.triples[:, :2], axis=0).tolist():
        subject, predicate = db.name(db.subjects[k]), db.name(db.predicates[q])
        logits = tables["W_EU"].loc[predicate].to_numpy()
        for h in range(2):
            scores = tables[f"W_QK {h}"].loc[predicate, [subject, predicate]].to_numpy()
            a = np.exp(scores) / np.exp(scores).sum()
            logits = logits + a @ tables[f"W_VO {h}"].loc[[subject, predicate]].to_numpy()
        assert logits == pytest.approx(L[k, q], rel=1e-9, abs=1e-12)


def test_a_token_in_both_roles_comes_once() -> None:
    db = Database.from_triples([("a", "p", "x"), ("p", "q", "y")])
    table = circuit_tables(drawn(db), db)["W_VO 0"]
    assert table.index.tolist() == ["a", "p", "q"]


def test_chosen_tokens_keep_their_numbers() -> None:
    db = figure_1()
    layer = drawn(db)
    whole = circuit_tables(layer, db)
    part = circuit_tables(layer, db, tokens=["Singapore", "born_in", "Astrid"])
    for name, table in part.items():
        pd.testing.assert_frame_equal(table, whole[name].loc[table.index, table.columns])
    # Singapore is subject and object
    assert part["W_VO 1"].index.tolist() == ["Astrid", "Singapore", "born_in"]
    assert part["W_VO 1"].columns.tolist() == ["Singapore"]


def test_what_has_no_circuits_is_refused_in_words() -> None:
    db = figure_1()
    layer = drawn(db)
    with pytest.raises(InvalidArgumentError, match=r"it has no predicate. Add one of the 3"):
        circuit_tables(layer, db, tokens=["Astrid", "Dollar"])
    with pytest.raises(UnknownTokenError, match="No token is called 'Astrod'"):
        circuit_tables(layer, db, tokens=["Astrod"])
    with pytest.raises(InvalidTypeError, match="The layer comes first"):
        circuit_tables(cast(Any, db), cast(Any, layer))
    normed = AttentionLayer(LayerConfig(4, 2, 2, 2, layer_norm=True), db.n_tokens)
    with pytest.raises(InvalidArgumentError, match="without norm"):
        circuit_tables(normed, db)


@pytest.mark.parametrize(
    "config", [CONFIG, LayerConfig(4, 2, 2, 2, layer_norm=True, bias=True, n_positions=2)]
)
def test_the_terms_of_a_pair_add_up_to_the_forward_pass(config: LayerConfig) -> None:
    db = figure_1()
    layer = AttentionLayer(config, db.n_tokens, seed=2, dtype=torch.float64)
    facts = fact_table(layer, db)
    for row, ids in zip(facts.itertuples(index=False), db.token_triples, strict=True):
        answer = pair_answer(layer, db, str(row.subject), str(row.predicate), most=10)
        logits = pair_logits(layer, ids[None, :2])[0]
        said = dict(zip(map(db.name, db.tokens), logits.tolist(), strict=True))
        assert answer.logits.shape[1] == 10
        assert answer.logits.loc["logit"].to_dict() == pytest.approx(said, rel=1e-9)
        terms = answer.logits.drop("logit").sum()
        assert terms.to_numpy() == pytest.approx(answer.logits.loc["logit"].to_numpy(), rel=1e-9)
        assert answer.objects == (row.object,)
        # as the table of facts has it
        assert answer.logits.columns[0] == row.said
        assert answer.probabilities[0] == pytest.approx(row.said_probability, rel=1e-9)
        assert sum(answer.probabilities) == pytest.approx(1)
        assert answer.attention.sum(axis=1).to_numpy() == pytest.approx(1)


def test_the_object_is_shown_though_it_is_unlikely() -> None:
    db = figure_1()
    layer = drawn(db)
    for row in fact_table(layer, db).itertuples(index=False):
        answer = pair_answer(layer, db, str(row.subject), str(row.predicate), most=1)
        assert answer.logits.columns.tolist() == list(dict.fromkeys([row.said, row.object]))


def test_a_pair_outside_the_domain_has_no_object_and_an_answer() -> None:
    db = figure_1()
    answer = pair_answer(drawn(db), db, "Astrid", "currency", most=2)
    assert answer.objects == ()
    assert answer.logits.shape[1] == 2
    with pytest.raises(UnknownTokenError, match="No subject is called 'Dollar'"):
        pair_answer(drawn(db), db, "Dollar", "currency")
    with pytest.raises(
        InvalidArgumentError, match="`most` must be an integer of at least 1; got 0"
    ):
        pair_answer(drawn(db), db, "Astrid", "currency", most=0)


def test_a_token_that_is_subject_and_predicate_of_a_pair_keeps_both_terms() -> None:
    db = Database.from_triples([("p", "p", "x"), ("a", "p", "y")])
    layer = drawn(db)
    answer = pair_answer(layer, db, "p", "p")
    # an embedding, two heads' terms from each position, and the sum
    assert len(answer.logits) == 6
    rows = np.array([[db.subject_ids[1], db.predicate_ids[0]]])
    best = answer.logits.loc["logit"].to_numpy().max()
    assert best == pytest.approx(pair_logits(layer, rows).max())
