"""The size of database that a layer is foretold to hold, by a law fitted to thousands of runs.

The law (`SizeLaw`) and its data are those of the experiment ``experiments/size/layers.py``: plain
layers with d_model 2 to 8, 1 to 16 heads, and queries, keys and values of 1 to 4 dimensions. Each
is trained once on each of 20 databases of a size, of 50 to 3,200 triples in one to four tables
without further structure.
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
from capacity.evaluator.laws.size_law import SizeLaw
from capacity.layer.model.config import LayerConfig
from capacity.options import require_choice

RecipeName: TypeAlias = Literal["plain", "best"]


@briefly_shown
@dataclass(frozen=True)
class HeldSize:
    """The size of database that half of the runs of a layer are foretold to memorise.

    Attributes
    ----------
    triples : float
        Foretold number of triples at which half of the runs memorise at tau = 0.95.
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


def held_size(layer: LayerConfig, recipe: RecipeName = "best") -> HeldSize:
    """Foretell how many triples a plain layer memorises at tau = 0.95, in half of the runs.

    Parameters
    ----------
    layer : LayerConfig
        Sizes of a plain layer.
    recipe : {'best', 'plain'}
        ``best``: Adam with a learning rate of 0.03 that falls along half a cosine, and beta2 = 0.9;
        ``plain``: the defaults of `Recipe`. Both for 2,000 epochs.

    Returns
    -------
    HeldSize
        The size with its interval, and in what the question is beyond the fit.

    Raises
    ------
    InvalidArgumentError
        For a layer that isn't plain, or another recipe.

    Notes
    -----
    Databases with structure need less (`capacity.database.description_length`), so that a layer may
    hold more of their triples than this.

    Examples
    --------
    >>> found = held_size(LayerConfig(4, 4, 2, 2))
    >>> found.low < found.triples < found.high, found.outside
    (True, ())
    >>> held_size(LayerConfig(64, 4, 2, 2)).outside
    ('d_model', 'triples')
    """
    require_choice("`recipe`", recipe, get_args(RecipeName))
    if not layer.is_plain:
        raise InvalidArgumentError(
            "`layer` must be plain, without norm, bias and positions, as those that the law was "
            f"fitted to; got {layer.name}."
        )
    known = _fitted()[recipe]
    sizes = {name: float(getattr(layer, name)) for name in known["columns"]}
    law = SizeLaw("n_triples", tuple(known["columns"]), known["intercept"],
                  tuple(known["weights"]), known["steepness"])  # fmt: skip
    triples = law.size_at(sizes)
    low, high = (triples * math.exp(error) for error in known["errors_in_nats"])
    asked = {**sizes, "triples": triples}
    outside = [
        name for name, (least, most) in known["ranges"].items() if not least <= asked[name] <= most
    ]
    return HeldSize(triples, low, high, tuple(outside))


@cache
def _fitted() -> dict[str, dict[str, Any]]:
    """Coefficients by recipe, which the experiment writes."""
    return json.loads(files("capacity.evaluator.laws").joinpath("held_sizes.json").read_text())
