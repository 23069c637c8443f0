"""The ``capacity`` command: parse, call, print. Its output with --json is a contract.

Exit codes: 0 done; 1 refuted (``verify`` alone); 2 wrong use or unreadable input, with one message
on standard error; 70 an internal error, with its traceback; 130 interrupted.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Iterable
from typing import Annotated

import typer

from capacity import __version__
from capacity.cli.advice import in_options
from capacity.cli.commands import (
    attention,
    describe,
    dimension,
    doctor,
    grid,
    rank,
    report,
    sweep,
    train,
    verify,
)
from capacity.cli.completion import ASKED
from capacity.cli.panels import FACTS, INSTALLATION, LAYERS, MODELS, PAGES, epilog
from capacity.cli.wrong_use import wrong_use
from capacity.errors import (
    AnnotationWarning,
    CapacityError,
    MultiValuedWarning,
    PrecisionWarning,
)

app = typer.Typer(
    name="capacity",
    help="How big a database of facts is, and how many facts an attention layer can hold.",
    epilog=epilog(
        ["capacity describe examples/countries.ttl", "capacity rank examples/countries.ttl"]
    ),
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command, examples, panel in (
    (describe.describe, describe.EXAMPLES, FACTS),
    (rank.rank, rank.EXAMPLES, FACTS),
    (verify.verify, verify.EXAMPLES, FACTS),
    (dimension.dimension, dimension.EXAMPLES, FACTS),
    (train.train, train.EXAMPLES, LAYERS),
    (sweep.sweep, sweep.EXAMPLES, LAYERS),
    (grid.grid, grid.EXAMPLES, LAYERS),
    (attention.attention, attention.EXAMPLES, MODELS),
    (report.report, report.EXAMPLES, PAGES),
    (doctor.doctor, doctor.EXAMPLES, INSTALLATION),
):
    app.command(epilog=epilog(examples), rich_help_panel=panel)(command)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the command and exit with its code."""
    atexit.register(_end_quickly)
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _end_quickly() -> None:
    """Omit the interpreter's last search for garbage, which takes longer than many commands."""
    # DuckDB reports what isn't collected
    if "duckdb" not in sys.modules:
        gc.freeze()


def _run(arguments: list[str]) -> int:
    # a shell that asks for completions gives no arguments
    if not arguments and ASKED not in os.environ:
        with contextlib.redirect_stdout(sys.stderr):
            app(["--help"], prog_name="capacity", standalone_mode=False)
        return 2
    try:
        with warnings.catch_warnings():
            for kind in (AnnotationWarning, MultiValuedWarning, PrecisionWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = lambda text, *_: print(
                f"capacity: {_advised(str(text), arguments)}", file=sys.stderr
            )
            code = app(arguments, prog_name="capacity", standalone_mode=False)
    except KeyboardInterrupt:
        return 130
    except CapacityError as error:
        source = getattr(error, "source", "")
        print(f"capacity: {_printable(_advised(str(error), arguments, source))}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"capacity: {_printable(str(error))}", file=sys.stderr)
        return 2
    except MemoryError:
        print(
            "capacity: there is not enough memory; use a smaller part of the data.", file=sys.stderr
        )
        return 2
    except Exception as error:
        if hasattr(error, "format_message"):
            names = [str(getattr(one.callback, "__name__", "")) for one in app.registered_commands]
            print(f"capacity: {_printable(wrong_use(error, arguments, names))}", file=sys.stderr)
            return 2
        traceback.print_exc()
        print("capacity: internal error; please report this traceback.", file=sys.stderr)
        return 70
    return code if isinstance(code, int) else 0


def _advised(message: str, arguments: list[str], source: str = "") -> str:
    """Write advice in options, except of a sweep, whose plan has the keywords as its keys."""
    return message if arguments[:1] == ["sweep"] else in_options(message, source)


def _printable(message: str) -> str:
    """Escape line breaks and control characters, which a file's name can hold, in a message."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
