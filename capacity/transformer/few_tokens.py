"""Consequences of a text with no more tokens than a head's values have dimensions.

The output of a head is A V, with V of shape (n_tokens, d_head_vo). Attention without effect is what
lies in the left null space of V, whose dimension is n_tokens - rank(V), and rank(V) <= d_head_vo.
So from d_head_vo + 1 tokens on there always is such a space. With fewer tokens there is none unless
values are linearly dependent by chance: A is then the only pattern with its output, and effective
attention is A itself, in every mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def on_few_tokens(table: pd.DataFrame) -> str | None:
    """Say what follows from few tokens for the heads of a model.

    Parameters
    ----------
    table : DataFrame
        Rows of `attention_table` about one sentence.

    Returns
    -------
    str or None
        A sentence; None where some head has fewer dimensions than there are tokens.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"n_tokens": [3], "d_head_vo": [8], "rank_values": [3]})
    >>> print(on_few_tokens(table))
    The text has 3 tokens, and the values of a head 8 dimensions (d_head_vo): they are linearly
    independent in all heads, so that each pattern is the only one with its output, and all of
    attention is effective. From 9 tokens on a part of it can be without effect.
    >>> on_few_tokens(table.assign(d_head_vo=2, rank_values=2))
    """
    n, d = int(table["n_tokens"].iloc[0]), int(table["d_head_vo"].min())
    if n > d:
        return None
    tokens = "1 token" if n == 1 else f"{n} tokens"
    start = f"The text has {tokens}, and the values of a head {d} dimensions (d_head_vo): "
    end = f"From {d + 1} tokens on a part of it can be without effect."
    dependent = int((table["rank_values"] < n).sum())
    if not dependent:
        return (
            f"{start}they are linearly independent in all heads, so that each pattern is the only "
            f"one with its output, and all of attention is effective. {end}"
        )
    return (
        f"{start}so few could be linearly independent, and are so in {len(table) - dependent} of "
        f"{len(table)} heads, where all of attention is effective. {end}"
    )


def all_independent(table: pd.DataFrame) -> bool:
    """Return True if the values of all tokens are linearly independent in every head.

    Parameters
    ----------
    table : DataFrame
        Rows of `attention_table`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import pandas as pd
    >>> all_independent(pd.DataFrame({"n_tokens": [3, 3], "rank_values": [3, 2]}))
    False
    """
    return bool((table["rank_values"] == table["n_tokens"]).all())
