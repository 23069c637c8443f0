"""Values by tensors, which are held weakly and compared by identity.

`torch.utils.weak.WeakIdKeyDictionary` does the same and makes an object for each look-up, which
takes ten times as long: there are thousands in a run of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

from torch import Tensor


class ByTensor(MutableMapping[Tensor, Any]):
    """A mapping whose keys are tensors; an entry goes when its tensor does.

    Examples
    --------
    >>> import torch
    >>> one, names = torch.ones(2), ByTensor()
    >>> names[one] = "one"
    >>> names[one], names.get(torch.ones(2)), len(names)
    ('one', None, 1)
    >>> del one
    >>> len(names)
    0
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[ref[Tensor], Any]] = {}

    def __setitem__(self, x: Tensor, value: Any) -> None:
        entries, key = self._entries, id(x)

        def drop(gone: ref[Tensor]) -> None:
            entry = entries.get(key)
            # another tensor may have the address by now
            if entry is not None and entry[0] is gone:
                del entries[key]

        entries[key] = ref(x, drop), value

    def get(self, x: Tensor, default: Any = None) -> Any:
        """Value of a tensor, or the default."""
        entry = self._entries.get(id(x))
        return entry[1] if entry is not None and entry[0]() is x else default

    def __getitem__(self, x: Tensor) -> Any:
        entry = self._entries[id(x)]
        if entry[0]() is not x:
            raise KeyError(id(x))
        return entry[1]

    def __contains__(self, x: object) -> bool:
        entry = self._entries.get(id(x))
        return entry is not None and entry[0]() is x

    def __delitem__(self, x: Tensor) -> None:
        self[x]
        del self._entries[id(x)]

    def __iter__(self) -> Iterator[Tensor]:
        yield from (x for held, _ in list(self._entries.values()) if (x := held()) is not None)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
