"""Completion by the shell of values that are one of a closed set, which depends on the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

# the variable by which a shell asks for completions
ASKED = "_CAPACITY_COMPLETE"


def one_of(choices: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make the function that completes an option with one of some values.

    Parameters
    ----------
    choices : callable
        Returns the values; called when the shell asks, so that nothing is imported before.

    Returns
    -------
    callable
        From the beginning of a value, the values with this beginning.

    Examples
    --------
    >>> one_of(lambda: ["turtle", "trig", "csv"])("t")
    ['turtle', 'trig']
    """

    def complete(incomplete: str) -> list[str]:
        found = [choice for choice in choices() if choice.startswith(incomplete)]
        # bash inserts what it is given; other shells escape it themselves
        bash = os.environ.get(ASKED, "").endswith("bash")
        return [choice.replace(" ", r"\ ") for choice in found] if bash else found

    return complete
