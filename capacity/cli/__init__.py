"""The ``capacity`` command: parse, call, print. Its output with --json is a contract.

Exit codes: 0 done; 1 refuted (``verify`` alone); 2 wrong use, unreadable input, or output that
can't be written, with one message on standard error; 70 an internal error, with its traceback; 130
interrupted, and 143 or 129 by SIGTERM or SIGHUP; 141 if the reader of a pipe has gone.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from capacity import __version__
from capacity.cli.output import ASKED, epilog
from capacity.cli.process import (
    INTERRUPTED,
    Output,
    OutputError,
    ended_by_signals,
    standard_streams,
)
from capacity.errors import (
    AnnotationWarning,
    CapacityError,
    MultiValuedWarning,
    PrecisionWarning,
    SkippedLinesWarning,
)
from capacity.visible import visible

# in the order of the help: modules of `capacity.cli.commands`, each with a function of its name
COMMANDS = (
    "describe", "rank", "verify", "dimension", "train", "sweep", "grid", "attention", "recall",
    "report", "doctor",
)  # fmt: skip
# what the library warns of that a user of the command is told, too
WARNINGS = (AnnotationWarning, MultiValuedWarning, PrecisionWarning, SkippedLinesWarning)
# what shells report of a program that a broken pipe ends: 128 + SIGPIPE
BROKEN_PIPE = 141


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Make the program with some of its commands, whose modules are imported."""
    app = typer.Typer(
        name="capacity",
        help="How big a database of facts is, and how many facts an attention layer can hold.",
        epilog=epilog(
            ["capacity describe examples/countries.ttl", "capacity rank examples/countries.ttl"]
        ),
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name in names:
        module = import_module(f"capacity.cli.commands.{name}")
        describe = app.command(epilog=epilog(module.EXAMPLES), rich_help_panel=module.PANEL)
        describe(getattr(module, name))
    app.callback(invoke_without_command=True)(_version)
    return app


def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the command and exit with its code."""
    atexit.register(_end_quickly)
    words = list(sys.argv[1:] if arguments is None else arguments)
    with standard_streams() as output, ended_by_signals() as code_of_signal:
        code = _run_and_write(words, output)
    sys.exit(code_of_signal() if code == INTERRUPTED else code)


def _end_quickly() -> None:
    """Omit the interpreter's last search for garbage, which takes longer than many commands."""
    # DuckDB reports what isn't collected
    if "duckdb" not in sys.modules:
        gc.freeze()


def _run_and_write(arguments: list[str], output: Output | None) -> int:
    """Run, and report if the output can't be written."""
    if output is None:
        # before the work, which would be lost; and files would be opened in its place
        _tell("standard output is closed. Send it to a file, or to /dev/null.")
        return 2
    try:
        code = _run(arguments)
        output.flush()
        return code
    except KeyboardInterrupt:
        # while a reader took its time
        output.give_up()
        return INTERRUPTED
    except OutputError as error:
        output.give_up()
        if error.errno == errno.EPIPE:
            return BROKEN_PIPE
        _tell(f"standard output can't be written ({error.strerror}). Send it elsewhere.")
        return 2


def _run(arguments: list[str]) -> int:
    # a shell that asks for completions gives no arguments
    if not arguments and ASKED not in os.environ:
        with contextlib.redirect_stdout(sys.stderr):
            application()(["--help"], prog_name="capacity", standalone_mode=False)
        return 2
    try:
        with warnings.catch_warnings():
            for kind in WARNINGS:
                warnings.simplefilter("always", kind)
            warnings.showwarning = lambda text, *_: _tell(_advised(str(text), arguments))
            code = _called(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except CapacityError as error:
        source = getattr(error, "source", "")
        _tell(_advised(str(error), arguments, visible(source)))
        return 2
    except OutputError:
        raise
    except OSError as error:
        _tell(str(error))
        return 2
    except MemoryError:
        _tell("there is not enough memory; use a smaller part of the data.")
        return 2
    except Exception as error:
        if hasattr(error, "format_message"):
            from capacity.cli.messages import wrong_use

            _tell(wrong_use(error, arguments, COMMANDS))
            return 2
        print(*map(visible, traceback.format_exc().split("\n")), sep="\n", file=sys.stderr)
        _tell("internal error; please report this traceback.")
        return 70
    return code if isinstance(code, int) else 0


def _called(arguments: list[str]) -> object:
    # another command's module isn't imported; a shell that asks for completions gives no arguments
    named = arguments[0] in COMMANDS if arguments else False
    app = application(arguments[:1]) if named else application()
    try:
        return app(arguments, prog_name="capacity", standalone_mode=False)
    except SystemExit as end:
        # the parser makes this of a broken pipe, with the exit code of what is refuted
        if isinstance(end.__context__, OSError):
            raise end.__context__ from None
        raise


def _advised(message: str, arguments: list[str], source: str = "") -> str:
    """Write advice in options, except of a sweep, whose plan has the keywords as its keys."""
    if arguments[:1] == ["sweep"]:
        return message
    from capacity.cli.messages import in_options

    return in_options(message, source)


def _tell(message: str) -> None:
    print(f"capacity: {visible(message)}", file=sys.stderr)
