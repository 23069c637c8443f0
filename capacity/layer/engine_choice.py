"""Which engine trains a layer. No torch in here, so that plans can say it."""

from __future__ import annotations

from capacity.errors import InvalidArgumentError
from capacity.layer.config import LayerConfig

# the fused kernel's rows are 8 numbers wide
FUSED_DIMENSIONS = 8
# facts times tokens: the graph engine's batches take about 2 kB for each, whatever else is in them
GRAPH_LOGITS = 1 << 18
_TOO_LARGE = f"facts times tokens must be at most {GRAPH_LOGITS:,} then"


def engine_for(engine: str, config: LayerConfig, device: str = "cpu", *, n_logits: int = 0) -> str:
    """The engine that trains a layer, with 'auto' resolved.

    'auto' never stands for 'graph', which was made for GPUs and hasn't been measured on one.

    Parameters
    ----------
    engine : str
        As in `Compute`.
    config : LayerConfig
    device : str
    n_logits : int
        Facts times tokens.

    Raises
    ------
    ValueError
        If the engine that was asked for can't train such a layer there.

    Examples
    --------
    >>> engine_for("auto", LayerConfig(4, 2, 2, 2))
    'fused'
    >>> engine_for("auto", LayerConfig(16, 2, 2, 2))
    'blocked'
    >>> engine_for("auto", LayerConfig(4, 2, 2, 2, bias=True))
    'reference'
    """
    if engine == "auto":
        # the first is faster wherever it can be used (benchmarks/large_layers.py)
        able = (
            name
            for name in ("fused", "blocked")
            if _why_not(name, config, device, n_logits) is None
        )
        return next(able, "reference")
    refusal = _why_not(engine, config, device, n_logits)
    if refusal is not None:
        raise InvalidArgumentError(
            f"`engine` must suit the layer; {engine} can't train {config.name} on {device}, for "
            f"{refusal}. Say auto or reference."
        )
    return engine


def _why_not(engine: str, config: LayerConfig, device: str, n_logits: int) -> str | None:
    if engine == "reference":
        return None
    if not config.is_plain:
        return "it knows no norm, biases or positions"
    if engine == "graph":
        return None if n_logits <= GRAPH_LOGITS else _TOO_LARGE
    if device != "cpu":
        return "it computes on CPUs"
    if engine == "fused" and config.d_model > FUSED_DIMENSIONS:
        return f"d_model must be at most {FUSED_DIMENSIONS} then"
    return None
