"""Write docs/families.md: what is analysed of each model type of transformers, by small models.

    python tools/families.py --state FILE [TYPE ...]

Every model type that `tools/small_models.py` builds is captured, and compared with what the model
returns itself. Each type runs in a process of its own, which may take a minute. Rows are kept in
the file of the state, so that a run that was stopped continues; a type that was killed or took
longer counts as one that raised an error. With names of types only these are run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.errors import CapacityError
from capacity.transformer import (
    ActivationCache,
    capture,
    decompose,
    effective_attention,
    identifiability_table,
)
from tools.small_models import NotBuiltError, model_types, small_inputs, small_model

DOCUMENT = Path(__file__).parents[1] / "docs" / "families.md"
# largest differences of numbers that count as the same, as a share of the largest one
LIMIT = 1e-5
SECONDS = 60
PARTS = {None: "attentions", "encoder": "encoder_attentions", "decoder": "decoder_attentions",
         "cross": "cross_attentions"}  # fmt: skip
HEAD = """# Families of models

[`capture`](how-to/pretrained-model.md) records the attention of models of `transformers`. No list
of families is needed. Either layers hand queries, keys and values to its `AttentionInterface`, or
code of the family's own computes a softmax of products of queries and keys, and averages values by
it. In both cases the model runs as it is, and what is recorded is checked: rows sum to 1, A V is
the output of the heads, and z W_O + b is what they write.

`python tools/families.py` wrote this page. It builds a small model of every model type of
`transformers` {version} whose configuration it can shrink, with random weights, and runs it on two
inputs. {counts}

* **Patterns**: largest difference between the recorded attention and what the model itself returns
  for `output_attentions=True`, as a share of the largest weight; *not returned* where it returns
  none of this shape.
* **Decomposition**: whether last embeddings are the sum of the four terms (of five where there are
  *mixers*), and the largest difference from it, as a share of the largest number.

Effective attention and the table of identifiability are computed for each type that is captured.

| model type | patterns | decomposition | notes |
|---|---|---|---|
"""
NOTES = """
A *window* is a layer whose tokens attend to some of the others alone: in causal mode rows are
projected onto the values that they may attend to. A *sink* takes weight from a row, and counts as
one more column with values of 0. A *gate* multiplies the outputs of heads by numbers of each token
before W_O. *Mixers* are sublayers of hybrids that mix tokens without attention (Mamba, gated linear
attention, short convolutions): they are a term of their own. Where *logits aren't scale q k*
(biases of positions, caps) `p4_excess` is missing, for it assumes logits of rank d_head_qk.
"""
NO_SUM = """
## Captured without a decomposition

Patterns, effective attention and identifiability of these are computed. `decompose` refuses them:

"""
REFUSED = """
## Refused

`capture` refuses these, in these words:

"""
NOT_BUILT = """
## Not tried

No small model of these could be built or run by shrinking the fields of its configuration. Most are
composed of several models, read other inputs than a text, an image or a sound, or need a package
that isn't installed.

"""


@dataclass(frozen=True)
class Row:
    """Outcome for one part of a model of one type.

    Attributes
    ----------
    name : str
        Model type, and the part of an encoder-decoder.
    outcome : {"captured", "refused", "wrong", "error", "not built"}
        What happened; *error* is an exception that isn't a `CapacityError`.
    patterns, sum : float or None
        Largest differences; None where there is nothing to compare.
    notes : str
        What is peculiar to the captured attention.
    words : str
        Message of the refusal of `capture`, or of `decompose`, or what is wrong.
    """

    name: str
    outcome: str
    patterns: float | None = None
    sum: float | None = None
    notes: str = ""
    words: str = ""

    def line(self) -> str:
        """Line of the table."""
        patterns = "not returned" if self.patterns is None else f"{self.patterns:.0e}"
        total = "no" if self.sum is None else f"yes, {self.sum:.0e}"
        return f"| {self.name} | {patterns} | {total} | {self.notes or '-'} |\n"


def rows_of(model_type: str) -> list[Row]:
    """Return what is found for a model type: one row for each part of an encoder-decoder."""
    warnings.simplefilter("ignore")
    try:
        model = small_model(model_type)
        inputs = small_inputs(model)
    except NotBuiltError as error:
        return [Row(model_type, "not built", words=str(error))]
    parts = ("encoder", "decoder", "cross") if model.config.is_encoder_decoder else (None,)
    return [_row(model_type, model, inputs, part) for part in parts]


def _row(model_type: str, model: Any, inputs: dict[str, Tensor], part: Any) -> Row:
    name = model_type if part is None else f"{model_type}, {'across' if part == 'cross' else part}"
    # some draw what they mask
    torch.manual_seed(0)
    read = {k: x for k, x in inputs.items() if part != "encoder" or not k.startswith("decoder_")}
    try:
        captured = capture(model, read, part=part, check="full")
    except CapacityError as error:
        return Row(name, "refused", words=_reason(error, model))
    own, last = _own(model, inputs, part)
    patterns = _patterns_apart(captured, own)
    wrong = [] if patterns is None or patterns <= LIMIT else ["patterns differ"]
    for layer, found in zip(captured.layers, effective_attention(captured).layers, strict=True):
        if _apart(found.pattern @ layer.v, layer.z) > 10 * LIMIT:
            wrong.append("effective attention has another output")
    if len(identifiability_table(captured)) != sum(layer.v[..., 0, 0].numel()
                                                   for layer in captured.layers):  # fmt: skip
        wrong.append("the table of identifiability isn't whole")
    total, words = None, ""
    try:
        sums = decompose(captured).embeddings[-1]
        expected = captured.last if last is None or last.numel() != sums.numel() else last
        assert expected is not None
        total = _apart(sums, expected.reshape(sums.shape))
        if total > LIMIT:
            wrong.append("terms have another sum")
    except CapacityError as error:
        words = _reason(error, model)
    outcome = "wrong" if wrong else "captured"
    return Row(
        name, outcome, patterns, total, ", ".join(_remarks(captured)), "; ".join(wrong) or words
    )


def _own(model: Any, inputs: dict[str, Tensor], part: Any) -> tuple[list[Tensor], Tensor | None]:
    """Attention and last embeddings that a model returns, as far as it does."""
    asked: dict[str, Any] = {"output_attentions": True, "use_cache": False}
    if "use_cache" not in model.forward.__code__.co_varnames and not hasattr(
        model.config, "use_cache"
    ):
        del asked["use_cache"]
    try:
        torch.manual_seed(0)
        with torch.no_grad():
            output = model(**inputs, **asked)
    except Exception:
        # the model's own errors are none of capture
        return [], None
    patterns = [x for x in getattr(output, PARTS[part], None) or () if isinstance(x, Tensor)]
    key = "encoder_last_hidden_state" if part == "encoder" else "last_hidden_state"
    return patterns, getattr(output, key, None)


def _patterns_apart(captured: ActivationCache, own: list[Tensor]) -> float | None:
    """Largest difference from a model's own patterns, where it returns one of each layer."""
    if len(own) != captured.n_layers:
        return None
    pairs = [(layer.pattern, pattern) for layer, pattern in zip(captured.layers, own, strict=True)]
    if any(ours.shape != theirs.shape for ours, theirs in pairs):
        return None
    if any(layer.sink is not None for layer in captured.layers):
        # returned with the sink, or before it
        pairs = [(x / x.sum(-1, keepdim=True), y / y.sum(-1, keepdim=True)) for x, y in pairs]
    return max(_apart(*pair) for pair in pairs)


def _apart(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1e-30))


def _remarks(captured: ActivationCache) -> Iterator[str]:
    if captured.causal:
        yield "causal"
    if any(getattr(step, "term", "") == "mixers" for step in captured.steps):
        yield "mixers"
    if any(layer.seen is not None for layer in captured.layers):
        yield "windows"
    if any(layer.sink is not None for layer in captured.layers):
        yield "a sink"
    if any(layer.gate is not None for layer in captured.layers):
        yield "a gate"
    if not all(layer.soft for layer in captured.layers):
        yield "logits aren't scale q k"


def _reason(error: Exception, model: Any) -> str:
    """A message without its last sentence, which is about what to do, and the name of the class."""
    sentences = re.split(
        r"(?<=\.) (?=[A-Z])", str(error).replace(type(model).__name__, "the model")
    )
    return " ".join(sentences[: max(len(sentences) - 1, 1)])


def page(rows: list[Row]) -> str:
    """Text of the page."""
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row.outcome, []).append(row)
    captured = by.get("captured", [])
    types = {outcome: {_type(row) for row in some} for outcome, some in by.items()}
    summed = {_type(row) for row in captured if row.sum is not None}
    tried = set().union(*types.values()) - types.get("not built", set())
    refused = tried - types.get("captured", set())
    counts = (
        f"{len(types.get('captured', ()))} of {len(tried)} types are captured, in at least one "
        f"part, and {len(summed)} of them have a decomposition; {len(refused)} are refused in "
        "every part. "
        f"{len(types.get('not built', ()))} other types couldn't be built or run small."
    )
    text = HEAD.format(version=version("transformers"), counts=counts)
    text += "".join(row.line() for row in captured) + NOTES
    text += NO_SUM + _listed([row for row in captured if row.sum is None])
    text += REFUSED + _listed(by.get("refused", []) + by.get("error", []))
    names = ", ".join(row.name for row in by.get("not built", []))
    return text + NOT_BUILT + names + ".\n"


def _type(row: Row) -> str:
    return row.name.partition(",")[0]


def _listed(rows: list[Row]) -> str:
    """Reasons, each with the types that have it, and their parts."""
    by: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        of_type = by.setdefault(row.words, {}).setdefault(_type(row), [])
        of_type += row.name.split(", ")[1:]
    return "".join(f"* {_names(by[words])}: {words}\n" for words in sorted(by))


def _names(parts: dict[str, list[str]]) -> str:
    return ", ".join(f"{name} ({', '.join(of)})" if of else name for name, of in parts.items())


def without_sizes(text: str) -> str:
    """Return a text of the page without differences, which depend on the machine."""
    return re.sub(r"\b\de[+-]\d\d\b", "-", text)


def main() -> None:
    """Run the types that the state lacks, and write the page."""
    parser = argparse.ArgumentParser(description="Write docs/families.md.")
    parser.add_argument("types", nargs="*", help="model types to run again; by default new ones")
    parser.add_argument("--state", type=Path, required=True, help="file that keeps the rows")
    options = parser.parse_args()
    known = _read(options.state)
    wanted = options.types or [one for one in model_types() if one not in known]
    for number, (one, rows) in enumerate(swept(wanted), start=1):
        print(f"\r{number} of {len(wanted)}: {one:40}", end="", file=sys.stderr, flush=True)
        known[one] = rows
        lines = (
            json.dumps([name, list(map(asdict, rows))]) for name, rows in sorted(known.items())
        )
        options.state.write_text("\n".join(lines), encoding="utf-8")
    print(file=sys.stderr)
    rows = [row for one in sorted(known) for row in known[one]]
    DOCUMENT.write_text(page(rows), encoding="utf-8")
    odd = [row for row in rows if row.outcome in ("wrong", "error")]
    for row in odd:
        print(f"{row.name}: {row.outcome}: {row.words}", file=sys.stderr)
    sys.exit(bool(odd))


def swept(types: list[str]) -> Iterator[tuple[str, list[Row]]]:
    """Yield model types with their rows, each found in a process of its own."""
    context = multiprocessing.get_context("fork")
    torch.set_num_threads(1)
    # what all types import, once
    rows_of("bert")
    for one in types:
        yield one, _apart_from_others(context, one)


def _read(state: Path) -> dict[str, list[Row]]:
    if not state.exists():
        return {}
    lines = map(json.loads, state.read_text(encoding="utf-8").splitlines())
    return {name: [Row(**row) for row in rows] for name, rows in lines}


def _apart_from_others(context: Any, model_type: str) -> list[Row]:
    """Rows of a type, found in a process of its own."""
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sending, model_type))
    process.start()
    sending.close()
    try:
        rows = receiving.recv() if receiving.poll(SECONDS) else None
    except EOFError:
        rows = None
    if rows is None:
        process.kill()
        rows = [Row(model_type, "error", words=f"killed, or longer than {SECONDS} seconds")]
    process.join()
    return rows


def _send(connection: Any, model_type: str) -> None:
    # transformers warns of small configurations
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        try:
            rows = rows_of(model_type)
        except Exception as error:
            rows = [Row(model_type, "error", words=f"{type(error).__name__}: {error}")]
    connection.send(rows)


if __name__ == "__main__":
    main()
