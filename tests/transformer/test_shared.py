"""Changes that threads share are undone by the last one, whatever goes wrong with the others."""

from threading import Thread
from typing import Any

import pytest

from capacity.transformer.activations import shared
from capacity.transformer.activations.shared import shared_change


class Config:
    """An object with an attribute to change."""

    def __init__(self) -> None:
        self.x = 1


class Stubborn(Config):
    """One that can't be put back."""

    def __setattr__(self, name: str, value: Any) -> None:
        if value == 1 and name in vars(self):
            raise RuntimeError("not again")
        super().__setattr__(name, value)


def test_what_cannot_be_undone_keeps_nothing_else() -> None:
    objects = [Config(), Stubborn(), Config()]
    with pytest.raises(RuntimeError, match="not again"), shared_change(objects, "x", 2):
        assert [each.x for each in objects] == [2, 2, 2]
    assert [each.x for each in objects] == [1, 2, 1]
    assert not shared._changes


def test_the_last_thread_undoes_a_change() -> None:
    config = Config()

    def change() -> None:
        with shared_change([config], "x", 2):
            pass

    with shared_change([config], "x", 2):
        other = Thread(target=change)
        other.start()
        other.join()
        assert config.x == 2
    assert config.x == 1
    assert not shared._changes
