"""The pages of results say what the committed conclusions say, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from experiments import EXPERIMENTS
from experiments.common import pages
from tests.oracles import ROOT

HERE = ROOT / "experiments"
PAPERS = [page for page in pages.PAGES if "/" in page]

# numbers that are no results: of the papers' parts, sizes and thresholds that a sentence is about
REFERENCES = re.compile(
    r"""
    (?:Figures?|Tables?|Proposition|Prop\.|sections?|Section|Examples?|Remark|footnote|Appendix)\s
        [A-Z]?\d+(?:\.\d+)*[a-z]?(?:(?:,|\sand|\sto)\s\d+(?:\.\d+)?[a-z]?)*
    | ^\#+\s\d+\.                                # a heading
    | \(\d+\)                                    # an equation
    | \b(?:19|20)\d\d\b                          # a year
    | \b\d{4}\.\d{5}\b                           # arXiv
    | \(\d{4}\.\d{5}\)                            # arXiv
    | \bP[1-4]\b                                 # the conditions of Bhardwaj et al.
    | \b\d+\s%\sintervals?\b | \bof\s95\s%         # the level of intervals
    | \+\s1\b                                    # min(|K|, |Q|) + 1
    | \b0/1\b | \bfloat(?:32|64)\b
    | \b(?:at|above|of|probability)\s0\.\d+
    | (?:tau|p|c|Adam|beta2|pools?\sof)\s?(?:=|>=|≥|of|,)?\s?\d[\d.e-]*
    | (?:softmax\s?(?:>=|≥))\s\d[\d., and]*\d
    | (?:d_model|d_head_qk|d_head_vo|n_heads|bounds?(?:\sof)?|dimensions?)
        (?:\sup\sto)?\s?(?:=\s?)?\d+(?:(?:,|\sto|\sand)\s\d+)*
    """,
    re.VERBOSE | re.MULTILINE,
)


def without_code(text: str) -> str:
    """A template without what is filled in, code, and targets of links."""
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_page_is_what_its_template_and_the_conclusions_give(page: str) -> None:
    assert (HERE / page).read_text(encoding="utf-8") == pages.rendered(page)


def hand_written(text: str) -> list[str]:
    return re.findall(r"[^\s|]*\d[^\s|]*", REFERENCES.sub(" ", without_code(text)))


@pytest.mark.parametrize("page", pages.PAGES)
def test_no_number_of_a_result_is_written_by_hand(page: str) -> None:
    template = (HERE / f"{page}.j2").read_text(encoding="utf-8")
    chosen = CHOSEN.get(page, ())
    found = [word for word in hand_written(template) if word.strip(".,;:()[]*") not in chosen]
    assert not found


@pytest.mark.parametrize("page", PAPERS)
def test_claims_have_a_verdict_and_numbers_of_the_conclusions(page: str) -> None:
    rows = tomllib.loads((HERE / page).with_name("claims.toml").read_text())["claim"]
    assert len(rows) >= 15
    for row in rows:
        assert row["verdict"] in pages.VERDICTS
        chosen = CHOSEN.get(page, ())
        for key in ("where", "number"):
            found = [w for w in hand_written(row.get(key, "")) if w.strip(".,;:()") not in chosen]
            assert not found, row
        if row["verdict"] == "not tested":
            assert row.get("where") or row.get("number"), row


def test_a_number_that_is_written_by_hand_is_found() -> None:
    assert hand_written("It is right on 0.84 [0.82, 0.87] of the facts.") == [
        "0.84", "[0.82,", "0.87]"
    ]  # fmt: skip
    assert hand_written("77 % of the runs") == ["77"]
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


def test_the_first_page_is_one_screen() -> None:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    lists = re.split(r"^\*\*(?:Established|Not so|Open)\*\*$", text, flags=re.MULTILINE)[1:]
    assert len(lists) == 3
    for items in lists:
        rows = [line for line in items.splitlines() if line.startswith("* ")]
        assert 0 < len(rows) <= 6
        assert all("](" in row for row in rows)
    assert len(text.splitlines()) <= 45
    assert text.count("![") == 1


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


# numbers that are chosen, and that no conclusion has
CHOSEN: dict[str, tuple[str, ...]] = {
    # the paper's experiment, the generator's constants, a constant layer, tau
    "methods.md": ("200", "4", "15", "0.3", "1", "1.8", "2,000", "0.5", "0.50"),
    # epochs of recipes, edges of bins, least numbers of runs and pairs, sizes in a proof
    "facts/README.md": ("500", "2,000", "5,000", "20,000", "11", "15", "16", "20", "0.95"),
}
