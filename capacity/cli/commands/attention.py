"""The command ``capacity attention``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from capacity.cli.output import ANALYSIS, MODEL, MODELS, OUTPUT, TEXT_OPTION, Json, print_json
from capacity.errors import InvalidArgumentError
from capacity.optional import PACKAGES_OF_LAYERS, require_packages
from capacity.progress import spinner
from capacity.visible import visible

# with more tokens than the values of a small model's heads have dimensions, 32: of fewer, all
# attention has an effect, and there is nothing to see
TEXT = (
    "The court found that new antibiotics work against bacteria, but no company wants to make "
    "antibiotics any more: the old ones are cheap, and patients take them for a week. Then they "
    "are well, and buy no more."
)
PANEL = MODELS
EXAMPLES = (
    f'capacity attention model --text "{TEXT}"',
    f'capacity attention model --text "{TEXT}" --out heads.png',
)


def attention(
    model_folder: Annotated[
        Path,
        typer.Argument(
            help="Folder that save_pretrained wrote: a model and its tokenizer.",
            show_default=False,
        ),
    ],
    text: Annotated[str, TEXT_OPTION],
    mode: Annotated[
        Literal["plain", "simplex", "causal"] | None,
        typer.Option(
            help="Kind of effective attention; default: causal for causal models, else plain.",
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    part: Annotated[
        Literal["encoder", "decoder", "cross"] | None,
        typer.Option(
            help="Attention of an encoder-decoder: within its encoder, within its decoder, or "
            "from the decoder to the encoder (cross).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    decoder_text: Annotated[
        str | None,
        typer.Option(
            help="Text that the decoder reads, with --part decoder or cross; default: --text.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(
            help="Layer to draw, from 0; by default that of the head with the least effective "
            "share.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(help="Head to draw, counted from 0; needs --layer.", rich_help_panel=OUTPUT),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Draw standard beside effective attention in this PNG, SVG or PDF.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure and draw the effective attention of a model."""
    require_packages("Analysing a model", (*PACKAGES_OF_LAYERS, "transformers"), "transformers")
    from capacity.transformer.activations.capturing import capture
    from capacity.transformer.activations.models.pretrained import inputs_of_text, load_pretrained
    from capacity.transformer.effective.attention import effective_attention
    from capacity.transformer.table import attention_table, on_few_tokens

    decodes = part in ("decoder", "cross")
    if decoder_text is not None and not decodes:
        raise InvalidArgumentError(
            "--decoder-text is what a decoder reads: add --part decoder, or --part cross."
        )
    if out is not None:
        from capacity.plots.theme import require_drawable

        # before the analysis, which would be lost if the figure couldn't be written
        require_drawable(out)
    elif layer is not None or head is not None:
        raise InvalidArgumentError(
            "--layer and --head choose the head to draw: --out must name the file to draw."
        )
    with spinner(f"reading {model_folder.name}"):
        model, tokenizer = load_pretrained(model_folder)
    inputs = inputs_of_text(model, tokenizer, text, part, decoder_text)
    with spinner(f"analysing {inputs['input_ids'].shape[1]} tokens"):
        captured = capture(model, inputs, part=part)
        effective = effective_attention(captured, mode)
        table = attention_table(captured, effective).drop(columns="sentence")
    # of what attends, and of what is attended to
    tokens, keys = (
        tokenizer.convert_ids_to_tokens(inputs[name][0].tolist())
        for name in (
            "decoder_input_ids" if decodes else "input_ids",
            "decoder_input_ids" if part == "decoder" else "input_ids",
        )
    )
    if out is not None:
        _draw(captured, effective, table, (tokens, keys), _chosen(table, layer, head), out)
    if as_json:
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        print_json({"model": captured.source, "mode": effective.mode, "tokens": tokens,
                    "layers": rows, **({"part": part, "keys": keys} if part else {})})  # fmt: skip
        return
    first = table.iloc[0]
    about = (f"{model_folder.name}: {captured.source}, {captured.n_layers} layers of "
             f"{len(captured.layers[0].W_O)} heads, d_head_qk {int(first['d_head_qk'])}, d_head_vo "
             f"{int(first['d_head_vo'])}; {len(tokens)} tokens, {effective.mode} mode")  # fmt: skip
    print(visible(about))
    shown = ["layer", "head", "rank_values", "nullity", "nullity_simplex", "joint_nullity",
             "identifiable_rows", "p4_excess", "effective_share"]  # fmt: skip
    few = on_few_tokens(table)
    if few is not None:
        print(few)
    every = table[shown[2:]].drop_duplicates()
    if len(every) == 1:
        print(f"all {len(table)} heads have the same:")
    print(
        (every if len(every) == 1 else table[shown]).to_string(
            index=False, float_format=lambda x: f"{x:.3f}", na_rep="-"
        )
    )
    print(f"singular values up to {first['threshold']:.2g} of a head's largest count as 0")
    if out is not None:
        print(visible(f"figure: {out}"))


def _chosen(table: Any, layer: int | None, head: int | None) -> Any:
    if layer is None and head is None:
        return table.loc[table["effective_share"].idxmin()]
    rows = table[(table["layer"] == layer) & (table["head"] == head)]
    if rows.empty:
        numbers = table["layer"].unique().tolist()
        # layers of hybrids without attention have no heads
        those = ", ".join(map(str, numbers))
        whole = numbers == list(range(len(numbers)))
        layers = f"from 0 to {numbers[-1]}" if whole else f"among {those}"
        raise InvalidArgumentError(
            f"--layer must be {layers} and --head from 0 to "
            f"{table['head'].max()}, both together; got {layer!s:.60} and {head!s:.60}."
        )
    return rows.iloc[0]


def _draw(
    captured: Any,
    effective: Any,
    table: Any,
    tokens: tuple[list[str], list[str]],
    chosen: Any,
    out: Path,
) -> None:
    import pandas as pd

    from capacity.plots import plot_attention
    from capacity.transformer.table import all_independent

    layer, head = int(chosen["layer"]), int(chosen["head"])
    at = captured.layer_numbers.index(layer)
    standard, left = (
        pd.DataFrame(of.layers[at].pattern[0, head].numpy(), *tokens)
        for of in (captured, effective)
    )
    if all_independent(table):
        # the second panel would be the first, and that of shares all of one colour
        n, d = len(tokens[1]), int(table["d_head_vo"].min())
        plot_attention(
            {"attention, all of it effective": standard},
            title=f"layer {layer}, head {head}: with {n} tokens in {d} dimensions of values\n"
            "no other pattern has the same output, in any head",
            path=out,
        )
        return
    plot_attention(
        {"standard attention": standard, f"effective attention ({effective.mode})": left},
        title=f"layer {layer}, head {head}: {chosen['effective_share']:.0%} of its square has an "
        "effect",
        shares=table.pivot(index="layer", columns="head", values="effective_share"),
        path=out,
    )
