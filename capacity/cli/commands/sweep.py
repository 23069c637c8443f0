"""The command ``capacity sweep``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.cli.output import COMPUTE, LAYERS, OUTPUT, DeviceOption, Json, print_json
from capacity.errors import InvalidArgumentError
from capacity.optional import PACKAGES_OF_LAYERS, require_packages
from capacity.progress import bar
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.sweep.plan import Plan


def _print_reference(asked: bool) -> None:
    if asked:
        from capacity.sweep.grammar.reference_page import reference

        print(reference(), end="")
        raise typer.Exit


# between two lines of progress where there is no terminal
LINE_SECONDS = 60.0
PANEL = LAYERS
EXAMPLES = (
    "capacity sweep experiments/configs/demo.toml --dry-run",
    "capacity sweep experiments/configs/demo.toml --out demo --workers 2",
)


def sweep(
    config: Annotated[Path, typer.Argument(help="TOML file of the plan.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the sweep: a new one, or one that this plan continues.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Number of processes that train.", rich_help_panel=COMPUTE)
    ] = 1,
    device: DeviceOption = "auto",
    shard: Annotated[
        str | None,
        typer.Option(
            help="Train one of N parts, written i/N, with i from 0.", rich_help_panel=COMPUTE
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler whose workers train instead of processes here.",
            rich_help_panel=COMPUTE,
        ),
    ] = None,
    allow_other_engine: Annotated[
        bool,
        typer.Option(
            "--allow-other-engine",
            help="Train all runs again, and keep those of another engine, dtype or version.",
            rich_help_panel=COMPUTE,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan with its estimated time and size, and how many of its runs the "
            "folder holds, and train nothing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    _reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help="Print the reference of the TOML file: all tables and keys.",
            is_eager=True,
            callback=_print_reference,
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train all runs of a plan, or those that its folder lacks.

    A sweep that was interrupted continues. So does one whose plan has grown, by a seed, a layer or
    a database. The folder is then the same as one that was begun with the larger plan.
    """
    part = _part(shard)
    if dry_run:
        from capacity.sweep.estimates import summary
        from capacity.sweep.grammar.plan_file import read_plan

        plan = read_plan(config)
        plan = plan if device == "auto" else plan.on(device)
        there = None if out is None else _there(out, plan, allow_other_engine=allow_other_engine)
        _print_plan(summary(plan, workers=workers, there=there), as_json)
        return
    if out is None:
        raise InvalidArgumentError("--out must name the folder of the sweep; --dry-run needs none.")
    require_packages("Training", PACKAGES_OF_LAYERS, "layers")
    if workers > 1 and dask is None and not out.exists():
        # what workers are forked from imports as much as this process, and begins first
        from capacity.sweep.workers.pool import start_server

        start_server()
    from capacity.sweep.execute import run_sweep

    try:
        with bar(line_every=LINE_SECONDS) as progress:
            whole = run_sweep(
                config,
                out,
                workers=workers,
                device=device,
                shard=part,
                dask=dask,
                allow_other_engine=allow_other_engine,
                progress=progress,
            )
    except KeyboardInterrupt:
        print("capacity: interrupted; run the same command again to resume.", file=sys.stderr)
        raise
    # loaded after the workers have begun
    from capacity.sweep.storage.runs_table import load, n_planned

    if not any((out / "shards").glob("*.parquet")):
        # a part of a job array can be empty, and end before another part has written a shard
        print("[]" if as_json else visible(f"{out}: 0 of {n_planned(out)} runs done"))
        return
    table = load(out)
    if as_json:
        print_json(table.to_dict("records"))
        return
    counts = ", ".join(f"{n} {status}" for status, n in table["status"].value_counts().items())
    print(visible(f"{out}: {len(table)} of {n_planned(out)} runs done ({counts})"))
    print(visible(f"  table: {whole}") if whole else "  other parts are still to be done")


def _there(out: Path, plan: Plan, *, allow_other_engine: bool) -> set[str]:
    """Keys of the runs of a plan that a folder holds."""
    if not out.exists():
        return set()
    from capacity.sweep.storage.admission import keys_there
    from capacity.sweep.storage.manifest import environment

    here = environment(plan.runs[0].device)
    return keys_there(out, plan, here, allow_other_engine=allow_other_engine)


def _print_plan(plan: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    least, most = plan["smallest_database"], plan["largest_database"]
    cores = "one core" if plan["workers"] == 1 else f"{plan['workers']:,} cores"
    start, ranks, runs = (
        _duration(plan[f"seconds_{part}"]) for part in ("to_start", "of_ranks", "of_runs")
    )
    shards = f"{plan['shards']:,} shard{'' if plan['shards'] == 1 else 's'}"
    print(f"  runs        {plan['runs']:,}, in {shards}")
    if "there" in plan:
        print(f"              {plan['there']:,} are there, {plan['to_train']:,} to be trained")
    print(f"  databases   {plan['databases']:,}, of {least:,} to {most:,} facts")
    for each in plan["selections"]:
        omitted = ", ".join(f"{name} {n:,}" for name, n in each["omitted"].items())
        kept = f"{each['kept']:,} of {each['of']:,} facts"
        selected = f"{kept} for {each['database']}; omitted by {omitted}"
        print(f"  selected    {visible(selected)}")
    print(f"  layers      {plan['layers']:,}")
    for reason, n in plan["omitted"].items():
        print(f"              {n:,} other combination{'s' * (n > 1)} omitted: {reason}")
    print(f"  recipes     {plan['recipes']:,}")
    print(f"  seeds       {plan['seeds']:,}")
    time = f"at most about {_duration(plan['seconds'])} on {cores}"
    print(f"  time        {time}; runs that memorise stop early")
    print(f"              start {start}, ranks {ranks}, runs {runs}")
    print(f"  size        about {plan['bytes'] / 1e6:.1f} MB")


def _duration(seconds: float) -> str:
    units = ((3600, "hours"), (60, "minutes"), (1, "seconds"))
    unit, name = next(u for u in units if seconds > 1.5 * u[0] or u[0] == 1)
    return f"{seconds / unit:.1f} {name}"


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    numbers = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if numbers is None:
        raise InvalidArgumentError(f"--shard must read i/N, such as 0/4; got {text!r:.60}.")
    return int(numbers[1]), int(numbers[2])
