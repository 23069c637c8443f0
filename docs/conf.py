"""The site: Sphinx with MyST-NB, built by `make docs`, which executes every cell of every page.

The source folder is the repository's root, so that pages, notebooks and the pages of results are
where they are, and links between them are those that a reader of the repository follows.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent / "_extensions")]
# kernels of cells say `!capacity`, which is beside this Python
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ.setdefault("OMP_NUM_THREADS", "1")

from capacity import __version__  # noqa: E402

project = "capacity"
author = "The capacity developers"
copyright = author
release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "public_names",
]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "experiments/*.md",
    "experiments/*/*.md",
    "notebooks/*.ipynb",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
]
exclude_patterns = ["docs/_extensions", "**/.ipynb_checkpoints"]

# cells
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "executed")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# names in types of docstrings can stand for several things
suppress_warnings = ["mystnb.unknown_mime_type", "ref.python"]

# docstrings
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# pages
html_theme = "furo"
html_title = f"capacity {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["sort.js"]
html_extra_path = ["_root"]
html_show_copyright = False
html_theme_options = {
    "footer_icons": [],
    "light_css_variables": {"font-stack": "system-ui, sans-serif"},
}
