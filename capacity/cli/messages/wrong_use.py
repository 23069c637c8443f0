"""Messages for a command line that the parser refuses, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from capacity.checks import nearest, shown

# the parser's words for a value that isn't of an option's type or range, and the library's
_MUST = (
    (r"a valid integer\b.*", "an integer"),
    (r"a valid number\b.*", "a number"),
    (r"greater than or equal to (\S+)", r"at least \1"),
    (r"less than or equal to (\S+)", r"at most \1"),
)


def wrong_use(error: Any, arguments: Sequence[str], commands: Sequence[str]) -> str:
    """Write the parser's error in a line: what must hold, what came, and what to do.

    Parameters
    ----------
    error : Exception
        A ``ClickException`` of typer, which bundles its own click without a public name.
    arguments : sequence of str
        The command line.
    commands : sequence of str
        Names of all commands.

    Returns
    -------
    str
        The message, with the nearest name or value where there is one.
    """
    # a long wrong value is echoed in part
    said = re.sub(
        r"\S{61,}",
        lambda word: f"{word[0][:60]}...",
        " ".join(str(error.format_message()).split()),
    )
    said = _of_value(said.replace("Value error, ", ""), arguments)
    choices = re.search(r"'([^']*)' is not one of (.*)", said)
    if choices:
        said = said.rstrip(".") + "." + nearest(choices[1], re.findall("'(.*?)'", choices[2]))
    # of the parser's error about an option that there isn't
    possible = getattr(error, "possibilities", None)
    if possible:
        option = str(error.option_name)[:60]
        said = f"No such option: {option}.{_nearest_option(option, sorted(possible))}"
    if "unexpected extra argument" in said:
        # a shell puts files in the place of a pattern
        said += ". Give several files as a folder, or as a pattern in quotes, such as 'data/*.nt'."
    # the parser doesn't name the command in all of its errors
    command = " ".join(["capacity", *(arg for arg in arguments[:1] if arg in commands)])
    end = "" if said.endswith(("?", ".")) else "."
    return f"{said}{end} See `{command} --help`."


def _of_value(said: str, arguments: Sequence[str]) -> str:
    """Say what a number must be, and what came in its place."""
    wrong = re.fullmatch(r"Invalid value for '(--[\w-]+)': Input should be (.*?)\.?", said)
    if wrong is None:
        return said
    flag, must = wrong[1], wrong[2]
    for theirs, ours in _MUST:
        must = re.sub(theirs, ours, must)
    given = _given(flag, arguments)
    return f"`{flag}` must be {must}" + ("" if given is None else f"; got {shown(given)}.")


def _given(flag: str, arguments: Sequence[str]) -> str | None:
    """Return the last value of an option on the command line."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    found = [after if word == flag else word.removeprefix(f"{flag}=")
             for word, after in pairs if word == flag or word.startswith(f"{flag}=")]  # fmt: skip
    return found[-1] if found else None


def _nearest_option(given: str, possible: Sequence[str]) -> str:
    """Name the nearest option, or all that the parser finds."""
    hint = nearest(given, possible)
    return hint or f" There are {', '.join(possible)}."
