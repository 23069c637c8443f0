"""`Source`: the file that facts were read from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A file's name, its SHA-256 and the format it was read as."""

    name: str
    sha256: str
    format: str
