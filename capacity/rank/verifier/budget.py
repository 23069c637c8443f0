"""The budget of work and memory for checking a file of certificates.

A step is about a nanosecond of one core. Every checker charges its work to the budget before it
does it, so that a certificate of a few bytes can't ask for hours of work or for all memory.
"""

from __future__ import annotations

from capacity.errors import MemoryBudgetError

# about eight seconds for up to a million facts, and in proportion beyond
STEPS, FACTS = 8_000_000_000, 1_000_000
# bytes for each entry of a dense block while it is converted for flint
DENSE_BYTES = 72
# bytes at any time, in addition to the facts themselves
MEMORY = 700 * 2**20


class CheckBudget:
    """Steps that remain for a file of certificates, and bytes that a check may hold at a time.

    Parameters
    ----------
    steps : int
        Number of steps, of about a nanosecond each.
    memory : int
        Number of bytes.
    """

    def __init__(self, steps: int = STEPS, memory: int = MEMORY) -> None:
        self.steps = steps
        self.memory = memory

    @classmethod
    def of(cls, n_facts: int) -> CheckBudget:
        """Make the budget for all certificates about a database of `n_facts` facts."""
        share = max(n_facts, FACTS) / FACTS
        return cls(int(STEPS * share), int(MEMORY * share))

    def spend(self, steps: int, memory: int = 0) -> None:
        """Charge the steps and the memory of the work that follows.

        Raises
        ------
        MemoryBudgetError
            If fewer steps remain, or the work needs more memory than may be held at a time.
        """
        if steps > self.steps:
            raise too_costly(f"about {steps:,} more steps, and {self.steps:,} remain")
        if memory > self.memory:
            raise too_costly(f"about {memory:,} bytes at a time, and may use {self.memory:,}")
        self.steps -= steps


def too_costly(needs: str) -> MemoryBudgetError:
    """Make the error for a certificate that needs more than its budget."""
    return MemoryBudgetError(f"The certificate is too costly to check: it needs {needs}.")


def require_at_most(name: str, needs: int, most: int) -> None:
    """Refuse a certificate that needs more of something than any check allows.

    Raises
    ------
    MemoryBudgetError
        If `needs` exceeds `most`.
    """
    if needs > most:
        raise too_costly(f"{needs:,} {name}, and may have {most:,}")


def steps_of_rank(rows: int, columns: int) -> int:
    """Estimate the steps of computing the rank of a dense matrix modulo a prime."""
    # the conversion of each entry for flint, and each product there
    return rows * columns * 300 + rows * columns * min(rows, columns) // 4
