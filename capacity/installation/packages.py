"""Versions of packages, and the extras whose packages are missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec

from capacity.optional import EXTRAS, LAYERS

# what every install has; under these names they are installed
BASE = ("numpy", "scipy", "pyoxigraph", "python-flint", "numba", "pyarrow", "typer", "rich",
        "lazy-loader")  # fmt: skip
# of packages that are imported under another name than they are installed under
_IMPORTED = {"python-flint": "flint", "lazy-loader": "lazy_loader"}


@dataclass(frozen=True)
class Extra:
    """An optional part of the library.

    Attributes
    ----------
    name : str
        Name of the extra.
    missing : tuple of str
        Its packages that aren't there.
    install : str
        The command that installs it.
    """

    name: str
    missing: tuple[str, ...]
    install: str


def is_there(package: str) -> bool:
    """Return True if a package can be found, without importing it."""
    try:
        return find_spec(package) is not None
    # a module without a spec, such as one that a test has put there
    except ValueError:
        return False


def extras() -> tuple[Extra, ...]:
    """Return every extra, in the order of names, with what it lacks.

    Examples
    --------
    >>> [extra.name for extra in extras()][:3]
    ['cp', 'distributed', 'duckdb']
    """
    packages: dict[str, list[str]] = {}
    for package, extra in EXTRAS.items():
        packages.setdefault(extra, []).append(package)
    packages["layers"] = [*dict.fromkeys([*packages["layers"], *LAYERS])]
    return tuple(
        Extra(
            name,
            tuple(package for package in packages[name] if not is_there(package)),
            f"pip install 'knowledge-capacity[{name}]'",
        )
        for name in sorted(packages)
    )


def versions() -> dict[str, str | None]:
    """Return the version of every package that the library can use; None of what is missing.

    Examples
    --------
    >>> versions()["numpy"].count(".")
    2
    """
    found: dict[str, str | None] = {name: _version(name, name) for name in BASE}
    for package in sorted(EXTRAS):
        found[package] = _version(package, package)
    for name, imported in _IMPORTED.items():
        found[name] = _version(name, imported)
    return found


def _version(name: str, imported: str) -> str | None:
    if not is_there(imported):
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        # installed under another name, as a nightly build is
        for other in packages_distributions().get(imported, ()):
            return version(other)
    return "unknown"
