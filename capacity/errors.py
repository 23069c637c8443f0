"""Exceptions and warnings of the library.

A message states what must hold, what was passed, and what to do. All errors that a user can fix
derive from `CapacityError`, so that one ``except`` clause catches them, and also from the built-in
exception of their kind.

`warn_caller` warns of the user's line, however deep in the library a warning arises.
"""

from __future__ import annotations

import sys
import warnings

from capacity.visible import visible


class CapacityError(Exception):
    """Base class of the errors that the input causes and the user can fix.

    As text it is one line: names and other texts of the input are shown by
    `capacity.visible.visible`.
    """

    def __str__(self) -> str:
        # of Exception: a KeyError would show the message in quotes
        return visible(Exception.__str__(self))


class FormatError(CapacityError, ValueError):
    """A file, or a string, could not be read as what it should hold.

    Parameters
    ----------
    source : str
        Path of the file, or a name for the source of the text.
    reason : str
        What is wrong.
    format : str, optional
        The format that was tried.
    line : int, optional
        The line, counted from 1, where reading stopped.
    advice : str, optional
        What to do next.

    Examples
    --------
    >>> print(FormatError("a.ttl", "no dot", format="turtle", line=3, advice="Add one."))
    a.ttl, line 3 (read as turtle): no dot. Add one.
    """

    def __init__(
        self,
        source: str,
        reason: str,
        *,
        format: str | None = None,
        line: int | None = None,
        advice: str | None = None,
    ) -> None:
        self.source = source
        self.reason = reason
        self.format = format
        self.line = line
        self.advice = advice
        where = source if line is None else f"{source}, line {line}"
        how = "" if format is None else f" (read as {format})"
        tail = "" if advice is None else f" {advice}"
        super().__init__(f"{where}{how}: {reason.rstrip('.')}.{tail}")


class DatabaseFormatError(FormatError):
    """A file, or a string, could not be read as a database of facts.

    Attributes
    ----------
    of_row, of_width : bool
        Whether one row of a table is wrong, the others being as they are; and by its number of
        cells.
    """

    of_row = of_width = False

    def about_row(self, *, width: bool = False) -> DatabaseFormatError:
        """State that it is about one row of a table."""
        self.of_row, self.of_width = True, width
        return self


class TensorFormatError(FormatError):
    """A file could not be read as a tensor of integers."""


class DecompositionFormatError(FormatError):
    """A file could not be read as a decomposition over the rationals."""


class StorageError(CapacityError, OSError):
    """A file can't be read or written, or isn't a regular file.

    Parameters
    ----------
    path : str
        Path of the file.
    reason : str
        What is wrong.
    advice : str
        What to do next.

    Examples
    --------
    >>> print(StorageError("a.ttl", "it is a named pipe", "Give a regular file."))
    a.ttl: it is a named pipe. Give a regular file.
    """

    def __init__(self, path: str, reason: str, advice: str) -> None:
        self.path = path
        self.reason = reason
        self.advice = advice
        super().__init__(f"{path}: {reason}. {advice}")


class EndpointError(CapacityError, OSError):
    """An endpoint can't be reached, refuses a query, or doesn't answer it whole.

    Parameters
    ----------
    endpoint : str
        Its address, without what may be secret.
    reason : str
        What is wrong.
    advice : str
        What to do next.

    Examples
    --------
    >>> print(EndpointError("https://example.org/sparql", "it answered 500", "Ask again."))
    https://example.org/sparql: it answered 500. Ask again.
    """

    def __init__(self, endpoint: str, reason: str, advice: str) -> None:
        self.endpoint = endpoint
        self.reason = reason
        self.advice = advice
        super().__init__(f"{endpoint}: {reason.rstrip('.')}. {advice}")


class ClusterError(CapacityError, OSError):
    """A Dask cluster can't be reached, or has given up what it was to do."""


class InvalidArgumentError(CapacityError, ValueError):
    """A value is out of its range, or of the wrong type."""


class InvalidTypeError(CapacityError, TypeError):
    """An argument is of the wrong type."""


class UnknownTokenError(CapacityError, KeyError):
    """A token, or a (subject, predicate) pair, isn't in the database."""


class MultiValuedError(CapacityError, ValueError):
    """A multi-valued database was given to an operation that needs a functional one."""


class MemoryBudgetError(CapacityError, MemoryError):
    """The result would exceed the memory budget; raised before it is allocated."""


class CertificateError(CapacityError, ValueError):
    """A certificate is damaged, or is about other facts than those given."""


class SweepError(CapacityError, ValueError):
    """A sweep's plan is invalid, or its folder can't be used for it."""


class DeviceError(CapacityError, RuntimeError):
    """A device doesn't compute what the CPU does."""


class LostDeviceError(CapacityError, RuntimeError):
    """A device is lost, or out of memory; another process may do what this one couldn't."""


class MissingExtraError(CapacityError, ImportError):
    """An optional part of the library is not installed."""


class MultiValuedWarning(UserWarning):
    """Some (subject, predicate) pairs have several objects, and all of them were kept."""


class AnnotationWarning(UserWarning):
    """Some triples are about other facts, and were kept unchanged."""


class SkippedLinesWarning(UserWarning):
    """Lines that can't be read were omitted, as `skip_errors` allows."""


class CountedFromZeroWarning(UserWarning):
    """Indices of a tensor's file count from 0, where the format counts from 1."""


class LeftoverWarning(UserWarning):
    """Temporary files that a killed process had left were removed."""


class PrecisionWarning(UserWarning):
    """A model in half precision was copied to float32 before it was analysed."""


def warn_caller(message: Warning) -> None:
    """Warn at the innermost line outside of this library that led here.

    Python shows a warning once a line by default: at a line of the library one user's call would
    hide all later ones.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_of_library(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _is_of_library(names: dict[str, object]) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] == __name__.partition(".")[0]
