"""Things that a path can lead to and that are no regular files."""

import os
from pathlib import Path

# Windows has folders alone
KINDS = ("a named pipe", "a folder", "a device") if hasattr(os, "mkfifo") else ("a folder",)


def put(kind: str, path: Path) -> Path:
    """Put a thing of a kind at a path; opening the pipe would wait for its other end."""
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/null")
    return path
