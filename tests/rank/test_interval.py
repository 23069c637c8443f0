import json

import pytest
from hypothesis import given

from capacity.database import Database
from capacity.rank import Certificate, effective_rank_interval, rank_interval
from capacity.testing import databases
from tests.oracles import figure_1


@given(databases())
def test_certificates_survive_json(db: Database) -> None:
    for interval in (rank_interval(db), effective_rank_interval(db)):
        for end in (interval.lower, interval.upper):
            assert Certificate.from_dict(json.loads(json.dumps(end.to_dict()))) == end


@given(databases())
def test_certificates_name_their_facts_and_add_up(db: Database) -> None:
    interval = rank_interval(db)
    for end in (interval.lower, interval.upper):
        assert end.facts_sha256 == db.facts_sha256
        assert end.multi == db.multi
        assert sum(part.value for part in end.parts) == end.value
        assert sum(part.n_facts for part in end.parts) == db.n_triples


def test_components_choose_their_own_modes() -> None:
    lower = rank_interval(figure_1()).lower
    # people x {born, lives}: subject unfolding of rank 3; countries: rank 2
    assert sorted((part.n_facts, part.value) for part in lower.parts) == [(2, 2), (6, 3)]


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ValueError, match="quick, standard, thorough"):
        rank_interval(figure_1(), effort="extreme")  # type: ignore[arg-type]
