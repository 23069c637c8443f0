"""Changes that threads share are undone by the last one, whatever goes wrong with the others."""

from threading import Thread
from typing import Any, ClassVar

import pytest

from capacity.transformer.activations.following import attention_calls
from capacity.transformer.activations.following.attention_calls import shared_change


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
    assert not attention_calls._changes


class Watchful(Config):
    """One that knows whether another thread might have come between."""

    locked: ClassVar[list[bool]] = []

    def __setattr__(self, name: str, value: Any) -> None:
        self.locked.append(attention_calls._LOCK.locked())
        super().__setattr__(name, value)


def test_no_thread_comes_between_a_count_and_its_change() -> None:
    watched = Watchful()
    Watchful.locked.clear()
    with shared_change([watched], "x", 2):
        pass
    # another thread would take the changed value for the one before
    assert Watchful.locked == [True, True]


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
    assert not attention_calls._changes
