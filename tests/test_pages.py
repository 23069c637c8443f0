"""The pages of results say what the committed conclusions say, and nothing else."""

from __future__ import annotations

import importlib
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from capacity.evaluator.laws import bootstrap
from experiments import EXPERIMENTS
from experiments.common import pages
from experiments.common.conclusions import rounded
from experiments.common.harness import COSTS, read_table, results_of
from tests.oracles import ROOT

HERE = ROOT / "experiments"
# their intervals take a minute each to draw again
LONGEST = {"additive_motif", "capacity_law", "completion", "failures", "figures", "logit_scale",
           "nonsense", "starts"}  # fmt: skip
PAPERS = [page for page in pages.PAGES if (HERE / page).with_name("claims.toml").exists()]

# numbers that are no results: of the papers' parts, thresholds and sizes that a sentence is about
REFERENCES = re.compile(
    r"""
    \b(?:Figures?|Tables?|Proposition|Prop\.|sections?|Section|Examples?|Remark|footnote|Appendix)\s
        [A-Z]?\d+(?:\.\d+)*[a-z]?(?:(?:,|\sto)\s\d+(?:\.\d+)+)*(?![\d.]*\d)
    | ^\#+\s\d+\.                                      # a heading
    | \((?:[1-9]|1[0-5])\)                              # an equation of Wong 2025
    | \b(?:Wong|al\.|TACL|Marasovic|Owen|Miller|Holm|Bietti)[,)]?\s\(?(?:[A-Z]+\s)?
        (?:19|20)\d\d\b(?!\.\d)
    | \(?\b\d{4}\.\d{5}\b\)?                           # arXiv
    | \bP[1-4]\b                                       # the conditions of Bhardwaj et al.
    | \b[EH][1-9]\b                                    # a hypothesis
    | \bof\s95\s%(?=[.,\s])                            # the level of intervals
    | \+\s1\b                                         # min(|K|, |Q|) + 1
    | \b0/1\b | \b(?:b?float(?:8|16|32|64)|int8)\b | \bFigure\s3,\sfactors
    | \btau\s=\s0\.(?:5|75|95|99)\b | \bsoftmax\s>=\s0\.(?:75|95|99)(?:,\s0\.95\sand\s0\.99)?
    | \b(?:d_model|d_head_qk|d_head_vo|n_heads)\s(?:=\s|from\s)?\d+
        (?:(?:,|\sto|\sand)\s\d+)*(?!\.?\d)
    | \bbounds?\s(?:of\s)?\d+(?:\sto\s\d+)?(?!\.?\d)
    """,
    re.VERBOSE | re.MULTILINE,
)


def without_code(text: str) -> str:
    """A template without what is filled in, code, and targets of links."""
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_what_its_template_and_the_conclusions_give(page: str) -> None:
    assert (HERE / page).read_text(encoding="utf-8") == pages.rendered(page)


def hand_written(text: str, page: str = "") -> list[str]:
    """Words with digits that are neither filled in, nor code, nor one of the phrases above."""
    text = " ".join(without_code(text).replace("\n#", "\n\n#").split(" "))
    for phrase in CHOSEN.get(page, ()):
        text = text.replace(phrase, " ")
    return re.findall(r"[^\s|]*\d[^\s|]*", REFERENCES.sub(" ", text))


@pytest.mark.parametrize("page", pages.PAGES)
def test_no_number_of_a_result_is_written_by_hand(page: str) -> None:
    template = (HERE / f"{page}.j2").read_text(encoding="utf-8")
    assert not hand_written(template, page)


@pytest.mark.parametrize("page", PAPERS)
def test_claims_have_a_verdict_and_numbers_of_the_conclusions(page: str) -> None:
    rows = tomllib.loads((HERE / page).with_name("claims.toml").read_text())["claim"]
    assert len(rows) >= 15
    for row in rows:
        assert row["verdict"] in pages.VERDICTS
        for key in ("where", "number"):
            assert not hand_written(row.get(key, ""), page), row
        if row["verdict"] == "not tested":
            # with what a test would take
            told = f"{row.get('where', '')} {row.get('number', '')}"
            assert re.search("takes|needs|others did", told), row


def test_a_number_that_is_written_by_hand_is_found() -> None:
    assert hand_written("It is right on 0.84 [0.82, 0.87] of the facts.") == [
        "0.84", "[0.82,", "0.87]"
    ]  # fmt: skip
    for result in ("77 % of the runs", "the gap 0.84", "a mean accuracy of 0.97", "(339) layers",
                   "2026 runs", "median c 1.2", "at 0.88", "topic 5.3", "dimensions 12 to 300",
                   "11 % [15, 20]"):  # fmt: skip
        assert hand_written(result, "facts/README.md"), result
    assert not hand_written("In Figure 3 at tau = 0.95 (equation (9), d_model 4) it is {{ x }}.")


def test_another_verdict_is_refused(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(
        '[[claim]]\nsection = "1"\nsays = "a"\nverdict = "refuted"\nnumber = ""\nlink = ""\n'
    )
    with pytest.raises(ValueError, match="'refuted' is none of holds"):
        pages.claims_of(tmp_path, Environment())


@pytest.mark.parametrize("wrong", [None, "0.5", {"interval": [0, 1]}, {"mean": None}])
def test_a_page_refuses_what_is_no_number(wrong: Any) -> None:
    with pytest.raises(ValueError, match="asks for a number"):
        pages.num(wrong)


def test_numbers_are_written_as_the_field_does() -> None:
    found = {"mean": 0.7671, "interval": [0.7512, 0.7844], "n_runs": 12345}
    assert (pages.ci(found), pages.pct_ci(found)) == ("0.77 [0.75, 0.78]", "77 % [75, 78]")
    assert pages.num(found["n_runs"], 0) == "12,345"
    assert pages.ci({"slope": -0.01, "interval": [-0.02, 0]}, 3) == "-0.010 [-0.020, 0.000]"


@pytest.mark.parametrize("page", pages.PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    text = (HERE / page).read_text(encoding="utf-8")
    folder = (HERE / page).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = folder / name if name else HERE / page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, target


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_has_no_words_of_verdict_but_those_of_the_list(page: str) -> None:
    text = " ".join((HERE / page).read_text(encoding="utf-8").split())
    emphasised = re.findall(r"(?<![*\w])\*(?![*\s])([^*]{1,60})(?<!\s)\*(?!\*)", text)
    others = re.compile(r"\b(decided?|shown|established|refuted|depends|proved|confirmed)\b", re.I)
    assert not [words for words in emphasised if others.search(words)]


def test_the_first_page_is_one_screen() -> None:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    lists = re.split(r"^\*\*(?:So|Not so|Open)\*\*$", text, flags=re.MULTILINE)[1:]
    assert len(lists) == 3
    for items in lists:
        rows = [line for line in items.splitlines() if line.startswith("* ")]
        assert 0 < len(rows) <= 6
        assert all("](" in row for row in rows)
    assert len(text.splitlines()) <= 45
    assert text.count("![") == 2


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_page_of_an_experiment_names_its_command_and_shows_its_figures(name: str) -> None:
    module = EXPERIMENTS[name]
    folder = ROOT.joinpath(*module.split(".")[:-1])
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"`python -m {module}" in text
    figures = sorted((folder / "results").glob(f"{name}-*.svg"))
    assert figures
    for path in figures:
        assert f"(results/{path.name})" in text
        assert path.with_suffix(".png").exists()


# phrases with numbers that are chosen, and that no conclusion has
CHOSEN: dict[str, tuple[str, ...]] = {
    "methods.md": (
        "at most 200 triples", "d_model up to 6", "up to 4 heads", "two to 15 subjects",
        "a pool of 0.4 to 1 times", "a share of 0.3 of", "about 1.8 times the rank bound",
        "a maximum of 2,000 epochs", "a constant layer scores 1", "Adam, 3e-2, cosine, beta2 = 0.9",
        "at 0.5 two can",
    ),
    "facts/README.md": (
        "after 500, 2,000, 5,000 and 20,000 epochs", "After 2,000 plain epochs",
        "after 500 epochs", "after 20,000", "for 11 to 15", "for 16 to 20",
        "at every bound up to 20", "with 20 runs or more", "with a bound of 20 or more",
        "has 20 pairs", "mean accuracy of 0.95", "memorise at 0.99", "memorises at 0.99",
        "probability of 0.95", "a decay of 0.1", "d_model 4 to 6", "at most 200 triples",
        "have 1.8 triples for each unit", "That 1.8 is a property",
    ),
    "README.md": ("SmolLM2-135M",),
    "knows/README.md": ("SmolLM2-135M-Instruct", "log2 of", "log10 of", "H10,", "T1,", "T2,", "T3,",
                        "T4,"),
    "identifiability/README.md": (),
    "effective_attention/README.md": (),
    "decomposition/README.md": (),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] * (name in LONGEST)) for name in EXPERIMENTS],
)
def test_the_conclusions_are_those_of_the_tables(name: str) -> None:
    """The other half of the way: what pages quote is computed from the committed tables."""
    found, kept = flat(concluded(name)), flat(recorded(name))
    assert found.keys() == kept.keys()
    # the sixth digit of a fit is rounded by processors in different ways
    assert not {at: (one, kept[at]) for at, one in found.items() if not alike(one, kept[at])}


def flat(found: Any, at: str = "") -> dict[str, Any]:
    """Values by their places."""
    if not isinstance(found, dict | list):
        return {at: found}
    items = found.items() if isinstance(found, dict) else enumerate(found)
    return {k: v for key, one in items for k, v in flat(one, f"{at}/{key}").items()}


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12)
    return one == other


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONGEST))
def test_the_conclusions_are_those_of_the_tables_but_for_intervals(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # all intervals are drawn there, whoever asks; ten draws take seconds
    monkeypatch.setattr(bootstrap, "range", lambda n: range(min(n, 10)), raising=False)
    assert without_intervals(concluded(name)) == without_intervals(recorded(name))


def concluded(name: str) -> Any:
    tables = {
        path.stem.removeprefix(f"{name}-"): read_table(path)
        for path in sorted(results_of(name).glob(f"{name}-*.parquet"))
    }
    module = importlib.import_module(EXPERIMENTS[name])
    return json.loads(json.dumps(rounded(module.numbers(tables))))


def recorded(name: str) -> Any:
    record = json.loads((results_of(name) / f"{name}.json").read_text(encoding="utf-8"))
    return {key: value for key, value in record.items() if key not in COSTS}


def without_intervals(found: Any) -> Any:
    """Only that each interval has two ends, or none, is left of it, and no verdict by intervals."""
    if not isinstance(found, dict):
        return found
    return {
        key: bool(value) if key == "interval" else without_intervals(value)
        for key, value in found.items()
        if key != "hypotheses"
    }
