"""Descriptions of facts: one row per predicate, what repeats, advice, and the VoID vocabulary."""

from __future__ import annotations

from typing import Literal, TypeAlias

# columns that a table of predicates can be sorted by; here, as commands need it before they compute
Sorting: TypeAlias = Literal["rank", "facts", "subjects", "objects", "several", "name"]
