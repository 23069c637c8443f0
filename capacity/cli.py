"""The ``capacity`` command: parse, call, print. What it prints with --json is a contract.

Exit codes: 0 done; 2 wrong use or unreadable input, with one message on standard error; 70 a fault
of ours; 130 interrupted.
"""

from __future__ import annotations

import json
import math
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from capacity import __version__
from capacity.database.files import ALIASES
from capacity.database.policy import MultiPolicy
from capacity.errors import CapacityError, MultiValuedWarning
from capacity.rank.interval import Effort

app = typer.Typer(
    name="capacity",
    help="How big a database of facts is, and how many facts an attention layer can hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[
    Path, typer.Argument(help="RDF, TSV or CSV; may be compressed.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MultiOption = Annotated[
    MultiPolicy | None,
    typer.Option(help="What to do with (subject, predicate) pairs of several objects."),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help=f"{', '.join(ALIASES)}; guessed if left out.")
]
DeviceOption = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to train.")]


@app.command()
def rank(
    file: File,
    format: FormatOption = None,
    multi: MultiOption = None,
    effort: Annotated[Effort, typer.Option(help="How much work to spend.")] = "quick",
    effective: Annotated[
        bool, typer.Option("--effective", help="Also bound the effective rank.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Also fit CP decompositions (dense, slower).")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option(help="Write what the bounds rest on to this JSON file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Bound the rank of a database from both sides."""
    from capacity.database.files import load
    from capacity.rank.bounds import database_bounds
    from capacity.rank.interval import effective_rank_interval, rank_interval

    db = load(file, format=format, multi=multi)
    b = database_bounds(db)
    intervals = {"rank": rank_interval(db, effort=effort, computed=b)}
    if effective:
        intervals["effective_rank"] = effective_rank_interval(db, effort=effort, computed=b)
    fit = None
    if estimate:
        from capacity.rank.cp import cp_estimate

        with _spinner("fitting CP decompositions"):
            fit = cp_estimate(db)
    if certificate is not None:
        ends = [end.to_dict() for i in intervals.values() for end in (i.lower, i.upper)]
        _write_text(certificate, json.dumps(ends, indent=1) + "\n")
    k, q, v = db.shape
    assert db.source is not None
    result: dict[str, Any] = {
        "source": db.source.name,
        "sha256": db.source.sha256,
        "facts_sha256": db.facts_sha256,
        "multi": db.multi,
        "triples": db.n_triples,
        "subjects": k,
        "predicates": q,
        "objects": v,
        "functional": db.is_functional,
        "multi_valued_pairs": db.n_multi_valued_pairs,
        "bounds": {
            "triples": b.triples,
            "subject_slices": b.slices[0],
            "predicate_slices": b.slices[1],
            "object_slices": b.slices[2],
            "paper": b.paper,
            "unfoldings": list(b.unfoldings),
        },
        "rank": intervals["rank"].to_dict(),
        "effective_rank": intervals["effective_rank"].to_dict() if effective else None,
        "estimate": fit.to_dict() if fit else None,
    }
    if as_json:
        _print_json(result)
        return
    print(f"{db.source.name}: {db!r}")
    print(f"  triples                  {b.triples}")
    print(f"  paper's count            {b.paper}   min(sum_k |V_k|, sum_q |V_q|), Prop. 2.1")
    print(f"  sums of slice ranks      {' '.join(map(str, b.slices))}   subject, predicate, object")
    print(f"  unfolding ranks          {' '.join(map(str, b.unfoldings))}")
    for name, interval in intervals.items():
        known = "known exactly" if interval.closed else "certified"
        by = f"lower by {interval.lower.kind}, upper by {interval.upper.kind}"
        print(f"  {name.replace('_', ' '):<24} {interval}   {known}; {by}")
    if fit:
        print(f"  estimate                 {fit.rank}   {fit.method}, residual {fit.residual:.1e}; "
              "no certificate")  # fmt: skip


@app.command()
def train(
    file: File,
    d_model: Annotated[int, typer.Option(help="Dimension of the embeddings.")] = 4,
    n_heads: Annotated[int, typer.Option(help="Number of heads.")] = 2,
    d_head_qk: Annotated[int, typer.Option(help="Inner dimension of queries and keys.")] = 2,
    d_head_vo: Annotated[int, typer.Option(help="Inner dimension of values and outputs.")] = 2,
    format: FormatOption = None,
    multi: MultiOption = None,
    epochs: Annotated[int, typer.Option(help="Largest number of epochs.")] = 2000,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of the initial weights.")] = 0,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Write the layer (safetensors) and its row to this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train one attention layer on a functional database, and score it."""
    _require_layers()
    from capacity.database.files import load
    from capacity.layer.config import LayerConfig
    from capacity.layer.recipe import Recipe
    from capacity.sweep.execute import do_run, resolve_device
    from capacity.sweep.plan import Run

    recipe = Recipe(epochs=epochs, learning_rate=learning_rate, engine="reference")
    config = LayerConfig(d_model, n_heads, d_head_qk, d_head_vo)
    # a layer needs a function: without a policy a multi-valued file is an error, not a warning
    db = load(file, format=format, multi=multi or "error")
    run = Run(f"{file.name.split('.')[0]}-{db.facts_sha256[:8]}", db, config, seed, recipe)
    with _spinner(f"training {config.name} on {db.n_triples} facts"):
        row, layer = do_run(run, resolve_device(device))
    if out is not None:
        layer.save(out)
        _write_text(out / "run.json", json.dumps(_plain(row), indent=2) + "\n")
    if as_json:
        _print_json([row])
        return
    print(f"{file.name}: {db!r}")
    print(f"  layer          {config.name}, {row['n_parameters']} parameters and "
          f"{row['n_embedding_parameters']} in embeddings")  # fmt: skip
    print(f"  training       {row['status']} after {row['epochs']} epochs, loss {row['loss']:.4f}")
    for name in ("argmax", "0.50", "0.75", "0.95", "0.99"):
        title = name if name == "argmax" else f"p {'> ' if name == '0.50' else '>='} {name}"
        print(f"  {title:<14} {row[f'accuracy_{name}']:.3f}")
    if out is not None:
        print(f"  written to     {out}")


@app.command()
def sweep(
    config: Annotated[Path, typer.Argument(help="TOML file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder of the sweep.", show_default=False)],
    workers: Annotated[int, typer.Option(help="Processes to train in.")] = 1,
    device: DeviceOption = "auto",
    shard: Annotated[
        str | None, typer.Option(help="i/N: do the i-th of N parts, counted from 0.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train every run of a plan; the same command again goes on where it stopped."""
    _require_layers()
    from capacity.sweep.execute import run_sweep
    from capacity.sweep.plan import read_plan
    from capacity.sweep.store import load

    plan = read_plan(config)
    part = _part(shard)
    try:
        with _bar("training") as progress:
            whole = run_sweep(
                plan, out, workers=workers, device=device, shard=part, progress=progress
            )
    except KeyboardInterrupt:
        print("capacity: interrupted; the same command goes on from here.", file=sys.stderr)
        raise
    if as_json:
        _print_json(load(out).to_dict("records"))
        return
    table = load(out)
    counts = ", ".join(f"{n} {status}" for status, n in table["status"].value_counts().items())
    print(f"{out}: {len(table)} of {len(plan.runs)} runs done ({counts})")
    print(f"  table: {whole}" if whole else "  other parts are still to be done")


@app.command()
def grid(
    folder: Annotated[Path, typer.Argument(help="Folder of a sweep.", show_default=False)],
    tau: Annotated[
        str, typer.Option(help="0.5 (p > 0.5), 0.75, 0.95, 0.99, argmax or argmax_paper.")
    ] = "0.95",
    out: Annotated[Path | None, typer.Option(help="Draw the grid to this PNG, SVG or PDF.")] = None,
    as_json: Json = False,
) -> None:
    """Average the accuracies of a sweep over bins of the two rank bounds."""
    from capacity.evaluator.grid import accuracy_grid
    from capacity.sweep.store import load

    try:
        threshold: Any = float(tau)
    except ValueError:
        threshold = tau
    table = load(folder)
    cells = accuracy_grid(table, threshold)
    if out is not None:
        from capacity.plots import plot_accuracy_grid

        by = f"softmax >= {tau}" if isinstance(threshold, float) else tau
        title = f"accuracy by {by}: {len(table)} runs"
        plot_accuracy_grid(cells, title=title, path=out)
    if as_json:
        _print_json(cells.to_dict("records"))
        return
    print(cells.to_string(index=False, float_format=lambda x: f"{x:.3f}"))
    if out is not None:
        print(f"figure: {out}")


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal()):
        raise ValueError(f"--shard must read i/N, such as 0/4; got {text!r}.")
    return int(part), int(parts)


def _require_layers() -> None:
    from importlib.util import find_spec

    from capacity.errors import MissingExtraError

    missing = [name for name in ("torch", "safetensors", "jaxtyping") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"Training needs {', '.join(missing)}; install the extra: "
            "pip install 'knowledge-capacity[layers]'"
        )


def _print_json(data: Any) -> None:
    print(json.dumps(_plain(data)))


def _plain(data: Any) -> Any:
    """JSON knows no NaN: a number that isn't there is null."""
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@contextmanager
def _spinner(what: str) -> Iterator[None]:
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Progress on standard error, silent when that is not a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the command and exit with its code."""
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", MultiValuedWarning)
            warnings.showwarning = lambda text, *_: print(f"capacity: {text}", file=sys.stderr)
            app(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except (CapacityError, ValueError, OSError) as error:
        print(f"capacity: {error}", file=sys.stderr)
        return 2
    except Exception:
        traceback.print_exc()
        print("capacity: this is a fault of ours; please report it.", file=sys.stderr)
        return 70
    return 0


if __name__ == "__main__":
    main()
