"""Hyperparameters of a training, `Recipe`, its random starts and its outcome. No torch in here.

One start decides nothing about what a layer can hold: training fails from some draws of the
initial weights and succeeds from others. A layer *reaches* a database if some start holds it, which
is a lower end of what it can hold; the share of starts that do is its *reliability*.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_choice, require_integer, shown, with_known_options
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig
from capacity.layer.recall import Threshold, check_threshold
from capacity.layer.run.fact_weights import MAX_ZIPF
from capacity.layer.run.history import NO_HISTORY, History

Until: TypeAlias = Literal["all", "held"]

MAX_STARTS = 10_000


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class Starts:
    """Starts to train from, each with weights and an order of facts of its own.

    Parameters
    ----------
    most : int
        Largest number of starts; at most 10,000.
    until : {'all', 'held'}
        'held': no further start after the first that holds the database.
    held_at : float, 'argmax' or 'argmax_paper'
        Threshold at which a start must recall every fact to hold the database.

    Raises
    ------
    InvalidArgumentError
        For a value out of its range.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> Starts(8, "held").is_over(NOT_TRIED.then(0.9).then(1.0))
    True
    """

    most: int = 1
    until: Until = "all"
    held_at: Threshold = 0.95

    def __post_init__(self) -> None:
        most = require_integer("starts", self.most, most=MAX_STARTS)
        object.__setattr__(self, "most", most)
        require_choice("`until`", self.until, get_args(Until))
        check_threshold(self.held_at)
        if not isinstance(self.held_at, str):
            object.__setattr__(self, "held_at", float(self.held_at))

    def is_over(self, tried: TriedStarts) -> bool:
        """Return True if no further start is to be trained after these."""
        return tried.tried >= self.most or (self.until == "held" and tried.held > 0)


@briefly_shown
@dataclass(frozen=True)
class TriedStarts:
    """Outcome of some starts.

    Attributes
    ----------
    start : int
        Number of the start that is kept, from 0: the first that holds the database, or else the
        first of those that recall most facts.
    tried, held : int
        Numbers of starts that were trained, and of those that hold the database.
    recalled : float
        Share of the facts that the kept start recalls; -1 if it diverged.
    """

    start: int
    tried: int
    held: int
    recalled: float

    @property
    def share(self) -> float:
        """Share of the starts that hold the database, their reliability."""
        return self.held / self.tried

    def then(self, recalled: float) -> TriedStarts:
        """Return the outcome after one more start, which recalls a share of the facts.

        Parameters
        ----------
        recalled : float
            Share of the facts; NaN if training diverged.
        """
        recalled = -1.0 if math.isnan(recalled) else recalled
        held = self.held + (recalled == 1)
        if recalled > self.recalled:
            return TriedStarts(self.tried, self.tried + 1, held, recalled)
        return TriedStarts(self.start, self.tried + 1, held, self.recalled)


ONE_START = Starts()
NOT_TRIED = TriedStarts(0, 0, 0, -math.inf)


Optimizer: TypeAlias = Literal["adam", "adamw"]
Schedule: TypeAlias = Literal["constant", "cosine"]
Positions: TypeAlias = Literal["both", "object"]
Init: TypeAlias = Literal["paper"]
Status: TypeAlias = Literal["completed", "memorised", "diverged"]

# engines make an array of the learning rates of all epochs
MAX_EPOCHS = 10_000_000
MAX_FACTS = 2**31 - 1


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of training.

    The defaults are our reading of Wong 2025, which doesn't state the learning rate. Engine,
    precision and device are given by a `Compute`.

    Parameters
    ----------
    optimizer : {'adam', 'adamw'}
        Optimizer, with 0.9 for the decay of the first moments and 1e-8 in the denominator.
    learning_rate : float
        Learning rate of the first epoch; positive.
    epochs : int
        Largest number of passes over the facts; at most 10,000,000.
    beta2 : float
        Decay of the second moments; at least 0 and below 1.
    weight_decay : float
        Decoupled for 'adamw', added to the gradient for 'adam'.
    schedule : {'constant', 'cosine'}
        Learning rate over the epochs; 'cosine' falls to zero along half a cosine.
    batch_size : int
        Number of facts in a step; 0: all of them.
    positions : {'both', 'object'}
        Tokens that the loss predicts: predicate and object (all but the first, in facts of another
        arity), or the object alone.
    stop_tau : float
        Stop once the probability of every fact's object reaches this, strictly between 0.5 and 1;
        0: never stop early. In float32 no engine distinguishes 1 - 1e-6 from 1.
    init : {'paper'}
        Distribution of the initial weights, that of `AttentionLayer`.
    frozen : tuple of str
        Weights that stay as they were drawn, such as ``("W_Q", "W_K")`` for random attention; names
        as in `LayerConfig.shapes`. Those that a layer doesn't have are no matter.
    zipf : float
        Facts have the weights r^-zipf in the loss, r = 1, 2, ... in an order that is drawn by seed
        0 (`zipf_weights`); 0 weighs all alike. The engines 'tape' and 'reference' do so.

    Raises
    ------
    InvalidArgumentError
        For a value out of its range, or if no weight of a plain layer is left to train.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> recipe = Recipe(learning_rate=0.01, schedule="cosine")
    >>> recipe.optimizer, recipe.epochs
    ('adam', 2000)
    """

    optimizer: Optimizer = "adam"
    learning_rate: float = 1e-3
    epochs: int = 2000
    beta2: float = 0.999
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    batch_size: int = 0
    positions: Positions = "both"
    stop_tau: float = 0.99
    init: Init = "paper"
    frozen: tuple[str, ...] = ()
    zipf: float = 0.0

    def __post_init__(self) -> None:
        choices = {
            "optimizer": Optimizer,
            "schedule": Schedule,
            "positions": Positions,
            "init": Init,
        }
        for name, allowed in choices.items():
            require_choice(f"`{name}`", getattr(self, name), get_args(allowed))
        for name in ("learning_rate", "beta2", "weight_decay", "stop_tau", "zipf"):
            # 0 and 0.0 must give one key
            object.__setattr__(self, name, _real(name, getattr(self, name)))
        for name, most in (("epochs", MAX_EPOCHS), ("batch_size", MAX_FACTS)):
            whole = require_integer(name, getattr(self, name), least=0, most=most)
            object.__setattr__(self, name, whole)
        ranges = {
            "learning_rate": (0 < self.learning_rate < math.inf, "a positive number"),
            "beta2": (0 <= self.beta2 < 1, "at least 0 and below 1"),
            "weight_decay": (0 <= self.weight_decay < math.inf, "at least 0"),
            # beyond, the rarest of ten thousand facts would weigh nothing in float64
            "zipf": (0 <= self.zipf <= MAX_ZIPF, f"from 0 to {MAX_ZIPF}"),
            "stop_tau": (
                self.stop_tau == 0 or 0.5 < self.stop_tau < 1,
                "0 (never) or strictly between 0.5 and 1",
            ),
        }
        for name, (holds, must) in ranges.items():
            if not holds:
                raise InvalidArgumentError(f"`{name}` must be {must}; got {getattr(self, name)!r}.")
        object.__setattr__(self, "frozen", _frozen(self.frozen))

    def facts_a_step(self, n_facts: int) -> int:
        """Number of facts in a step, for a database of `n_facts`; 0: all of them."""
        return self.batch_size if self.batch_size < n_facts else 0

    def freezes(self, name: str) -> bool:
        """Return True if a weight isn't trained: it is named, or the last part of its name is."""
        return name in self.frozen or name.rpartition(".")[2] in self.frozen

    def learning_rates(self) -> NDArray[np.float64]:
        """Learning rate of each epoch: constant, or half a cosine that falls to 0."""
        if self.schedule == "constant":
            return np.full(self.epochs, self.learning_rate)
        angles = np.pi * np.arange(self.epochs) / max(self.epochs, 1)
        return self.learning_rate * 0.5 * (1 + np.cos(angles))

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON-ready data; `zipf` only if facts have weights.

        So the text of a recipe is that of the versions that didn't have it.
        """
        found = {**asdict(self), "frozen": list(self.frozen)}
        return found if self.zipf else {k: v for k, v in found.items() if k != "zipf"}


@briefly_shown
@dataclass(frozen=True)
class Training:
    """Outcome of a training run.

    Attributes
    ----------
    status : {'completed', 'memorised', 'diverged'}
        'completed': all epochs were done. 'memorised': training stopped early, since every fact
        passed `Recipe.stop_tau`. 'diverged': the loss, a weight or a second moment (whose overflow
        freezes its weight) is no longer finite.
    epochs : int
        Number of epochs done.
    loss : float
        Mean next-token cross entropy of the final weights, in nats; maybe not finite if diverged.
    engine : str
        Name of the engine that trained the layer.
    history : History
        Loss and share of known facts at some epochs; empty if the engine records none.
    starts : TriedStarts or None
        Outcome of all starts, of which the above describes one; None if there was only one.
    """

    status: Status
    epochs: int
    loss: float
    engine: str
    history: History = NO_HISTORY
    starts: TriedStarts | None = None


def _frozen(names: object) -> tuple[str, ...]:
    """Names of weights in the order of `LayerConfig.shapes`, each once."""
    plain = LayerConfig(1, 1, 1, 1).shapes(1)
    every = LayerConfig(1, 1, 1, 1, layer_norm=True, bias=True, n_positions=1).shapes(1)
    if not isinstance(names, tuple | list):
        raise InvalidArgumentError(
            f"`frozen` must be a list of names of weights, among {', '.join(every)}; got "
            f"{shown(names)}."
        )
    inside = (*every, "W_in", "W_gate", "W_out", "b_in", "b_out")
    for name in names:
        if not (isinstance(name, str) and name.startswith(("layers.", "norm."))):
            require_choice("Each name in `frozen`", name, inside)
    if plain.keys() <= set(names):
        raise InvalidArgumentError(
            f"`frozen` must leave one of {', '.join(plain)} to train; it names all."
        )
    known = [name for name in inside if name in names]
    return (*known, *sorted({*names} - {*known}))


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgumentError(f"`{name}` must be a number; got {shown(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArgumentError(
            f"`{name}` must be a number that float64 can hold; got {shown(value)}."
        ) from None
