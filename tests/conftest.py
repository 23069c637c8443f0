"""Profiles of Hypothesis, and the tiers of tests.

The same examples are drawn on every machine, and no clock decides. ``--hypothesis-profile full`` is
that of `make test-full`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import hypothesis
import pytest

from tests.tiers import FULL, PART

for name, examples in (("part", PART), ("full", FULL)):
    hypothesis.settings.register_profile(
        name, deadline=None, derandomize=True, max_examples=examples, print_blob=True
    )
hypothesis.settings.load_profile("part")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-torch", action="store_true", help="refuse imports of torch")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--no-torch"):
        # an import of None fails
        sys.modules["torch"] = None  # type: ignore[assignment]


@pytest.fixture
def together() -> Iterator[str]:
    """Name of an engine that trains many layers together, registered for the test."""
    # it imports torch, which quick tests do without
    from capacity.layer import register_engine, unregister_engine
    from tests.engines import TOGETHER

    register_engine(TOGETHER)
    yield TOGETHER.name
    unregister_engine(TOGETHER.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # one process builds the site for minutes, in which another can do the rest if it begins first
    items.sort(key=lambda item: item.path.name != "test_site.py")
