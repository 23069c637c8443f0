"""Help: titles of groups and examples for ``--help``, and completion of values by the shell.

Such values are one of a closed set, which depends on the library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

# of commands
FACTS = "Databases of facts"
LAYERS = "Attention layers"
MODELS = "Pretrained models"
PAGES = "Pages to send"
INSTALLATION = "This installation"
# of options
READING = "Reading the file"
CHOOSING = "Choosing facts"
COUNTING = "Counting facts where they are"
ANALYSIS = "Analysis"
SEARCH = "Search"
MODEL = "Pretrained model"
LAYER = "Layer"
TRAINING = "Training"
COMPUTE = "Compute"
OUTPUT = "Output"


def epilog(examples: Sequence[str]) -> str:
    """Write examples as the end of a command's help.

    Parameters
    ----------
    examples : sequence of str
        Command lines.

    Returns
    -------
    str
        Paragraphs, which the help separates: a line break within one isn't kept.

    Examples
    --------
    >>> epilog(["capacity rank facts.ttl"]).splitlines()[::2]
    ['Examples:', '$ capacity rank facts.ttl']
    """
    return "\n\n".join(["Examples:", *(f"$ {line}" for line in examples)])


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
