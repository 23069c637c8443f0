"""The command line is a contract that other programs read."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from capacity.cli import _run
from capacity.database import Database, load
from capacity.layer import AttentionLayer
from capacity.rank import METHODS
from capacity.sweep import RUNS_SCHEMA
from tests.cli.conftest import PLAN
from tests.commands import run, run_json
from tests.oracles import EXAMPLES, ROOT

FIGURE_1 = str(EXAMPLES / "figure-1.ttl")


def test_rank_prints_the_contracts_object(capsys: pytest.CaptureFixture[str]) -> None:
    got = run_json(capsys, "rank", FIGURE_1)
    assert got == {
        "source": "figure-1.ttl",
        "sha256": hashlib.sha256(Path(FIGURE_1).read_bytes()).hexdigest(),
        "facts_sha256": load(FIGURE_1).facts_sha256,
        "multi": "keep",
        "triples": 8,
        "subjects": 5,
        "predicates": 3,
        "objects": 4,
        "functional": True,
        "multi_valued_pairs": 0,
        "selection": None,
        "bounds": {
            "triples": 8,
            "subject_slices": 6,
            "predicate_slices": 6,
            "object_slices": 6,
            "paper": 6,
            "unfoldings": [5, 3, 4],
        },
        "rank": {
            "lower": 5,
            "upper": 5,
            "closed": True,
            "cited": [],
            "lower_by": "unfolding",
            "upper_by": "spanning tree",
        },
        "effective_rank": None,
        "estimate": None,
    }


def test_rank_answers_what_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    certificate = tmp_path / "made" / "c.json"
    got = run_json(
        capsys, "rank", str(EXAMPLES / "example-2-4.ttl"), "--effective", "--estimate",
        "--effort", "thorough", "--certificate", str(certificate),
    )  # fmt: skip
    assert got["rank"]["lower"] == got["rank"]["upper"] == 5
    assert got["rank"]["closed"] is True
    assert got["effective_rank"]["lower"] == 1
    assert set(got["effective_rank"]) == set(got["rank"])
    assert got["estimate"]["rank"] == 5
    assert got["estimate"]["residual"] < 1e-6
    ends = json.loads(certificate.read_text())
    assert [f"{e['side']} {e['quantity']}" for e in ends] == [
        "lower rank", "upper rank", "lower effective_rank", "upper effective_rank",
    ]  # fmt: skip
    assert {e["facts_sha256"] for e in ends} == {got["facts_sha256"]}


def test_rank_takes_a_policy_and_warns_without_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "multi.tsv"
    path.write_text("a\tp\tx\na\tp\ty\n")
    code, out, err = run(capsys, "rank", str(path), "--json")
    assert code == 0
    assert json.loads(out)["multi_valued_pairs"] == 1
    assert err.startswith("capacity: 1 of 1 (subject, predicate) pairs have several objects")
    assert run_json(capsys, "rank", str(path), "--multi", "first")["triples"] == 1
    assert run_json(capsys, "rank", str(path), "--multi", "keep")["triples"] == 2
    code, out, err = run(capsys, "rank", str(path), "--multi", "error")
    assert (code, out) == (2, "")
    assert "drop-predicate" in err


def test_rank_reads_well_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "rank", FIGURE_1, "--effective", "--estimate")
    assert code == 0
    assert "8 triples: 5 subjects x 3 predicates x 4 objects" in out
    assert "no certificate" in out


def test_a_table_is_read_as_the_options_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    people = tmp_path / "people.csv"
    people.write_text("name,born,city\nBob,1980,Rome\nAnn,1990,\n")
    code, out, err = run(capsys, "rank", str(people))
    assert (code, out) == (2, "")
    assert "one column per property" in err
    # Bob has two properties, Ann one; or three rows are three facts
    assert run_json(capsys, "rank", str(people), "--table", "wide")["triples"] == 3
    assert run_json(capsys, "describe", str(people), "--table", "wide")["triples"] == 3
    long = run_json(capsys, "rank", str(people), "--table", "long")
    assert (long["triples"], long["predicates"], long["selection"]) == (3, 3, None)
    born = ["--table", "wide", "--column", "name", "--column", "born"]
    assert run_json(capsys, "rank", str(people), *born)["triples"] == 2
    quoted = tmp_path / "quoted.tsv"
    quoted.write_text('_:a\t_:p\t"b"\n')
    assert run(capsys, "rank", str(quoted))[0] == 2
    facts = run_json(capsys, "rank", str(quoted), "--table", "n3")
    assert facts["facts_sha256"] == load(quoted, table="n3").facts_sha256
    weighted = tmp_path / "weighted.tsv"
    weighted.write_text("0.5\ta\tp\tb\n")
    chosen = [word for i in "123" for word in ("--column", i)]
    assert run_json(capsys, "rank", str(weighted), *chosen)["triples"] == 1
    for option in (["--table", "wide"], ["--column", "0", "--column", "1"]):
        code, _, err = run(capsys, "rank", FIGURE_1, *option)
        assert code == 2
        assert "is an option of tables" in err
        code, _, err = run(capsys, "rank", "tensor.npy", *option)
        assert code == 2
        assert f"{option[0]} is about files of facts" in err


def test_folders_and_patterns_are_files_of_facts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.nt").write_text("<x:a> <x:p> <x:b> .\n")
    (tmp_path / "b.csv").write_text("a,q,b\n")
    pattern, certificate = str(tmp_path / "*.*"), tmp_path / "certificate"
    got = run_json(capsys, "rank", pattern, "--certificate", str(certificate))
    assert (got["source"], got["triples"]) == ("*.* (2 files)", 2)
    code, out, err = run(capsys, "rank", str(tmp_path), "--json")
    assert code == 0
    assert json.loads(out)["facts_sha256"] == got["facts_sha256"]
    assert "Of 3 files and folders" in err
    assert run_json(capsys, "verify", str(certificate), str(tmp_path / "*.[nc]*"))["proved"] is True
    # as a shell does with a pattern that isn't in quotes
    several = run_json(capsys, "rank", str(tmp_path / "a.nt"), str(tmp_path / "b.csv"))
    assert several["facts_sha256"] == got["facts_sha256"]


def test_a_base_and_contexts_are_given_as_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts, copy = tmp_path / "a.jsonld", tmp_path / "c.jsonld"
    facts.write_text('{"@context": "http://c/?v=2", "@id": "Ada", "name": "Ada"}')
    copy.write_text('{"@context": {"name": "x:name"}}')
    code, _, err = run(capsys, "rank", str(facts))
    assert code == 2
    assert "--context 'http://c/?v=2=context.jsonld'" in err
    options = ["--context", f"http://c/?v=2={copy}"]
    names = {
        tuple(base): run_json(capsys, "rank", str(facts), *options, *base)["facts_sha256"]
        for base in ([], ["--base", "http://e/"], ["--base", "http://f/"])
    }
    assert len(set(names.values())) == 3
    code, _, err = run(capsys, "rank", str(facts), "--context", str(copy))
    assert code == 2
    assert "a file of contexts must be a JSON object" in err
    assert f"--context IRI={copy}" in err
    code, _, err = run(capsys, "rank", str(facts), "--context", "http://c/=")
    assert code == 2
    assert "must be the IRI of a context, =, and the file" in err


def test_train_prints_its_row_and_writes_its_layer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sizes = ["--d-model", "3", "--n-heads", "2", "--d-head-qk", "1", "--d-head-vo", "2"]
    (row,) = run_json(
        capsys,
        "train",
        FIGURE_1,
        *sizes,
        "--epochs",
        "30",
        "--device",
        "cpu",
        "--out",
        str(tmp_path),
    )
    assert list(row) == RUNS_SCHEMA.names
    assert (row["d_model"], row["n_heads"], row["d_head_qk"], row["d_head_vo"]) == (3, 2, 1, 2)
    assert row["epochs"] == 30
    layer = AttentionLayer.load(tmp_path)
    assert layer.config.name == row["layer_id"]
    assert json.loads((tmp_path / "run.json").read_text()) == row
    code, out, _ = run(capsys, "train", FIGURE_1, "--epochs", "3")
    assert code == 0
    assert "completed after 3 epochs" in out


def test_training_on_several_answers_is_an_error_without_a_policy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "multi.tsv"
    path.write_text("a\tp\tx\na\tp\ty\n")
    code, _, err = run(capsys, "train", str(path))
    assert code == 2
    assert "multi.tsv: " in err
    assert "first, majority, set, drop-pair or drop-predicate" in err
    code, _, err = run(capsys, "train", str(path), "--multi", "keep", "--epochs", "1")
    assert code == 2
    assert "needs one object" in err
    (row,) = run_json(capsys, "train", str(path), "--multi", "first", "--epochs", "1")
    assert row["n_triples"] == 1


@pytest.mark.slow
def test_sweep_and_grid_print_their_tables(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    out = tmp_path / "out"
    rows = run_json(capsys, "sweep", str(tmp_path / "plan.toml"), "--out", str(out))
    assert len(rows) == 4
    assert list(rows[0]) == RUNS_SCHEMA.names
    code, text, _ = run(
        capsys, "sweep", str(tmp_path / "plan.toml"), "--out", str(out), "--shard", "0/1"
    )
    assert code == 0
    assert "4 of 4 runs done" in text
    code, text, _ = run(
        capsys, "sweep", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "b"), "--shard", "8/9"
    )
    assert (code, "0 of 4 runs done" in text) == (0, True)
    code, _, err = run(capsys, "grid", str(out), "--out", str(tmp_path / "figure"))
    assert code == 2
    assert "--out must name a figure (.png, .svg, .pdf) or a table (.csv, .parquet)" in err
    cells = run_json(capsys, "grid", str(out), "--tau", "argmax", "--out", str(tmp_path / "g.png"))
    assert sum(cell["n_runs"] for cell in cells) == 4
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    code, text, _ = run(capsys, "grid", str(out))
    assert code == 0
    assert "layer_rank_bin" in text
    # the same cells in a file, and where they are
    for name in ("new/g.csv", "g.parquet"):
        path = tmp_path / name
        code, text, _ = run(capsys, "grid", str(out), "--tau", "argmax", "--out", str(path))
        assert (code, text.splitlines()[-1]) == (0, f"table: {path}")
        table = pd.read_csv(path) if name.endswith("csv") else pd.read_parquet(path)
        pd.testing.assert_frame_equal(table, pd.DataFrame(cells), check_dtype=False)


WRONG = {
    "no command": ([], 2, "Usage"),
    "unknown command": (["frobnicate"], 2, "No such command"),
    "unknown policy": (["rank", FIGURE_1, "--multi", "last"], 2, "drop-predicate"),
    "unknown effort": (["rank", FIGURE_1, "--effort", "extreme"], 2, "thorough"),
    "unknown format": (["rank", FIGURE_1, "--format", "hdt"], 2, "figure-1.ttl: unknown format"),
    "missing file": (["rank", "none.ttl"], 2, "none.ttl: no such file"),
    "a folder without facts": (
        ["rank", str(EXAMPLES.parent / "tools")],
        2,
        "tools: it is a folder without a file whose",
    ),
    "impossible layer": (
        ["train", FIGURE_1, "--d-model", "2", "--d-head-qk", "3"],
        2,
        "`d_head_qk` must be at most",
    ),
    "uneven heads": (["train", FIGURE_1, "--n-heads", "3"], 2, "`d_head_qk` may be omitted only"),
    "missing plan": (["sweep", "none.toml", "--out", "x"], 2, "none.toml: must be a readable TOML"),
    "bad shard": (["sweep", "PLAN", "--out", "x", "--shard", "3"], 2, "--shard must read i/N"),
    "no sweep": (["grid", str(EXAMPLES)], 2, "must be the folder of a sweep"),
    "a method's misspelt word": (
        ["rank", FIGURE_1, "--method", "kozul"],
        2,
        "Did you mean `Koszul flattening`?",
    ),
    "no file": (["rank"], 2, "Missing argument 'files'. See `capacity rank --help`."),
    "unknown option": (["rank", "x", "--efort", "quick"], 2, "--effort"),
    "digits without end": (["rank", FIGURE_1, "--seed", "9" * 5000], 2, "--seed"),
    "an effort without end": (["rank", FIGURE_1, "--effort", "z" * 5000], 2, "quick"),
    "a name that rings": (["rank", "a\x1b[31m\n\x07b"], 2, r"a\x1b[31m\n\x07b: no such file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_exits_with_2_and_one_message(
    case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, code, message = WRONG[case]
    (tmp_path / "PLAN").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    got, out, err = run(capsys, *arguments)
    assert got == code
    assert message in out + err
    assert "Traceback" not in err
    assert out == ""
    if arguments:
        assert err.startswith("capacity: ")
        assert err.count("\n") == 1
        assert len(err) < 480


def test_an_internal_error_exits_with_70(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import capacity.rank.analysis as analysis

    def broken(db: Database) -> None:
        raise ValueError("not the user's")

    monkeypatch.setattr(analysis, "database_bounds", broken)
    code, _, err = run(capsys, "rank", FIGURE_1)
    assert code == 70
    assert err.startswith("Traceback")
    assert err.endswith("capacity: internal error; please report this traceback.\n")


def test_an_interrupt_exits_with_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import capacity.rank.analysis as analysis

    def interrupted(db: Database) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(analysis, "database_bounds", interrupted)
    assert run(capsys, "rank", FIGURE_1)[0] == 130


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert run(capsys, "--version")[1].strip() == version("knowledge-capacity")


@pytest.mark.parametrize("options", [(), ("--effective",)])
def test_an_interrupted_search_prints_the_best_interval_so_far(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    facts = tmp_path / "product.tsv"
    # 2 x 2 matrices, as facts: unfoldings 4, slices 8, rank 7
    product = [(i, j, k) for i in "01" for j in "01" for k in "01"]
    facts.write_text("".join(f"a{i}{j}\tb{j}{k}\tc{i}{k}\n" for i, j, k in product))

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    methods = [
        replace(method, find=interrupted) if method.name == "Alder-Strassen" else method
        for method in METHODS
    ]
    monkeypatch.setattr("capacity.rank.search.methods.METHODS", methods)
    certificate = tmp_path / "certificate.json"
    arguments = ("rank", str(facts), *options, "--json", "--certificate", str(certificate))
    code, out, err = run(capsys, *arguments)
    assert code == 130
    assert "interrupted; the intervals hold" in err
    found = json.loads(out)["rank"]
    # without the theorem that shows 7
    assert 4 <= found["lower"] < 7 <= found["upper"] <= 8
    code, _, _ = run(capsys, "verify", str(certificate), str(facts))
    assert code == 0


def test_a_seed_out_of_range_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "rank", FIGURE_1, "--seed", "-1")
    assert (code, out) == (2, "")
    assert "--seed" in err


def test_a_dry_run_prints_the_plan_and_trains_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    demo, out = "experiments/configs/demo.toml", tmp_path / "out"
    plan = run_json(capsys, "sweep", demo, "--dry-run", "--out", str(out))
    assert (plan["runs"], plan["databases"]) == (90, 17)
    assert not out.exists()
    code, text, _ = run(capsys, "sweep", demo, "--dry-run")
    assert code == 0
    assert "90, in 1 shard\n" in text
    assert f"at most about {plan['seconds']:.1f} seconds on one core" in text
    # what is needed before the first run is part of it
    parts = [plan[f"seconds_{part}"] for part in ("to_start", "of_ranks", "of_runs")]
    assert min(parts) > 0
    assert plan["seconds"] == pytest.approx(sum(parts), abs=0.2)
    two = run_json(capsys, "sweep", demo, "--dry-run", "--workers", "2")
    assert two["seconds_of_runs"] < plan["seconds_of_runs"]
    code, _, err = run(capsys, "sweep", demo, "--dry-run", "--workers", "0")
    assert code == 2
    assert "`workers` must be an integer of at least 1" in err
    # but where it trains there must be a folder
    code, _, err = run(capsys, "sweep", demo)
    assert code == 2
    assert "--out must name the folder" in err


def test_a_misspelt_option_or_value_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, nearest in (
        (["rank", "a.ttl", "--effort", "quik"], "Did you mean `quick`?"),
        (["rank", "a.ttl", "--multi", "majorty"], "Did you mean `majority`?"),
        (["rnak", "a.ttl"], "Did you mean 'rank'?"),
        (["rank", str(EXAMPLES / "figure-1.ttl"), "--format", "turtel"], "Did you mean `turtle`?"),
    ):
        assert _run(arguments) == 2
        said = capsys.readouterr().err
        assert nearest in said
        assert "?." not in said
        assert len(said.splitlines()) == 1
