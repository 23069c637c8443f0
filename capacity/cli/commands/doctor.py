"""The command ``capacity doctor``."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from capacity.cli.output import COMPUTE, INSTALLATION, Json, print_json
from capacity.installation.parts import Device
from capacity.visible import visible

PANEL = INSTALLATION
EXAMPLES = (
    "capacity doctor",
    "capacity doctor --device cuda --json",
)


def doctor(
    device: Annotated[
        Device,
        typer.Option(
            help="Device to train on. With cuda each engine trains small runs there. They are "
            "compared with the CPU's, and the runs per second are printed, or the reason why no "
            "GPU is usable. With cpu no GPU is looked for.",
            rich_help_panel=COMPUTE,
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """List what is installed, what is missing, and what may go wrong."""
    from capacity.installation.report import installation

    found = installation(device)
    engines = _proofs(device) if device == "cuda" and found.gpu.usable else []
    if as_json:
        print_json({**found.to_dict(), "engines": engines})
        return
    print(found)
    for engine in engines:
        print(f"  {'engine':<13}  {visible(_in_words(engine))}")


def _proofs(device: str) -> list[dict[str, Any]]:
    """Proofs of the engines that can train on the device, and their runs a second."""
    from capacity.layer.engines.proof import proofs

    return [
        {**proof.to_dict(), "runs_a_second": None if math.isnan(speed) else speed}
        for proof, speed in proofs(device)
    ]


def _in_words(engine: dict[str, Any]) -> str:
    difference = engine["difference"]
    said = (
        f"{engine['engine']} on {engine['device']} differs from reference on the CPU by "
        f"{'no number' if difference is None else f'{difference:.1e}'} in {engine['runs']} small "
        f"runs, and may by {engine['most']:.0e}"
    )
    if not engine["holds"]:
        return f"{said}: it isn't used there"
    return f"{said}; {engine['runs_a_second']:,.3g} runs of 2,000 epochs a second"
