"""Optional packages, and the extra of this library that installs each.

The base install is what ranks need. What else is imported where it is used, and says what to
install where it isn't there.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from capacity.errors import MissingExtraError

# the package, as it is imported, and its extra
EXTRAS = {
    "torch": "layers",
    "safetensors": "layers",
    "jaxtyping": "layers",
    "pandas": "layers",
    "pyarrow": "layers",
    "filelock": "layers",
    "seaborn": "plots",
    "matplotlib": "plots",
    "networkx": "networkx",
    "rdflib": "rdflib",
    "tensorly": "cp",
    "pyttb": "pyttb",
    "hypothesis": "testing",
    "distributed": "distributed",
    "transformers": "transformers",
}


def missing_extra(what: str, package: str) -> MissingExtraError:
    """Make the error of what needs a package that isn't installed."""
    return MissingExtraError(
        f"{what} needs {package}; install it with "
        f"`pip install 'knowledge-capacity[{EXTRAS[package]}]'`, or all extras with "
        "`pip install 'knowledge-capacity[all]'`."
    )


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Turn a missing optional package into the error that says which extra has it.

    Raises
    ------
    MissingExtraError
        In place of the ModuleNotFoundError of a package of an extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise missing_extra(what, package) from error


def import_extra(module: str, what: str) -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
    what : str
        The function or option that needs it, for the error.

    Raises
    ------
    MissingExtraError
        If the package isn't installed.
    """
    with needed_by(what):
        return importlib.import_module(module)
