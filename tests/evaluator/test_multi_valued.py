import math
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.evaluator import evaluate, evaluate_objects, multi_valued
from capacity.layer import AttentionLayer, LayerConfig
from capacity.testing import databases, layers
from tests.tiers import examples


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_each_number_is_its_definition(data: st.DataObject) -> None:
    db = data.draw(databases())
    layer = data.draw(layers(db.n_tokens))
    weights = np.array(
        data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=len(db), max_size=len(db)))
    )
    found = evaluate_objects(layer, db, weights)
    of: dict[tuple[int, ...], dict[int, float]] = {}
    for (*key, v), w in zip(db.token_triples.tolist(), weights, strict=True):
        of.setdefault(tuple(key), {})[v] = w
    divergences, sets, majorities = [], [], []
    for key, objects in of.items():
        z = layer(torch.tensor([key]))[0, -1].detach().double().numpy()
        log_q = z - z.max() - math.log(np.exp(z - z.max()).sum())
        p = {v: w / sum(objects.values()) for v, w in objects.items()}
        divergences.append(sum(p[v] * (math.log(p[v]) - log_q[v]) for v in p))
        outside = [z[v] for v in range(len(z)) if v not in objects]
        sets.append(not outside or min(z[v] for v in objects) > max(outside))
        most = [v for v in p if objects[v] == max(objects.values())]
        if len(most) == 1:
            others = np.delete(z, most[0])
            majorities.append(not len(others) or z[most[0]] > others.max())
    assert found.divergence == pytest.approx(np.mean(divergences), rel=1e-9, abs=1e-12)
    assert found.sets == pytest.approx(np.mean(sets))
    assert (found.n_pairs, found.n_majorities) == (len(of), len(majorities))
    if majorities:
        assert found.majority == pytest.approx(np.mean(majorities))
    else:
        assert math.isnan(found.majority)


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_of_functional_databases_it_is_accuracy(data: st.DataObject) -> None:
    db = data.draw(databases(functional=True))
    layer = data.draw(layers(db.n_tokens))
    found = evaluate_objects(layer, db)
    assert found.majority == found.sets == evaluate(layer, db).argmax


def test_ties_are_no_majority_and_no_set() -> None:
    db = Database.from_triples([("a", "p", "x"), ("a", "p", "y"), ("b", "p", "z")], multi="keep")
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    logits = np.zeros((2, db.n_tokens))
    with patch.object(multi_valued, "pair_logits", lambda *_: logits):
        found = evaluate_objects(layer, db)
    # of the pair (a, p) no object is likeliest, and (b, p) is tied with all tokens
    assert (found.n_majorities, found.majority, found.sets) == (1, 0, 0)
    # p = (1/2, 1/2) and (1), q = 1/6
    n = db.n_tokens
    assert found.divergence == pytest.approx((math.log(n / 2) + math.log(n)) / 2)


def test_a_layer_whose_logits_are_not_finite_has_no_numbers() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        layer.W_U.fill_(math.inf)
    found = evaluate_objects(layer, db)
    assert all(map(math.isnan, (found.divergence, found.majority, found.sets)))
