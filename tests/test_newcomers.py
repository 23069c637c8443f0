"""Slips of newcomers are answered by the library's own errors, and briefly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.newcomers.transcript import answers
from tests.oracles import ROOT

SCRIPTS = sorted((ROOT / "tests" / "newcomers").glob("*.txt"))
# what Python itself answers: names that aren't there
PYTHONS = {
    ">>> capacity.rank_intervall",
    ">>> from capacity.rank import rank_intervall",
    ">>> db = capacity.Database.from_numpy(W)",
    ">>> config.layer_rank_bound",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_slips_are_answered_in_words(script: Path, tmp_path: Path) -> None:
    given = list(answers(script, tmp_path))
    assert len(given) > 20
    for typed, answer, _ in given:
        assert "Traceback" not in answer
        assert not answer.endswith(("(exit 1)", "(exit 70)")), answer
        bare = re.search(r"^(\w+Error)\b", answer, re.MULTILINE)
        assert bare is None or typed in PYTHONS, answer
        # a page of help at most
        assert len(answer) < 4500, answer
