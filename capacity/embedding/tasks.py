"""The tasks that scores are asked to do."""

from typing import Literal, TypeAlias

# be the facts, 0 and 1; be above 0 at facts and below 0 elsewhere; rank the answers of every (s, q,
# ?) above all else; of every (?, q, o), too
Task: TypeAlias = Literal["exact", "signs", "ranking", "both-sides"]
