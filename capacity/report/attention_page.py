"""The page about a pretrained model: what of its attention on a text has an effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.optional import PACKAGES_OF_LAYERS, require_packages
from capacity.report.drawing.pictures import Head, Patterns, hexadecimal, pictures, signed
from capacity.report.rendering import Cell, Column, Table, rendered, table

if TYPE_CHECKING:
    import pandas as pd

    from capacity.transformer.activations.records.cache import ActivationCache
    from capacity.transformer.effective.attention import EffectiveMode

_MODES: tuple[EffectiveMode, ...] = ("plain", "simplex", "causal")
_WORDS = {
    "standard": "Attention as the model computes it: the weights of a row add up to 1.",
    "plain": "Standard attention without the part that the values map to 0; a row needn't add up "
    "to 1.",
    "simplex": "The same, among rows with the same sums.",
    "causal": "The same row by row, among the tokens that a row may attend to.",
}


def attention_report(
    captured: ActivationCache, tokens: Sequence[str], *, title: str | None = None
) -> str:
    """Write a page about a model's attention on one text that can be sent to a colleague.

    For each layer and head it shows standard attention beside plain, simplex and causal effective
    attention (Brunner et al. 2020; Sun and Marasovic 2021), nullities, and the importance of the
    head's term where the residual stream is known (Mickus et al. 2022, equation (6)). Where a text
    has too few tokens for attention to have a part without effect, the page states it.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on one text without padding, such as `capacity.transformer.capture`
        returns.
    tokens : sequence of str
        The tokens of the text.
    title : str, optional
        Name of the model; by default that of its class.

    Returns
    -------
    str
        The page, one HTML file that loads nothing.

    Raises
    ------
    InvalidArgumentError
        For several texts, padding, or another number of tokens.
    MissingExtraError
        Without torch (extra ``layers``) or jinja2 (extra ``report``).

    Examples
    --------
    >>> import torch
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> page = attention_report(layer.capture(torch.tensor([[3, 7]])), ["Oslo", "capital of"])
    >>> "of 2 heads" in page, "<script src" in page
    (True, False)
    """
    require_packages("A report of a model", PACKAGES_OF_LAYERS, "layers")
    from capacity.transformer.effective.attention import effective_attention, effective_share
    from capacity.transformer.table import identifiability_table

    n = captured.layers[0].pattern.shape[-1]
    if len(captured.mask) != 1 or not bool(captured.key_mask.all()) or len(tokens) != n:
        raise InvalidArgumentError(
            f"A page is about one text without padding, with its tokens; got {len(captured.mask)} "
            f"texts of {n} places, and {len(tokens)} tokens. Capture one text alone."
        )
    modes = _MODES if captured.causal else _MODES[:2]
    found = {mode: effective_attention(captured, mode) for mode in modes}
    rows = identifiability_table(captured).drop(columns="sentence")
    numbered = list(zip(captured.layer_numbers, captured.layers, strict=True))
    for mode, effective in found.items():
        shares = [
            effective_share(layer.pattern, left)[0].double().cpu().tolist()
            for layer, left in zip(captured.layers, effective.layers, strict=True)
        ]
        rows[f"share_{mode}"] = [share for of_layer in shares for share in of_layer]
    importance, terms, unknown = _importance(captured)
    rows["importance"] = importance
    patterns = [
        Patterns(kind, {(number, head): matrix for number, layer in layers
                        for head, matrix in zip(captured.head_numbers, layer, strict=True)})
        for kind, layers in (
            ("standard", [(k, layer.pattern[0].double().cpu().numpy()) for k, layer in numbered]),
            *((mode, [(k, left.pattern[0].double().cpu().numpy())
                      for (k, _), left in zip(numbered, effective.layers, strict=True)])
              for mode, effective in found.items()),
        )
    ]  # fmt: skip
    # those of which most has no effect are drawn first
    order = rows.sort_values(["share_plain", "layer", "head"])[["layer", "head"]]
    heads: list[Head] = [(int(k), int(h)) for k, h in order.itertuples(index=False)]
    largest = max(float(abs(matrix).max()) for one in patterns for matrix in one.of.values())
    drawn = pictures(patterns, heads, tokens, largest)
    first = rows.iloc[0]
    return rendered(
        "attention.html.j2",
        title=f"Attention of {title or captured.source} on one page",
        source=captured.source,
        causal=captured.causal,
        tokens=list(tokens),
        n_tokens=n,
        n_layers=captured.n_layers,
        n_heads=len(captured.head_numbers),
        d_head=int(first["d_head_vo"]),
        d_head_qk=int(first["d_head_qk"]),
        threshold=float(rows["threshold"].max()),
        modes=modes,
        least=rows.iloc[int(rows["share_plain"].to_numpy().argmin())].to_dict(),
        mean_share=float(rows["share_plain"].mean()),
        n_not_unique=int((rows["nullity"] > 0).sum()),
        largest=largest,
        scale=[hexadecimal(signed(i / 10)) for i in range(-10, 11)],
        n_drawn=len(drawn) // len(patterns),
        of_heads=_heads(rows, patterns, drawn),
        terms=terms,
        unknown=unknown,
    )


def _importance(captured: ActivationCache) -> tuple[list[float | None], Table | None, str]:
    """Mean importance of each head and each term; the reason where the stream isn't known."""
    from capacity.transformer.residual.additive_decomposition import (
        decompose,
        head_importance,
    )

    n_heads = captured.n_layers * len(captured.head_numbers)
    try:
        of_heads = head_importance(captured)[:, :, 0].double().mean(-1).flatten().tolist()
        split = decompose(captured)
        of_terms = split.importance()[:, :, 0].double().mean(-1).tolist()
    except CapacityError as error:
        return [None] * n_heads, None, str(error)
    return (
        of_heads,
        table(
            "terms",
            f"Importance of the {len(split.names)} terms of the embeddings, mean over tokens; "
            "a row adds up to 1",
            [Column("after layer", "Number of layers that are done.", "number"),
             *(Column(name.replace("_", " "), f"Importance of the {name.replace('_', ' ')} term.",
                      "number") for name in split.names)],
            ((number, *row) for number, row in enumerate(of_terms)),
        ),
        "",
    )  # fmt: skip


_NUMBERS = {
    "rank_values": Column("rank of values", "Number of independent directions among the values of "
                          "all tokens.", "number"),
    "nullity": Column("nullity", "Tokens less that rank: the dimension of the changes to a row of "
                      "attention that no output shows.", "number"),
    "nullity_simplex": Column("nullity, simplex", "The same, of changes that keep the sum of the "
                              "row.", "number"),
    "joint_nullity": Column("joint nullity", "Dimension of the changes to a row in all heads of "
                            "the layer that keep the sum of their outputs and the sums of rows.",
                            "number"),
    "identifiable_rows": Column("unique rows", "Rows of attention that are the only ones with "
                                "their output and sum.", "number"),
    "p4_excess": Column("P4 excess", "Above 0, attention isn't unique even among softmaxes of "
                        "logits of rank d_head; - where no such count is known.", "number"),
    "importance": Column("importance", "Share of the head's output in the last embeddings, "
                         "mean over tokens; - where it isn't known.", "number"),
}  # fmt: skip


def _heads(rows: pd.DataFrame, patterns: Sequence[Patterns], drawn: dict[Any, Any]) -> Table:
    """One row per head: its pictures and numbers."""
    kinds = [one.kind for one in patterns]
    shares = [
        Column(f"{kind} share", f"Share of squared standard attention that {kind} attention keeps.",
               "number")
        for kind in kinds[1:]
    ]  # fmt: skip
    pictured = [Column(kind, _WORDS[kind], "picture") for kind in kinds]
    columns = [
        Column("layer", "Layer, counted from 0.", "number", "ascending"),
        Column("head", "Head of the layer, counted from 0.", "number"),
        *pictured,
        *shares,
        *_NUMBERS.values(),
    ]

    def cells(row: dict[Any, Any]) -> list[object]:
        head = (int(row["layer"]), int(row["head"]))
        images = [drawn.get((kind, head)) for kind in kinds]
        numbers = [row[f"share_{kind}"] for kind in kinds[1:]] + [row[name] for name in _NUMBERS]
        return [
            *head,
            *(Cell("not drawn", "", one) for one in images),
            *(None if one is None or one != one else one for one in numbers),
        ]

    plain = rows.astype(object).where(rows.notna(), None)
    return table(
        "heads",
        "Standard and effective attention of every head, with what isn't unique in it",
        columns,
        (cells(row) for row in plain.to_dict("records")),
    )
