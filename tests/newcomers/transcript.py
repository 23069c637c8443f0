"""What a newcomer types, and what the library answers.

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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def transcript(script: Path, folder: Path) -> str:
    """Each line of a script with its answer."""
    import capacity

    names: dict[str, Any] = {"capacity": capacity}
    parts: list[str] = []
    for line in script.read_text().splitlines():
        line = line.replace("{folder}", str(folder))
        start = time.perf_counter()
        if line.startswith("$ "):
            answer = _shell(line[2:])
        elif line.startswith(">>> "):
            answer = _python(line[4:], names)
        else:
            parts.append(line)
            continue
        seconds = time.perf_counter() - start
        answer = answer.replace(str(folder), "{folder}").replace(str(ROOT), ".").strip()
        lines = answer.splitlines()
        shown = [one if len(one) <= 240 else one[:239] + "…" for one in lines[:6]]
        size = f"[{len(answer):,} characters, {len(lines)} lines, {seconds:.1f} s]"
        parts.append("\n".join([line.replace(str(folder), "{folder}"), *shown, size, ""]))
    return "\n".join(parts)


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
    with tempfile.TemporaryDirectory() as folder:
        for script in sys.argv[1:]:
            print(transcript(Path(script), Path(folder)))
