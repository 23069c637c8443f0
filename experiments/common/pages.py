"""The pages of results, written from their templates and from the committed conclusions.

A page is a Jinja template beside it (README.md.j2), and the claims of a paper are a TOML file
(claims.toml). Every number of a result is taken from the conclusions (results/*.json), so that no
page can say another one. In templates and claims

* ``{{ figures.claim_ii.mean | ci(2) }}`` is a number with its interval: 0.77 [0.75, 0.78];
* ``pct`` writes shares as percentages, ``pct_ci`` with an interval, ``num`` a number;
* ``plan`` has the numbers that are chosen and not measured: epochs, numbers of pairs.

A claim has a section of its paper, what it says in our words, a verdict of `VERDICTS`, where that
holds, the numbers that decide, and a link to the table or the test that shows it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from capacity.layer import Recipe
from experiments import EXPERIMENTS

HERE = Path(__file__).parents[1]
# "false" is for what a proof or a count refutes
VERDICTS = (
    "holds", "holds here", "not seen here", "false (proof)", "false (count)", "not tested",
)  # fmt: skip
# in the order of the first page
PAGES = (
    "README.md",
    "methods.md",
    "facts/README.md",
    "starts/README.md",
    "held_layers/README.md",
    "claims/README.md",
    "decoders/README.md",
    "identifiability/README.md",
    "effective_attention/README.md",
    "decomposition/README.md",
    "atlas/README.md",
    "optimal/README.md",
    "dimension/README.md",
    "size/README.md",
    "bits/README.md",
    "completion/README.md",
    "knows/README.md",
)


@dataclass(frozen=True)
class Claim:
    """A row of a page: a claim of a paper, and what became of it here."""

    section: str
    says: str
    verdict: str
    where: str
    number: str
    link: str


def conclusions() -> dict[str, Any]:
    """The committed conclusions of every experiment that has been run, by its name."""
    found: dict[str, Any] = {}
    for name, module in EXPERIMENTS.items():
        record = HERE.joinpath(*module.split(".")[1:-1], "results", f"{name}.json")
        if record.exists():
            found[name] = json.loads(record.read_text(encoding="utf-8"))
    return found


def claims_of(folder: Path, environment: Environment) -> list[Claim]:
    """The claims of a paper, with their numbers filled in.

    Raises
    ------
    ValueError
        For a verdict that isn't one of `VERDICTS`.
    """
    path = folder / "claims.toml"
    if not path.exists():
        return []
    rows: list[Claim] = []
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["claim"]:
        if row["verdict"] not in VERDICTS:
            raise ValueError(f"{path}: {row['verdict']!r} is none of {', '.join(VERDICTS)}.")
        filled = {key: environment.from_string(" ".join(text.split())).render()
                  for key, text in row.items()}  # fmt: skip
        # a bar ends a cell of a table
        filled = {key: text.replace("|", "\\|") for key, text in filled.items()}
        rows.append(Claim(**{"where": "", **filled}))
    return rows


def rendered(page: str) -> str:
    """The text of a page."""
    folder = (HERE / page).parent
    environment = Environment(
        loader=FileSystemLoader(HERE), undefined=StrictUndefined, keep_trailing_newline=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"num": num, "ci": ci, "pct": pct, "pct_ci": pct_ci, "ends": ends}
    environment.globals |= {**conclusions(), "plan": _plan()}
    environment.globals["claims"] = claims_of(folder, environment)
    note = f"<!-- Written by `python -m experiments --plot` from {Path(page).name}.j2. -->\n"
    return note + _wrapped(environment.get_template(f"{page}.j2").render())


def write_pages() -> None:
    """Write every page."""
    for page in PAGES:
        (HERE / page).write_text(rendered(page), encoding="utf-8")


def _plan() -> dict[str, Any]:
    """Numbers that are chosen: the plan of the paper's experiment, and the plain recipe."""
    paper = tomllib.loads((HERE / "configs" / "paper.toml").read_text(encoding="utf-8"))
    return {
        **asdict(Recipe()),
        "pairs": paper["runs"]["pairs"],
        "databases": paper["databases"]["synthetic"]["count"],
    }


def num(found: Any, digits: int = 2) -> str:
    """A number with so many decimals; a dict stands for its mean, value or slope.

    Raises
    ------
    ValueError
        If there is none.
    """
    value = found
    if isinstance(found, dict):
        value = next((found[key] for key in ("mean", "value", "slope") if key in found), None)
    if not isinstance(value, int | float):
        raise ValueError(f"A page asks for a number, and gets {found!r:.60}.")
    return f"{value:,.{digits}f}"


def ends(interval: Sequence[int]) -> str:
    """Both ends of an interval of integers, [7, 8], or the number that both are."""
    low, high = interval
    return num(low, 0) if low == high else f"[{num(low, 0)}, {num(high, 0)}]"


def ci(found: Any, digits: int = 2) -> str:
    """A number and its interval, 0.77 [0.75, 0.78]."""
    low, high = found["interval"]
    return f"{num(found, digits)} [{num(low, digits)}, {num(high, digits)}]"


def pct(found: Any, digits: int = 0) -> str:
    """A share as a percentage, 77 %."""
    return f"{_hundredfold(found, digits)} %"


def pct_ci(found: Any, digits: int = 0) -> str:
    """A share and its interval as percentages, 77 % [75, 78]."""
    low, high = (_hundredfold(end, digits) for end in found["interval"])
    return f"{pct(found, digits)} [{low}, {high}]"


def _hundredfold(found: Any, digits: int) -> str:
    value = found["mean"] if isinstance(found, dict) and "mean" in found else found
    value = value["value"] if isinstance(value, dict) else value
    return num(100 * value, digits)


def _wrapped(text: str) -> str:
    """Paragraphs of at most 120 characters a line; tables, lists, headings and code as they are."""
    blocks = re.split(r"(```.*?```|\n{2,})", text, flags=re.DOTALL)
    return "".join(block if _is_fixed(block) else _filled(block) for block in blocks)


def _is_fixed(block: str) -> bool:
    lines = block.strip().splitlines()
    return not lines or lines[0].startswith(("#", "|", "- ", "* ", "!", "<", "```", "  "))


def _filled(block: str, width: int = 120) -> str:
    import textwrap

    return textwrap.fill(
        " ".join(block.split()), width, break_long_words=False, break_on_hyphens=False
    )
