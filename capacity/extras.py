"""Optional packages, and the extra of this library that installs each.

The base install holds the packages that ranks need. Others are imported where they are used, and a
missing one is an error that names the extra to install.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from capacity.errors import MissingExtraError

# by the name under which a package is imported, the smallest extra that installs it
EXTRAS = {
    "torch": "layers",
    "safetensors": "layers",
    "jaxtyping": "layers",
    "pandas": "plots",
    "filelock": "layers",
    "threadpoolctl": "layers",
    "seaborn": "plots",
    "matplotlib": "plots",
    "networkx": "networkx",
    "rdflib": "rdflib",
    "tensorly": "cp",
    "pyttb": "pyttb",
    "pykeen": "pykeen",
    "hypothesis": "testing",
    "dask": "distributed",
    "distributed": "distributed",
    "duckdb": "duckdb",
    "transformers": "transformers",
    "triton": "gpu",
    "urllib3": "sparql",
    "jinja2": "report",
}


# packages that training, scoring and storing layers import
LAYERS = ("torch", "safetensors", "jaxtyping", "pandas", "filelock", "threadpoolctl")


def missing_extra(what: str, packages: str, extra: str) -> MissingExtraError:
    """Make the error for an operation that needs packages that aren't installed."""
    return MissingExtraError(
        f"{what} needs {packages}; install the extra `{extra}`: pip install "
        f"'knowledge-capacity[{extra}]', or in a clone pip install '.[{extra}]'."
    )


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Turn a missing optional package into the error that names its extra.

    Raises
    ------
    MissingExtraError
        In place of the ModuleNotFoundError of a package of an extra.

    Examples
    --------
    >>> with needed_by("to_networkx"):
    ...     import networkx
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise missing_extra(what, package, EXTRAS[package]) from error


def require_packages(what: str, packages: tuple[str, ...], extra: str) -> None:
    """Refuse an operation that needs packages that aren't installed, before it begins.

    Raises
    ------
    MissingExtraError
        With all missing packages and the extra that installs them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise missing_extra(what, ", ".join(missing), extra)
