"""Begin the cells of a page: make a folder of their own, with the examples in it."""

import os
import shutil
import tempfile
import warnings
from pathlib import Path

folder = Path(tempfile.mkdtemp(prefix="capacity-docs-"))
shutil.copytree(Path(__file__).parents[1] / "examples", folder / "examples")
os.chdir(folder)
# pages show results, and not how a notebook draws bars
warnings.filterwarnings("ignore", message="IProgress not found")
# bars of the command draw themselves anew, which a page can't show
os.environ["TTY_COMPATIBLE"] = "0"
# figures stand below their cell
get_ipython().run_line_magic("matplotlib", "inline")  # type: ignore[name-defined] # noqa: F821
# a command that fails ends the page, unless it says that it may
get_ipython().system_raise_on_error = True  # type: ignore[name-defined] # noqa: F821
