"""Rows that wait for the ranks of their databases: runs are trained while others are bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from capacity.sweep.storage.row_schema import Row


class WaitingRows:
    """Rows that are whole but for the ranks of their databases."""

    def __init__(self) -> None:
        self._ranks: dict[str, Mapping[str, int]] = {}
        # by databases that aren't bounded yet, and by shards
        self._rows: dict[str, dict[int, list[Row]]] = {}

    def __contains__(self, facts: str) -> bool:
        """Return True if the ranks of a database are known."""
        return facts in self._ranks

    def bounded(self, facts: str, ranks: Mapping[str, int]) -> dict[int, list[Row]]:
        """Take the ranks of a database; return the rows that waited for them, by shards.

        Parameters
        ----------
        facts : str
            SHA-256 of the facts.
        ranks : mapping
            Result of `database_ranks`.
        """
        self._ranks[facts] = ranks
        waited = self._rows.pop(facts, {})
        return {number: [{**row, **ranks} for row in rows] for number, rows in waited.items()}

    def completed(self, number: int, rows: Iterable[tuple[str, Row]]) -> list[Row]:
        """Return the rows of a shard whose ranks are known, with these; the others wait.

        Parameters
        ----------
        number : int
            The shard.
        rows : iterable of (str, dict)
            The SHA-256 of each row's facts, and the row.
        """
        whole: list[Row] = []
        for facts, row in rows:
            if facts in self._ranks:
                whole.append({**row, **self._ranks[facts]})
            else:
                self._rows.setdefault(facts, {}).setdefault(number, []).append(row)
        return whole
