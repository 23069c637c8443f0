"""Print the lowest versions that pyproject.toml allows, for pip to install.

    python tools/oldest_versions.py [EXTRA ...] > oldest.txt && pip install -r oldest.txt

These are the lowest versions of the base install, and of the extras that are named.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# a package, its own extras, and its lowest version
LOWEST = re.compile(r"([\w.-]+(?:\[[\w,-]+\])?)>=([\w.]+)")


def oldest(extras: list[str]) -> list[str]:
    """Return ``package==version`` for each package of the base install and of some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = project["optional-dependencies"]
    found: dict[str, str] = {}
    for requirement in (*project["dependencies"], *_of_extras(extras, known, project["name"])):
        lowest = LOWEST.fullmatch(requirement)
        if lowest is None:
            sys.exit(f"A requirement must have a lowest version; got {requirement}.")
        name, version = lowest.groups()
        if found.setdefault(name, version) != version:
            sys.exit(f"{name} must have one lowest version; got {found[name]} and {version}.")
    return [f"{name}=={version}" for name, version in found.items()]


def _of_extras(extras: list[str], known: dict[str, list[str]], project: str) -> Iterator[str]:
    """Yield the requirements of some extras, and of the extras that these name."""
    unknown = [extra for extra in extras if extra not in known]
    if unknown:
        sys.exit(f"An extra must be one of {', '.join(known)}; got {', '.join(unknown)}.")
    for requirement in (one for extra in extras for one in known[extra]):
        own = re.fullmatch(rf"{project}\[([\w,]+)\]", requirement)
        if own is None:
            yield requirement
        else:
            yield from _of_extras(own[1].split(","), known, project)


if __name__ == "__main__":
    print(*oldest(sys.argv[1:]), sep="\n")
