"""`Source`: the file that facts were read from."""

from __future__ import annotations

from dataclasses import dataclass

from capacity.display import briefly_shown


@briefly_shown
@dataclass(frozen=True)
class Source:
    """The name, the hash and the format of a file of facts.

    Attributes
    ----------
    name : str
        Name of the file, without its folder.
    sha256 : str
        SHA-256 of its bytes, before decompression.
    format : str
        Name of the format that it was read as.
    notes : tuple of str
        Sentences on what was read in another way than as plain facts, or not read, with numbers.
    in_other_graphs : int
        Number of triples in other graphs than the one that was asked for.
    parts : tuple of Source
        The files, where there were several.
    skipped : tuple of (int, str)
        Numbers of the broken lines that were omitted, and what is wrong with them.
    """

    name: str
    sha256: str
    format: str
    notes: tuple[str, ...] = ()
    in_other_graphs: int = 0
    parts: tuple[Source, ...] = ()
    skipped: tuple[tuple[int, str], ...] = ()
