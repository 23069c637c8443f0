"""Messages of the library in the words of the command line.

The library's messages name keywords of Python, such as ``table="wide"``. A user of the command has
options in their place.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable

# keywords of functions that the commands call, and their options
_FLAGS = {
    "annotations_of_facts": "--annotations-of-facts",
    "arity": "--arity",
    "base": "--base",
    "columns": "--column",
    "device": "--device",
    "contexts": "--context",
    "exclude": "--exclude",
    "format": "--format",
    "graph": "--graph",
    "max_bytes": "--max-file-bytes",
    "max_cells": "--max-cells",
    "max_growth": "--max-growth",
    "max_rows": "--max-rows",
    "max_term_bytes": "--max-term-bytes",
    "memory_limit": "--memory-limit",
    "model": "--model",
    "multi": "--multi",
    "namespaces": "--namespace",
    "predicates": "--predicate",
    "table": "--table",
    "tau": "--tau",
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


def _contexts(found: re.Match[str]) -> str:
    # a long IRI is cut, and so not always in two quotes
    return f"--context {shlex.quote(found['iri'].strip(_QUOTES) + '=' + found['path'])}"


def _columns(found: re.Match[str]) -> str:
    try:
        columns = ast.literal_eval(found["columns"])
    except (SyntaxError, ValueError):
        # the text of a file may look like advice
        return found[0]
    return " ".join(f"--column {shlex.quote(str(one))}" for one in columns)


def _value(found: re.Match[str]) -> str:
    return f"{_FLAGS[found['keyword']]} {found['value']}"


def _flag(found: re.Match[str]) -> str:
    return _FLAGS[found["flag"]]


def _quoted_flag(found: re.Match[str]) -> str:
    return f"`{_FLAGS[found['quoted']]}`"


# each form of advice in a message, and what takes its place
_FORMS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    # what the command has no option for
    (r"Ask for fewer facts, or raise `max_(?:bytes|rows)`", lambda _: "Ask for fewer facts"),
    (r"contexts=\{(?P<iri>.+?): '(?P<path>[^']*)'\}", _contexts),
    (rf"columns=(?P<columns>\[{_ITEM}(?:, {_ITEM})*\]|\({_ITEM}(?:, {_ITEM})*\))", _columns),
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
    >>> in_options('Say table="wide" if so, or choose with `columns`.')
    'Say --table wide if so, or choose with `--column`.'
    >>> in_options("Say columns=['head', 'rel type', 'tail'].")
    "Say --column head --column 'rel type' --column tail."
    """
    start = len(source) if message.startswith(source) else 0
    # every second piece is one to keep
    pieces = _KEPT.split(message[start:])
    for form, written in _FORMS:
        pieces[::2] = [re.sub(form, written, piece) for piece in pieces[::2]]
    return message[:start] + "".join(pieces)
