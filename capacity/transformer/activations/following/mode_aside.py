"""A mode of torch's that steps aside while nothing happens that it is for.

Each function of torch that a mode sees takes a few microseconds more, and even an attribute of a
tensor is one. Most functions of a model are within norms, and between the input of an attention and
its pattern: rotations of positions, repeated keys, masks. Whether the code of a class of modules
makes something there that is followed shows in the first of them that is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


class ModeAside(TorchFunctionMode):
    """Mode that is none of torch's while some modules run.

    Parameters
    ----------
    is_running : callable
        Returns whether it is this run, and not another thread's, that calls a module.

    Attributes
    ----------
    n_made : int
        Number of results that have been followed, and of tensors that were written over.
    """

    def __init__(self, is_running: Callable[[], bool]) -> None:
        super().__init__()
        self.is_running, self.n_made = is_running, 0
        # the module for which this is no mode, and the number of modes around it
        self._aside: tuple[nn.Module, int] | None = None
        # classes of modules whose code before their attention makes nothing that is followed; and
        # the module that is being computed, with the number of results before it
        self._plain: set[type[nn.Module]] = set()
        self._begun: tuple[nn.Module, int] | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be a mode in this context."""
        self.__enter__()
        try:
            yield
        finally:
            # where a module has failed
            if self._aside is not None:
                self.come_back(self._aside[0])
            self.__exit__(None, None, None)

    def step_aside(self, module: nn.Module) -> None:
        """Be no mode while a module runs."""
        n = torch._C._len_torch_function_stack()
        if n and torch._C._get_function_stack_at(n - 1) is self:
            torch._C._pop_torch_function_stack()
            self._aside = module, n - 1

    def come_back(self, module: nn.Module, *_: object) -> None:
        """Be a mode again, after a module for which this has stepped aside."""
        # modes that the module is within by now end before this one
        if self._aside == (module, torch._C._len_torch_function_stack()) and self.is_running():
            self._aside = None
            torch._C._push_on_torch_function_stack(self)

    def begin(self, module: nn.Module) -> None:
        """Note that a module is called, which may attend."""
        if not self.is_running():
            return
        self._begun = module, self.n_made
        if type(module) in self._plain:
            self.step_aside(module)

    def attended(self, module: nn.Module) -> None:
        """Note that a module has attended, and computes its outputs next."""
        if self._begun == (module, self.n_made):
            self._plain.add(type(module))
        self.come_back(module)
