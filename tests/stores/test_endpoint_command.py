"""The commands rank and describe count the facts of endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capacity import load
from capacity.database import write
from tests.commands import run
from tests.endpoints import Oxigraph, needs_oxigraph, oxigraph, says, serving
from tests.oracles import EXAMPLES


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oxigraph]:
    folder = tmp_path_factory.mktemp("store")
    write(load(EXAMPLES / "countries.ttl", multi="keep"), folder / "countries.nt")
    with oxigraph(folder / "data") as server:
        text = (folder / "countries.nt").read_text()
        server.hold(text + "<x:a> <x:p> <x:b> <x:g> .\n")
        yield server


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[Any, str]:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out), err


@pytest.mark.slow
@needs_oxigraph
def test_rank_prints_the_counted_interval(
    capsys: pytest.CaptureFixture[str], real: Oxigraph, tmp_path: Path
) -> None:
    found, err = asked(capsys, "rank", real.sparql, "--graph", "default")
    assert err == "capacity: the facts are those of the endpoint's default graph\n"
    assert found["source"] == real.sparql
    assert found["selection"]["options"] == {"graph": "default"}
    # the same as those of a file, which loads them
    code, out, _ = run(capsys, "rank", EXAMPLES / "countries.ttl", "--json")
    loaded = json.loads(out)
    assert code == 0
    assert loaded.keys() <= found.keys()
    same = ("triples", "subjects", "predicates", "objects", "functional", "multi_valued_pairs")
    assert {name: found[name] for name in same} == {name: loaded[name] for name in same}
    assert found["bounds"]["paper"] == loaded["bounds"]["paper"]
    assert found["rank"]["lower"] <= loaded["rank"]["upper"]
    assert loaded["rank"]["lower"] <= found["rank"]["upper"]
    code, out, _ = run(capsys, "rank", real.sparql, "--graph", "default")
    rank = found["rank"]
    assert f"[{rank['lower']}, {rank['upper']}]   counted" in out
    assert "load a part of them by Database.from_sparql" in out


@needs_oxigraph
def test_describe_prints_a_row_a_predicate(
    capsys: pytest.CaptureFixture[str], real: Oxigraph
) -> None:
    found, err = asked(capsys, "describe", real.sparql)
    assert "the default graph and all named graphs" in err
    assert found["selection"] is None
    assert sum(row["facts"] for row in found["predicates"]) == found["triples"]
    # one fact more, and a predicate of its own, than the file
    code, out, _ = run(capsys, "describe", EXAMPLES / "countries.ttl", "--json")
    assert code == 0
    assert found["triples"] == json.loads(out)["triples"] + 1
    code, out, _ = run(capsys, "describe", real.sparql, "--graph", "x:g", "--timeout", "60")
    assert code == 0
    assert "1 facts, 1 x 1 x 1; functional; rank in [1, 1]" in out


@pytest.mark.parametrize(
    ("command", "option"),
    [("rank", ["--effort", "standard"]), ("rank", ["--certificate", "c.json"]),
     ("rank", ["--multi", "first"]), ("rank", ["--literals", "drop"]),
     ("rank", ["--out-of-core"]), ("rank", ["--memory-limit", "1GB"]),
     ("rank", ["--format", "turtle"]), ("describe", ["--as", "turtle"]),
     ("describe", ["--predicate", "x:p"]), ("describe", ["--base", "x:b"])],
)  # fmt: skip
def test_options_that_need_the_facts_are_refused(
    capsys: pytest.CaptureFixture[str], command: str, option: list[str]
) -> None:
    code, out, err = run(capsys, command, "http://127.0.0.1:9/sparql?key=s3cret", *option)
    assert (code, out) == (2, "")
    assert f"{option[0]} needs the facts, and an endpoint counts its facts itself" in err
    assert "s3cret" not in err


@pytest.mark.parametrize("command", ["rank", "describe"])
def test_troubles_end_in_one_line_without_secrets(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with serving(says("<html>", type="text/html")) as server:
        code, out, err = run(capsys, command, f"{server.url}?key=s3cret")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "often ends in /sparql" in err
    with serving(says("", status=401)) as server:
        code, out, err = run(capsys, command, f"{server.url}?key=s3cret")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Set CAPACITY_SPARQL_USER" in err
    assert "s3cret" not in err
    code, out, err = run(capsys, command, "https://ann:s3cret@127.0.0.1/")
    assert (code, out) == (2, "")
    assert "s3cret" not in err
    code, _, err = run(capsys, command, "http://127.0.0.1:9/", "--graph", "people")
    assert (code, "`--graph` must be an absolute IRI" in err) == (2, True)


def test_a_slow_endpoint_is_told_with_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    import time

    with serving(lambda _handler, _asked: time.sleep(2)) as server:
        code, _, err = run(capsys, "rank", server.url, "--timeout", "0.2")
    assert code == 2
    assert "silent for 0.2 seconds" in err
    assert "raise `--timeout`" in err
    code, _, err = run(capsys, "rank", server.url, "--timeout", "0")
    assert (code, "`--timeout` must be a positive number" in err) == (2, True)


def test_the_time_out_is_an_option_of_endpoints(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "rank", EXAMPLES / "figure-1.ttl", "--timeout", "5")
    assert (code, "--timeout is an option of endpoints" in err) == (2, True)
    # what takes no endpoint says so as before
    code, _, err = run(capsys, "verify", "c.json", "https://example.org/sparql")
    assert (code, "Traceback" in err) == (2, False)
