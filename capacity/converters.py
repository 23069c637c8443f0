"""Registries of what takes objects of other libraries, none of which is imported to find out.

A `Converter` knows classes by themselves or by their names, and makes something of their objects.
`capacity.database.as_database` and `capacity.tensor.as_tensor` have a registry each, to which
other packages add a line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from capacity.checks import shown
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError


@briefly_shown
@dataclass(frozen=True)
class Converter:
    """A kind of objects, and the function that makes facts, or a tensor, of one.

    Attributes
    ----------
    name : str
        Name of the kind, for messages and `unregister_...`.
    types : tuple of type or str
        Classes, with what is derived from them; or names such as ``"pandas.DataFrame"``, a top
        package and a class in it, for which nothing is imported.
    make : callable or str
        Function of the object; or ``"package.module:function"``, which is imported on first use.
    having : str
        Name of an attribute; what has it is of the kind, too.
    options : mapping
        Keywords that `make` is called with.
    """

    name: str
    types: tuple[type | str, ...]
    make: Callable[..., object] | str
    having: str = ""
    options: Mapping[str, object] = field(default_factory=dict)

    def takes(self, value: object) -> bool:
        """Return whether an object is of the kind."""
        if self.having and hasattr(type(value), self.having):
            return True
        classes = tuple(one for one in self.types if isinstance(one, type))
        return isinstance(value, classes) or any(name in self.types for name in names_of(value))

    def made(self, value: object, **options: object) -> object:
        """Make something of an object of the kind, with keywords of the user's."""
        return self._function()(value, **{**self.options, **options})

    def names_of_options(self) -> tuple[str, ...]:
        """List the keywords that the function takes beside those of the kind."""
        try:
            parameters = list(inspect.signature(self._function()).parameters.values())[1:]
        except ValueError:
            # of a function of Python's own
            return ()
        return tuple(
            one.name
            for one in parameters
            if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)
            and one.name not in self.options
        )

    def _function(self) -> Callable[..., object]:
        make = self.make
        if isinstance(make, str):
            module, _, name = make.partition(":")
            make = getattr(import_module(module), name)
        return make


def names_of(value: object) -> list[str]:
    """List the names of the classes of an object: the top package, and the class.

    Examples
    --------
    >>> names_of(True)
    ['builtins.bool', 'builtins.int', 'builtins.object']
    """
    return [f"{one.__module__.partition('.')[0]}.{one.__qualname__}" for one in type(value).__mro__]


class Converters:
    """Converters in the order in which they are asked; a new one comes first.

    Parameters
    ----------
    converters : iterable of Converter
        Those of the library.

    Examples
    --------
    >>> registry = Converters([Converter("number", (int,), float)])
    >>> registry.register(Converter("truth", ("builtins.bool",), str))
    >>> registry.of(True).made(True), registry.of(3).made(3), registry.of("3")
    ('True', 3.0, None)
    >>> registry.unregister("truth").name
    'truth'
    """

    def __init__(self, converters: Iterable[Converter]) -> None:
        self.kinds = list(converters)

    def of(self, value: object) -> Converter | None:
        """Return the first converter that takes an object, or None."""
        return next((one for one in self.kinds if one.takes(value)), None)

    def register(self, converter: Converter) -> None:
        """Add a converter, which is asked before all others.

        Raises
        ------
        InvalidTypeError
            If it isn't a `Converter`.
        InvalidArgumentError
            If there is one of its name.
        """
        if not isinstance(converter, Converter):
            raise InvalidTypeError(f"A converter must be a `Converter`; got {shown(converter)}.")
        if converter.name in [one.name for one in self.kinds]:
            raise InvalidArgumentError(
                f"A converter must have a name of its own; {converter.name!r} is registered."
            )
        self.kinds.insert(0, converter)

    def unregister(self, name: str) -> Converter:
        """Remove the converter of a name, and return it.

        Raises
        ------
        InvalidArgumentError
            If there is none.
        """
        for at, one in enumerate(self.kinds):
            if one.name == name:
                return self.kinds.pop(at)
        names = ", ".join(one.name for one in self.kinds)
        raise InvalidArgumentError(
            f"There must be a converter of that name; got {shown(name)}. There are {names}."
        )
