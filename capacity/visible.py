"""Texts of others on a terminal or a page: characters that would steer it are shown as escapes.

A label, a file's name or a server's answer may hold control characters, which move a terminal's
cursor, change its title or its clipboard, and controls of direction, which show a line in another
order than it has (CVE-2021-42574). Whatever the library prints or shows of a text that it was
given goes through `visible`; data for programs, such as JSON, have escapes of their own.
"""

from __future__ import annotations

from itertools import chain

# control characters (Unicode's category Cc), separators of lines, controls of direction
# (Unicode Standard Annex 9), and halves of characters, which no encoding holds
_CODES = (range(0x20), range(0x7F, 0xA0), (0x061C, 0x200E, 0x200F), range(0x2028, 0x202F),
          range(0x2066, 0x206A), range(0xD800, 0xE000))  # fmt: skip
STEERING = frozenset(chain(*_CODES))
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in STEERING}


def visible(text: str) -> str:
    r"""Write a text in one line, with characters that steer a terminal or a page as escapes.

    Parameters
    ----------
    text : str
        Any text. One that is visible already stays as it is.

    Examples
    --------
    >>> print(visible("a\tb\x1b[31m"), visible("Zürich"))
    a\tb\x1b[31m Zürich
    """
    return text.translate(_ESCAPES)
