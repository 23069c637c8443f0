"""The ``capacity`` command: parse, call, print. What it prints with --json is a contract.

Exit codes: 0 done; 1 refuted (``verify`` alone); 2 wrong use or unreadable input, with one message
on standard error; 70 an internal error, with its traceback; 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterable
from typing import Annotated

import typer

from capacity import __version__
from capacity.cli import attention, layers, rank, verify
from capacity.errors import CapacityError, MultiValuedWarning, PrecisionWarning

app = typer.Typer(
    name="capacity",
    help="How big a database of facts is, and how many facts an attention layer can hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    rank.rank,
    verify.verify,
    layers.train,
    layers.sweep,
    layers.grid,
    attention.attention,
):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the command and exit with its code."""
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            for kind in (MultiValuedWarning, PrecisionWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = lambda text, *_: print(f"capacity: {text}", file=sys.stderr)
            app(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except (CapacityError, OSError) as error:
        print(f"capacity: {error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("capacity: there is not enough memory for this; take a part of it.", file=sys.stderr)
        return 2
    except Exception:
        traceback.print_exc()
        print("capacity: internal error; please report this traceback.", file=sys.stderr)
        return 70
    return 0
