"""Run the lines that a newcomer types, and show the answers of the library.

    python tests/newcomers/transcript.py tests/newcomers/student.txt

A line that begins with ``$`` is a command of the shell, one that begins with ``>>>`` is Python,
with `capacity` imported; ``{folder}`` is an empty folder. Every answer is shown in at most six
lines, with its length and its seconds, and an error by its last line.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def answers(script: Path, folder: Path) -> Iterator[tuple[str, str, float]]:
    """Each line of a script that is typed, with its answer and its seconds."""
    import capacity

    names: dict[str, Any] = {"capacity": capacity}
    for line in script.read_text().splitlines():
        typed = line.replace("{folder}", str(folder))
        start = time.perf_counter()
        if typed.startswith("$ "):
            answer = _shell(typed[2:])
        elif typed.startswith(">>> "):
            answer = _python(typed[4:], names)
        else:
            continue
        seconds = time.perf_counter() - start
        answer = answer.replace(str(folder), "{folder}").replace(str(ROOT), ".").strip()
        yield line, answer, seconds


def brief(answer: str) -> str:
    """The first lines of an answer, cut at 240 characters."""
    lines = [line for line in answer.splitlines() if line.strip()][:6]
    return "\n".join(line if len(line) <= 240 else line[:239] + "…" for line in lines)


def _shell(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "capacity.cli", *command.split()[1:]],
        capture_output=True, text=True, cwd=ROOT, timeout=600, check=False,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    return f"{done.stdout}{done.stderr}\n(exit {done.returncode})"


def _python(code: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            *before, last = ast.parse(code).body
            exec(compile(ast.Module(list(before), []), "newcomer", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "newcomer", "eval"), names)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([last], []), "newcomer", "exec"), names)
        except Exception as error:
            print(traceback.format_exception_only(error)[-1])
    told = [f"{one.category.__name__}: {one.message}" for one in caught]
    # pydoc's bold face
    return re.sub(".\b", "", "\n".join([out.getvalue(), *told]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        for name in sys.argv[1:]:
            for typed, answer, seconds in answers(Path(name), Path(empty)):
                size = f"{len(answer):,} characters, {len(answer.splitlines())} lines"
                print(f"{typed}\n{brief(answer)}\n[{size}, {seconds:.1f} s]\n")
