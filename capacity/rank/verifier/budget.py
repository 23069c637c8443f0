"""How much work and memory the check of a file of certificates may take.

A step is about a nanosecond of one core of 2025. Every checker charges what it is about to do,
before it does it, so that a certificate of a few bytes can't ask for hours or for all memory.
"""

from __future__ import annotations

from capacity.errors import MemoryBudgetError

# eight seconds up to a million facts, and in proportion beyond
STEPS, FACTS = 8_000_000_000, 1_000_000
# bytes for each entry of a dense block on its way into flint
DENSE_BYTES = 72
# bytes beside the facts themselves, at any time
MEMORY = 700 * 2**20


class CheckBudget:
    """Steps that are left to a file of certificates, and bytes that a check may hold at a time.

    Parameters
    ----------
    steps : int
        Of about a nanosecond.
    memory : int
        Bytes.
    """

    def __init__(self, steps: int = STEPS, memory: int = MEMORY) -> None:
        self.steps = steps
        self.memory = memory

    @classmethod
    def of(cls, n_facts: int) -> CheckBudget:
        """Make the budget of all certificates about a database of so many facts."""
        share = max(n_facts, FACTS) / FACTS
        return cls(int(STEPS * share), int(MEMORY * share))

    def spend(self, steps: int, memory: int = 0) -> None:
        """Take steps, and ask for memory, for what is about to be done.

        Raises
        ------
        MemoryBudgetError
            If fewer steps are left, or more memory is needed than may be held at a time.
        """
        if steps > self.steps:
            raise too_costly(f"about {steps:,} steps more, and {self.steps:,} are left")
        if memory > self.memory:
            raise too_costly(f"about {memory:,} bytes at a time, and may take {self.memory:,}")
        self.steps -= steps


def too_costly(needs: str) -> MemoryBudgetError:
    """Make the error for a certificate that needs more than a check may take."""
    return MemoryBudgetError(f"The certificate is too costly to check: it needs {needs}.")


def require_at_most(name: str, needs: int, most: int) -> None:
    """Refuse what needs more of something than is ever checked.

    Raises
    ------
    MemoryBudgetError
    """
    if needs > most:
        raise too_costly(f"{needs:,} {name}, and may have {most:,}")


def steps_of_rank(rows: int, columns: int) -> int:
    """Estimate the steps that the rank of a dense matrix modulo a prime takes."""
    # of each entry on its way into flint, and of each product there
    return rows * columns * 300 + rows * columns * min(rows, columns) // 4
