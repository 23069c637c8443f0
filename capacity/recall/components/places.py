"""Places of tokens in prompts of one template, by which prompts of other subjects are aligned.

A prompt is a row of segments: words of the template, tokens of the subject, special tokens. A
token's place is its segment, counted from the end, and its distance from the segment's end, so that
the last token of the subject has the same place whatever the subject is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]


def places_of(sources: Sequence[int]) -> list[Place]:
    """Return the place of each token of a prompt.

    Parameters
    ----------
    sources : sequence of int
        Whose each token is, as in `Prompts.sources`.

    Examples
    --------
    >>> places_of([1, 1, 0, 0, 0, 1])
    [(2, 1), (2, 0), (1, 2), (1, 1), (1, 0), (0, 0)]
    """
    lengths = [len([*run]) for _, run in groupby(sources)]
    last = len(lengths) - 1
    return [(last - at, n - 1 - i) for at, n in enumerate(lengths) for i in range(n)]


def nearest_places(wanted: Sequence[Place], known: Iterable[Place]) -> list[Place]:
    """Return for each place the same one, or the farthest known one of its segment.

    Parameters
    ----------
    wanted : sequence of (int, int)
        Places of a prompt.
    known : iterable of (int, int)
        Places of other prompts of the template: all distances up to the largest, for a segment.

    Examples
    --------
    A subject of three tokens, beside one of two:

    >>> nearest_places([(1, 2), (1, 1), (1, 0)], [(1, 1), (1, 0)])
    [(1, 1), (1, 1), (1, 0)]
    """
    farthest: dict[int, int] = {}
    for segment, distance in known:
        farthest[segment] = max(distance, farthest.get(segment, 0))
    most = max(farthest)
    return [
        (min(segment, most), min(distance, farthest[min(segment, most)]))
        for segment, distance in wanted
    ]
