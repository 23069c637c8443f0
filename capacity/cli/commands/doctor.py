"""The command ``capacity doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from capacity.cli.output import Json, print_json
from capacity.cli.panels import COMPUTE
from capacity.installation.hardware import Device

EXAMPLES = (
    "capacity doctor",
    "capacity doctor --device cuda --json",
)


def doctor(
    device: Annotated[
        Device,
        typer.Option(
            help="Device to train on: cuda reports why no GPU is usable, cpu looks for none.",
            rich_help_panel=COMPUTE,
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Tell what is installed, what is missing, and what may go wrong."""
    from capacity.installation.report import installation

    found = installation(device)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
