"""Values by tensors, which are held weakly and compared by identity.

`torch.utils.weak.WeakIdKeyDictionary` does the same and makes an object for each look-up, which
takes ten times as long: there are thousands in a run of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

from torch import Tensor


class _Entry(ref[Tensor]):
    """A tensor, held weakly, and its value: one object, as the collector looks at all of them."""

    __slots__ = ("key", "value")
    key: int
    value: Any


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
        self._entries: dict[int, _Entry] = {}
        # entries that referred to this mapping would be in memory until a collection of cycles
        mapping = ref(self)

        def drop(gone: ref[Tensor]) -> None:
            held = mapping()
            if held is None or not isinstance(gone, _Entry):
                return
            # another tensor may have the address by now
            if held._entries.get(gone.key) is gone:
                del held._entries[gone.key]

        self._drop = drop

    def __setitem__(self, x: Tensor, value: Any) -> None:
        entry = _Entry(x, self._drop)
        entry.key, entry.value = id(x), value
        self._entries[entry.key] = entry

    def get(self, x: Tensor, default: Any = None) -> Any:
        """Value of a tensor, or the default."""
        entry = self._entries.get(id(x))
        return entry.value if entry is not None and entry() is x else default

    def __getitem__(self, x: Tensor) -> Any:
        entry = self._entries[id(x)]
        if entry() is not x:
            raise KeyError(id(x))
        return entry.value

    def __contains__(self, x: object) -> bool:
        entry = self._entries.get(id(x))
        return entry is not None and entry() is x

    def __delitem__(self, x: Tensor) -> None:
        self[x]
        del self._entries[id(x)]

    def __iter__(self) -> Iterator[Tensor]:
        yield from (x for entry in list(self._entries.values()) if (x := entry()) is not None)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
