"""Headers of FROSTT files of tensors: the shape and the number of entries that one states."""

from __future__ import annotations

import re
from dataclasses import dataclass

from capacity.checks import shown
from capacity.errors import (
    InvalidArgumentError,
    TensorFormatError,
)
from capacity.tensor.coordinates import checked_shape

SHAPE = re.compile(rb"#\s*shape\s*:\s*(.*)", re.IGNORECASE | re.DOTALL)
INDEX = re.compile(rb"\+?[0-9]{1,20}")
VALUE = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


@dataclass
class Header:
    """The header of the Tensor Toolbox, a line after the other; None of it if there is none."""

    seen: int = 0
    shape: tuple[int, ...] | None = None
    order: int = 0
    n_entries: int | None = None

    def takes(self, name: str, number: int, line: bytes) -> bool:
        """Take a line that belongs to the header; return whether it does."""
        text = line.strip()
        if not text:
            return False
        if self.seen == 0 and text.lower() != b"sptensor":
            if text.lower() in (b"tensor", b"matrix", b"ktensor"):
                raise error_at(
                    name, number, f"a {text.decode()} of the Tensor Toolbox isn't sparse"
                )
            self.seen = 4
        if self.seen == 4:
            return False
        if self.seen == 2:
            self.shape = said_shape(name, number, text)
            if len(self.shape) != self.order:
                raise error_at(name, number, f"{self.order} sizes must follow; got {text_of(text)}")
        elif self.seen:
            if not INDEX.fullmatch(text):
                raise error_at(
                    name, number, f"a header must have a number here; got {text_of(text)}"
                )
            if self.seen == 1:
                self.order = int(text)
            else:
                self.n_entries = int(text)
        self.seen += 1
        return True

    def require_entries(self, name: str, n_entries: int) -> None:
        """Refuse a file that has another number of entries than its header has."""
        if self.n_entries not in (None, n_entries):
            raise TensorFormatError(
                name, f"its header has {self.n_entries:,} entries, and it has {n_entries:,}",
                format="tns", advice="It may have been cut: fetch or write it again.",
            )  # fmt: skip


def n_fields(beginning: bytes) -> int:
    r"""Count the numbers of the first line of a text, which isn't one of comments.

    0 if they aren't divided by blanks, as those of a table by tabs aren't, or one but the last
    isn't an index.

    Examples
    --------
    >>> n_fields(b"# said\n\n1 2 0.5\n"), n_fields(b"1\t2\t3\n"), n_fields(b"a 1 1\n")
    (3, 0, 0)
    """
    lines = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    *indices, value = first.split() or [b""]
    plain = b"\t" not in first.strip() and all(map(INDEX.fullmatch, indices))
    return len(indices) + 1 if plain and VALUE.fullmatch(value) else 0


def says_shape(beginning: bytes) -> bool:
    r"""Return whether a text begins with a comment on the shape, and not with a line of facts.

    Examples
    --------
    >>> says_shape(b"# shape: 4 4\n1 1 5\n")
    True
    """
    lines = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    # the last may be cut
    is_text = all(
        not line.strip() or line.startswith(b"#") or n_fields(line) for line in lines[:-1]
    )
    return is_text and any(map(SHAPE.match, lines))


def said_shape(name: str, number: int, text: bytes) -> tuple[int, ...]:
    """Read the sides that a header states."""
    try:
        fields = [int(field) for field in text.split() if INDEX.fullmatch(field)]
        if len(fields) == len(text.split()):
            return checked_shape(fields)
    except InvalidArgumentError:
        pass
    raise error_at(
        name, number, "a shape must be 1 to 32 sizes from 1 to 2^31 - 1; got "
        f"{shown(text.decode('utf-8', 'replace'))}",
    )  # fmt: skip


def text_of(field: bytes) -> str:
    """Show a field of a line in a message."""
    return shown(field.decode("utf-8", "replace"))


def error_at(name: str, number: int, reason: str) -> TensorFormatError:
    """Make the error of a line."""
    return TensorFormatError(
        name, reason, format="tns", line=number,
        advice="A line is the indices of an entry, counted from 1, and its value.",
    )  # fmt: skip
