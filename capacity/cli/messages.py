"""Messages of the command line: the library's in its words, and those for wrong use, in one line.

The library's messages name keywords of Python, such as ``table="wide"``. A user of the command has
options in their place.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from capacity.checks import nearest, shown

# keywords of functions that the commands call, and their options
_FLAGS = {
    "annotations_of_facts": "--annotations-of-facts",
    "answers": "--answers",
    "arity": "--arity",
    "base": "--base",
    "batch_size": "--batch-size",
    "candidates": "--candidates",
    "columns": "--column",
    "comment": "--comment",
    "device": "--device",
    "contexts": "--context",
    "exclude": "--exclude",
    "fold": "--fold",
    "format": "--format",
    "graph": "--graph",
    "label_predicates": "--label-predicate",
    "max_bytes": "--max-file-bytes",
    "max_cells": "--max-cells",
    "max_growth": "--max-growth",
    "max_rows": "--max-rows",
    "max_term_bytes": "--max-term-bytes",
    "memory_limit": "--memory-limit",
    "methods": "--method",
    "model": "--model",
    "multi": "--multi",
    "namespaces": "--namespace",
    "predicates": "--predicate",
    "table": "--table",
    "skip_errors": "--skip-errors",
    "tau": "--tau",
    "templates": "--templates",
    "timeout": "--timeout",
    "types": "--type",
    "views": "--views",
}
_NAME = "|".join(_FLAGS)
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_QUOTES = "'\""
_ITEM = rf"(?:{_TEXT}|\d+)"
# what stays as it is: a call of Python, with the calls in it, and hints, which can name predicates
_CALL = r"\b[\w.]+\((?:[^()]|\((?:[^()]|\([^()]*\))*\))+\)"
_KEPT = re.compile(rf"({_CALL}|Did you mean [^?]*\?)")


def _contexts(match: re.Match[str]) -> str:
    # a long IRI is cut, and so not always in two quotes
    return f"--context {shlex.quote(match['iri'].strip(_QUOTES) + '=' + match['path'])}"


def _columns(match: re.Match[str]) -> str:
    try:
        columns = ast.literal_eval(match["columns"])
    except (SyntaxError, ValueError):
        # the text of a file may look like advice
        return match[0]
    return " ".join(f"--column {shlex.quote(str(one))}" for one in columns)


def _comment(match: re.Match[str]) -> str:
    # an option's value that begins as an option does follows a sign
    between = "=" if match["mark"].startswith("-") else " "
    return f"--comment{between}{shlex.quote(match['mark'])}"


def _value(match: re.Match[str]) -> str:
    return f"{_FLAGS[match['keyword']]} {match['value']}"


def _flag(match: re.Match[str]) -> str:
    return _FLAGS[match["flag"]]


def _quoted_flag(match: re.Match[str]) -> str:
    return f"`{_FLAGS[match['quoted']]}`"


# each form of advice in a message, and what takes its place
_FORMS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    # what the command has no option for
    (r"Ask for fewer facts, or raise `max_(?:bytes|rows)`", lambda _: "Ask for fewer facts"),
    (r"contexts=\{(?P<iri>.+?): '(?P<path>[^']*)'\}", _contexts),
    (rf"columns=(?P<columns>\[{_ITEM}(?:, {_ITEM})*\]|\({_ITEM}(?:, {_ITEM})*\))", _columns),
    (r"\bcomment=(?P<quote>[\"'])(?P<mark>[#!%/;-]+)(?P=quote)", _comment),
    (rf"\b(?P<keyword>{_NAME})=(?P<quote>[\"'])(?P<value>[\w-]+)(?P=quote)", _value),
    (r"`arity=(?P<arity>\d+)`", lambda found: f"`--arity {found['arity']}`"),
    (r"multi= or with_policy\(\)", lambda _: "--multi"),
    (rf"\b(?P<flag>{_NAME})=(?=[:\s])", _flag),
    (rf"`(?P<quoted>{_NAME})`", _quoted_flag),
    # what the command has no option for
    (r"; `allow_empty` makes an empty database of it", lambda _: ""),
    (r", or raise `deadline`", lambda _: ""),
    (r"`temp_folder`, or the variable TMPDIR", lambda _: "the variable TMPDIR"),
)


def in_options(message: str, source: str = "") -> str:
    """Write a message of the library with options of the command in place of keywords.

    Parameters
    ----------
    message : str
        Message of an error or a warning.
    source : str
        Name of a file that the message begins with, which stays as it is.

    Examples
    --------
    >>> in_options('Pass table="wide" if so, or choose with `columns`.')
    'Pass --table wide if so, or choose with `--column`.'
    >>> in_options("Pass columns=['head', 'rel type', 'tail'].")
    "Pass --column head --column 'rel type' --column tail."
    """
    start = len(source) if message.startswith(source) else 0
    # every second piece is one to keep
    pieces = _KEPT.split(message[start:])
    for form, written in _FORMS:
        pieces[::2] = [re.sub(form, written, piece) for piece in pieces[::2]]
    return message[:start] + "".join(pieces)


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
    message = re.sub(
        r"\S{61,}",
        lambda word: f"{word[0][:60]}...",
        " ".join(str(error.format_message()).split()),
    )
    message = _of_value(message.replace("Value error, ", ""), arguments)
    choices = re.search(r"'([^']*)' is not one of (.*)", message)
    if choices:
        message = message.rstrip(".") + "." + nearest(choices[1], re.findall("'(.*?)'", choices[2]))
    # of the parser's error about an option that there isn't
    possible = getattr(error, "possibilities", None)
    if possible:
        option = str(error.option_name)[:60]
        message = f"No such option: {option}.{_nearest_option(option, sorted(possible))}"
    # the parser doesn't name the command in all of its errors
    command = " ".join(["capacity", *(arg for arg in arguments[:1] if arg in commands)])
    end = "" if message.endswith(("?", ".")) else "."
    return f"{message}{end} See `{command} --help`."


def _of_value(message: str, arguments: Sequence[str]) -> str:
    """State what a number must be, and what was passed."""
    wrong = re.fullmatch(r"Invalid value for '(--[\w-]+)': Input should be (.*?)\.?", message)
    if wrong is None:
        return message
    flag, must = wrong[1], wrong[2]
    for theirs, ours in _MUST:
        must = re.sub(theirs, ours, must)
    given = _given(flag, arguments)
    return f"`{flag}` must be {must}" + ("" if given is None else f"; got {shown(given)}.")


def _given(flag: str, arguments: Sequence[str]) -> str | None:
    """Return the last value of an option on the command line."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    values = [after if word == flag else word.removeprefix(f"{flag}=")
             for word, after in pairs if word == flag or word.startswith(f"{flag}=")]  # fmt: skip
    return values[-1] if values else None


def _nearest_option(given: str, possible: Sequence[str]) -> str:
    """Name the nearest option, or all that the parser finds."""
    hint = nearest(given, possible)
    return hint or f" There are {', '.join(possible)}."
