"""The size of database that a layer is foretold to hold, by laws fitted to thousands of runs.

The laws (`SizeLaw`) are those of two experiments, with databases of one to four tables without
further structure. By reliability (``experiments/size/layers.py``): plain layers with d_model 2 to
8, 1 to 16 heads, and queries, keys and values of 1 to 4 dimensions, each trained once on each of 20
databases of a size. By reach (``experiments/starts/half_sizes.py``): d_model 3 to 8, queries and
keys of 2 dimensions, and up to eight starts on each of ten databases.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.reach import By
from capacity.evaluator.size_law import SizeLaw
from capacity.layer.config import LayerConfig
from capacity.options import require_choice

RecipeName: TypeAlias = Literal["plain", "best"]


@briefly_shown
@dataclass(frozen=True)
class HeldSize:
    """The size of database that a layer is foretold to hold in half of the cases.

    Attributes
    ----------
    triples : float
        Foretold number of triples at which half of the databases are held at tau = 0.95, by one
        start or by some of eight.
    low, high : float
        Ends of an interval that had 95 % of the layers of the experiment, beside the law.
    outside : tuple of str
        Sizes of the layer, or ``triples``, that lie outside what the law was fitted to.
    """

    triples: float
    low: float
    high: float
    outside: tuple[str, ...]

    def __str__(self) -> str:
        """Return the number with its interval, and a warning if it is outside of the fit."""
        told = f"{self.triples:,.0f} triples [{self.low:,.0f}, {self.high:,.0f}]"
        return told + (f", beyond the fit in {', '.join(self.outside)}" if self.outside else "")


def held_size(
    layer: LayerConfig, recipe: RecipeName = "best", *, by: By = "reliability"
) -> HeldSize:
    """Foretell how many triples a plain layer holds at tau = 0.95, in half of the databases.

    Parameters
    ----------
    layer : LayerConfig
        Sizes of a plain layer.
    recipe : {'best', 'plain'}
        ``best``: Adam with a learning rate of 0.03 that falls along half a cosine, and beta2 = 0.9;
        ``plain``: the defaults of `Recipe`. Both for 2,000 epochs.
    by : {'reliability', 'reach'}
        Held by one start, or by some of eight (`reach_and_reliability`), which is known for the
        best recipe alone.

    Returns
    -------
    HeldSize
        The size with its interval, and in what the question is beyond the fit.

    Raises
    ------
    InvalidArgumentError
        For a layer that isn't plain, another recipe, or the reach of the plain one.

    Notes
    -----
    Databases with structure need less (`capacity.database.description_length`), so that a layer may
    hold more of their triples than this.

    Examples
    --------
    >>> found = held_size(LayerConfig(4, 4, 2, 2))
    >>> found.low < found.triples < found.high, found.outside
    (True, ())
    >>> held_size(LayerConfig(4, 4, 2, 2), by="reach").triples > found.triples
    True
    >>> held_size(LayerConfig(64, 4, 2, 2)).outside
    ('d_model', 'triples')
    """
    require_choice("`recipe`", recipe, get_args(RecipeName))
    if not layer.is_plain:
        raise InvalidArgumentError(
            "`layer` must be plain, without norm, bias and positions, as those that the law was "
            f"fitted to; got {layer.name}."
        )
    require_choice("`by`", by, get_args(By))
    if recipe not in _fitted()[by]:
        raise InvalidArgumentError(
            f"`recipe` must be {' or '.join(_fitted()[by])} by {by}, which was measured for no "
            f"other; got {recipe}. Take by = 'reliability'."
        )
    known = _fitted()[by][recipe]
    asked = {name: float(getattr(layer, name)) for name in known["ranges"] if name != "triples"}
    sizes = {name: asked[name] for name in known["columns"]}
    law = SizeLaw("n_triples", tuple(known["columns"]), known["intercept"],
                  tuple(known["weights"]), known["steepness"])  # fmt: skip
    triples = law.size_at(sizes)
    low, high = (triples * math.exp(error) for error in known["errors_in_nats"])
    asked["triples"] = triples
    outside = [
        name for name, (least, most) in known["ranges"].items() if not least <= asked[name] <= most
    ]
    return HeldSize(triples, low, high, tuple(outside))


@cache
def _fitted() -> dict[str, dict[str, dict[str, Any]]]:
    """Coefficients by what is foretold and recipe, which ``experiments.size.held_sizes`` writes."""
    return json.loads(files("capacity.evaluator").joinpath("held_sizes.json").read_text())
