"""Run the command line as a user does, within the process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capacity.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    assert isinstance(end.value.code, int)
    out, err = capsys.readouterr()
    return end.value.code, out, err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)
