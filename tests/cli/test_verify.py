"""``capacity verify`` says what was proved, and of which facts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capacity.database import load, write_tsv
from capacity.database.policy import POLICIES
from capacity.rank import Boxes, load_certificates, rank_interval, save_certificates
from tests.commands import run
from tests.oracles import EXAMPLES, database
from tests.second_checker import claim

FIGURE_1 = str(EXAMPLES / "figure-1.ttl")


@pytest.fixture
def several(tmp_path: Path) -> tuple[Path, Path]:
    """120 facts, 8 of whose pairs have one object, and a certificate about what is left of them.

    The predicate p0 alone has no multi-valued pair, and all its 8 facts have one object: rank 1.
    """
    rows = [(f"s{i}", f"p{j}", f"o{(i * j) % 8}") for i in range(8) for j in range(8)]
    rows += [(f"s{i}", f"p{j}", "x") for i in range(8) for j in range(1, 8)]
    facts, certificate = tmp_path / "facts.tsv", tmp_path / "c.json"
    facts.write_text("".join("\t".join(row) + "\n" for row in rows))
    left = load(facts, multi="drop-predicate")
    interval = rank_interval(left)
    assert (len(rows), left.n_triples, str(interval)) == (120, 8, "[1, 1]")
    save_certificates(interval, certificate)
    return facts, certificate


def test_certificates_are_written_and_verified(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    certificate = tmp_path / "c.json"
    code, _, _ = run(capsys, "rank", FIGURE_1, "--effective", "--certificate", certificate)
    assert code == 0
    code, out, err = run(capsys, "verify", certificate, FIGURE_1, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "proved": True,
        "selection": None,
        "certificates": [
            {"quantity": quantity, "side": side, "value": 5, "multi": "keep", "facts": 8, "of": 8,
             "proved": True, "reason": None, "cited": []}
            for quantity in ("rank", "effective_rank") for side in ("lower", "upper")
        ],
        "lower": 5,
        "upper": 5,
        "reason": None,
    }  # fmt: skip
    code, out, _ = run(capsys, "verify", certificate, FIGURE_1)
    assert code == 0
    assert "upper bound 5 of the rank, for all 8 facts (multi=keep): proved" in out
    assert "lower bound 5 of the effective rank, for all 8 facts (multi=keep): proved" in out
    # a bound that isn't proved: exit code 1, with the step
    ends = json.loads(certificate.read_text())
    ends[0]["value"] += 1
    certificate.write_text(json.dumps(ends))
    code, out, _ = run(capsys, "verify", certificate, FIGURE_1, "--json")
    assert code == 1
    got = json.loads(out)
    assert (got["proved"], got["lower"], got["upper"]) == (False, None, 5)
    assert [one["proved"] for one in got["certificates"]] == [False, True, True, True]
    assert got["certificates"][0]["reason"] == "the arguments prove 5"
    assert got["reason"] == (
        "lower bound 6 of the rank, for all 8 facts (multi=keep): not proved, the arguments prove 5"
    )
    # other facts, and a damaged file: exit code 2
    code, out, err = run(capsys, "verify", certificate, EXAMPLES / "example-2-4.ttl")
    assert (code, out) == (2, "")
    assert "c.json: The certificate must be for the facts" in err
    certificate.write_text("[")
    code, _, err = run(capsys, "verify", certificate, FIGURE_1)
    assert code == 2
    assert "c.json must hold certificates" in err


def test_verify_says_how_many_of_the_files_facts_a_bound_is_about(
    capsys: pytest.CaptureFixture[str], several: tuple[Path, Path]
) -> None:
    facts, certificate = several
    code, out, err = run(capsys, "verify", certificate, facts)
    assert (code, err) == (0, "")
    assert "for 8 of the file's 120 facts (multi=drop-predicate): proved" in out
    got = json.loads(run(capsys, "verify", certificate, facts, "--json")[1])
    assert {(one["multi"], one["facts"], one["of"]) for one in got["certificates"]} == {
        ("drop-predicate", 8, 120)
    }


def test_verify_insists_on_a_policy_that_is_named(
    capsys: pytest.CaptureFixture[str], several: tuple[Path, Path]
) -> None:
    facts, certificate = several
    assert run(capsys, "verify", certificate, facts, "--multi", "drop-predicate")[0] == 0
    code, out, err = run(capsys, "verify", certificate, facts, "--multi", "keep")
    assert (code, out) == (2, "")
    assert "must be about the facts under multi=keep; one is about those under multi=drop-" in err


def test_verify_tells_of_each_certificate_of_one_side(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts, certificate = tmp_path / "facts.tsv", tmp_path / "c.json"
    facts.write_text("a\tp\tx\nb\tq\ty\n")
    db = load(facts)
    # each fact in a box of its own proves 2; both in one box prove nothing
    two, one = (claim(db, Boxes(np.array(box)), side="upper") for box in ([0, 1], [0, 0]))
    save_certificates([two, one, two], certificate)
    code, out, _ = run(capsys, "verify", certificate, facts, "--json")
    got: dict[str, Any] = json.loads(out)
    assert (code, got["proved"], got["upper"]) == (1, False, 2)
    assert [(x["value"], x["proved"]) for x in got["certificates"]] == [
        (2, True), (1, False), (2, True),
    ]  # fmt: skip


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "error"])
def test_a_policy_makes_the_same_facts_of_a_file_and_of_its_database(
    several: tuple[Path, Path], policy: Any
) -> None:
    facts, _ = several
    every = load(facts, multi="keep")
    assert every.with_policy(policy).facts_sha256 == load(facts, multi=policy).facts_sha256


def test_certificates_under_several_policies_are_checked_each_under_its_own(
    capsys: pytest.CaptureFixture[str], several: tuple[Path, Path]
) -> None:
    facts, certificate = several
    ends = [
        end
        for policy in ("keep", "drop-predicate")
        for interval in [rank_interval(load(facts, multi=policy))]
        for end in interval.certificates
    ]
    save_certificates(ends, certificate)
    got = json.loads(run(capsys, "verify", certificate, facts, "--json")[1])
    assert got["proved"]
    assert [one["facts"] for one in got["certificates"]] == [120, 120, 8, 8]
    # bounds about other facts each are no interval
    assert (got["lower"], got["upper"]) == (None, None)


def test_a_large_file_of_certificates_is_refused_before_it_is_parsed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts, certificate = tmp_path / "facts.tsv", tmp_path / "c.json"
    facts.write_text("a\tp\tx\n")
    db = load(facts)
    save_certificates([rank_interval(db).certificates.upper], certificate)
    padded = certificate.read_text() + " " * 1000
    certificate.write_text(padded)
    limit = ("--max-certificate-bytes", len(padded) - 1)
    code, _, err = run(capsys, "verify", certificate, facts, *limit)
    assert code == 2
    assert "holds more than" in err
    assert run(capsys, "verify", certificate, facts, "--max-certificate-bytes", len(padded))[0] == 0
    # 64 MiB unless asked: a file that is no JSON at all, and would take long to be found so
    with certificate.open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    code, _, err = run(capsys, "verify", certificate, facts)
    assert code == 2
    assert "holds more than 67,108,864 bytes" in err


def test_a_file_of_lists_of_nothing_is_refused_before_it_is_parsed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    certificate = tmp_path / "c.json"
    keys = ",".join(f'"{i}":1' for i in range(600_000))
    for text, said in [
        ("[" + "[]," * 6_000_000 + "1]", "5,000,000 lists and objects"),
        ("[" + "{}," * 6_000_000 + "1]", "5,000,000 lists and objects"),
        ("[{" + keys + "}]", "500,000 keys"),
        ("[" + '"й",' * 5_000_000 + "1]", "8,000,000 quotation marks"),
    ]:
        certificate.write_text(text)
        code, _, err = run(capsys, "verify", certificate, FIGURE_1)
        assert code == 2
        assert f"more than {said}" in err


@pytest.mark.slow
def test_a_repeated_key_is_found_in_one_pass(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # 400,000 keys, the last of them again: each was once looked for among all before it
    certificate = tmp_path / "c.json"
    keys = ",".join(f'"{i}":1' for i in [*range(400_000), 399_999])
    certificate.write_text("[{" + keys + "}]")
    code, _, err = run(capsys, "verify", certificate, FIGURE_1)
    assert code == 2
    assert "the key '399999' comes twice" in err


def test_what_is_too_costly_to_check_says_so_and_names_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    certificate, facts = tmp_path / "c.json", tmp_path / "facts.tsv"
    n = 5_000
    write_tsv(database([(i, i, i) for i in range(n)]), facts)
    db = load(facts)
    one = [list(range(n)), ["1"] * n]
    data = claim(db, Boxes(np.arange(n)), side="upper").to_dict()
    data |= {"value": 1, "arguments": [{"kind": "decomposition", "terms": [[one, one, one]]}]}
    certificate.write_text(json.dumps([data]))
    assert len(load_certificates(certificate)) == 1
    code, out, err = run(capsys, "verify", certificate, facts)
    assert (code, out) == (2, "")
    assert err.startswith(f"capacity: {certificate}: The certificate is too costly to check")
    assert err.count("\n") == 1
