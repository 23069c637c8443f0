"""Rows that wait until their shard is complete: it has all its rows, and all ranks that they show.

Runs are trained while databases are bounded. So the ranks of a row are null while it waits, here
and in DIR/unfinished, whether its database is bounded already or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from capacity.database.facts import Database
from capacity.sweep.plan import Run
from capacity.sweep.storage.row_schema import Row


class WaitingRows:
    """Rows of the shards that aren't stored yet, and the ranks that are known.

    Parameters
    ----------
    shards : mapping of int to sequence of Run
        Runs of each of these shards, by its number.
    """

    def __init__(self, shards: Mapping[int, Sequence[Run]]) -> None:
        self._runs = dict(shards)
        # by the keys of their runs
        self._rows: dict[int, dict[str, Row]] = {number: {} for number in shards}
        self._ranks: dict[str, Mapping[str, int]] = {}

    @property
    def shards(self) -> Collection[int]:
        """Numbers of the shards that aren't stored."""
        return self._runs.keys()

    @property
    def databases(self) -> dict[str, Database]:
        """Databases of their runs, by the SHA-256 of their facts."""
        return {
            run.database.facts_sha256: run.database for runs in self._runs.values() for run in runs
        }

    def rows(self, number: int) -> Collection[Row]:
        """Rows of a shard so far, without ranks."""
        return self._rows[number].values()

    def untrained(self, number: int) -> list[Run]:
        """Runs of a shard that have no rows yet."""
        return [run for run in self._runs[number] if run.key not in self._rows[number]]

    def add(self, number: int, rows: Iterable[Row]) -> None:
        """Add rows to a shard."""
        self._rows[number].update((row["run_key"], row) for row in rows)

    def bounded(self, facts: str, ranks: Mapping[str, int]) -> None:
        """Take the ranks of a database, by the SHA-256 of its facts."""
        self._ranks[facts] = ranks

    def is_complete(self, number: int) -> bool:
        """Return True if a shard has all its rows, and the ranks of all their databases."""
        runs = self._runs[number]
        return len(self._rows[number]) == len(runs) and all(
            run.database.facts_sha256 in self._ranks for run in runs
        )

    def complete(self, number: int) -> list[Row]:
        """Rows of a complete shard, with their ranks."""
        rows = self._rows[number]
        return [
            {**rows[run.key], **self._ranks[run.database.facts_sha256]}
            for run in self._runs[number]
        ]

    def remove(self, number: int) -> None:
        """Forget a shard that is stored."""
        del self._runs[number], self._rows[number]
