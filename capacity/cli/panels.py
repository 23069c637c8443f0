"""Titles of the groups in which ``--help`` shows commands and options, and the examples below."""

from __future__ import annotations

from collections.abc import Sequence

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
