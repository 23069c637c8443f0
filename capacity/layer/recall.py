"""Predictions of a layer, and the facts that they recall.

Logits are those after (subject, predicate) pairs. A fact is recalled if its object's logit or
probability passes a threshold (`capacity.evaluator.accuracy`). No torch in here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import nearest, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.model.forward import PAIRS_A_BATCH, logits_of_pairs

if TYPE_CHECKING:
    from capacity.layer.model.decoder import AnyLayer


# a probability, which has to be exceeded if it is 0.5, or an argmax
# (`capacity.evaluator.accuracy`)
Threshold: TypeAlias = float | Literal["argmax", "argmax_paper"]


def check_threshold(tau: Threshold) -> None:
    """Refuse what is neither 'argmax', 'argmax_paper', 0.5 nor strictly between 0.5 and 1.

    Raises
    ------
    InvalidArgumentError
        For another value.
    """
    if isinstance(tau, str) and tau not in ("argmax", "argmax_paper"):
        hint = nearest(tau, ("argmax", "argmax_paper"))
        raise InvalidArgumentError(
            f"`tau` must be a number, 'argmax' or 'argmax_paper'; got {shown(tau)}.{hint}"
        )
    if not isinstance(tau, str) and tau != 0.5:
        check_tau(tau)


def check_tau(tau: float) -> None:
    """Raise an InvalidArgumentError unless tau lies strictly between 0.5 and 1."""
    if isinstance(tau, str) or not isinstance(tau, SupportsFloat):
        raise InvalidArgumentError(
            f"`tau` must be a number strictly between 0.5 and 1; got {shown(tau)}."
        )
    if not 0.5 < tau < 1:
        advice = (
            "At 0.5 two objects can pass at once." if tau <= 0.5 else "No probability reaches 1."
        )
        raise InvalidArgumentError(
            f"`tau` must lie strictly between 0.5 and 1; got {tau}. {advice}"
        )


def pair_logits(
    layer: AnyLayer, pairs: NDArray[np.integer], *, batch_size: int = PAIRS_A_BATCH
) -> NDArray[np.float64]:
    """Return the logits that the forward pass predicts after each (subject, predicate) pair.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer to run.
    pairs : integer ndarray, shape (n_pairs, 2)
        Token ids of subject and predicate; of facts of another arity, of each key.
    batch_size : int
        Number of pairs per forward pass.

    Returns
    -------
    ndarray of float64, shape (n_pairs, d_vocab)
        Logits at the last position.

    Raises
    ------
    InvalidTypeError
        If `pairs` is not an array.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 1, 2, 2), 5)
    >>> pair_logits(layer, np.array([[0, 1], [2, 1]])).shape
    (2, 5)
    """
    import torch

    if not hasattr(pairs, "astype"):
        raise InvalidTypeError(
            "`pairs` must be an array of token ids, shape (n_pairs, 2); got "
            f"{shown(pairs)}. The pairs of a database are db.token_triples[:, :2]."
        )
    if pairs.ndim == 2 and pairs.shape[1] == 2 and _is_of_weights_alone(layer):
        # as a sweep scores it
        weights = {name: p.detach().numpy() for name, p in layer.named_parameters()}
        return logits_of_pairs(layer.config, weights, pairs, batch_size=batch_size)
    device = layer.W_E.device
    sentences = torch.as_tensor(pairs.astype(np.int64), device=device)
    with torch.no_grad():
        parts = [layer(part)[:, -1].double().cpu() for part in sentences.split(batch_size)]
    return torch.cat(parts).numpy()


# methods that a layer's forward pass is made of
_FORWARD = ("forward", "embed", "attention", "queries_and_keys", "values")


def _is_of_weights_alone(layer: AnyLayer) -> bool:
    """Return True if numpy can compute the forward pass: neither hook nor method is another's."""
    import torch
    from torch.nn.modules.module import _has_any_global_hook

    from capacity.layer.model.attention_layer import AttentionLayer

    return (
        type(layer) is AttentionLayer
        and layer.config.is_plain
        and all(p.device.type == "cpu" for p in layer.parameters())
        and {p.dtype for p in layer.parameters()} <= {torch.float32, torch.float64}
        and not (layer._forward_hooks or layer._forward_pre_hooks or _has_any_global_hook())
        and all(
            getattr(getattr(layer, name), "__module__", "") == AttentionLayer.__module__
            for name in _FORWARD
        )
    )


def recalled(
    z: NDArray[np.float64], targets: NDArray[np.integer], taus: Iterable[float]
) -> dict[Threshold, NDArray[np.bool_]]:
    """Find for each threshold the facts that pass it: one definition for shares and for tables.

    Parameters
    ----------
    z : ndarray of float64, shape (n_facts, n_candidates)
        Finite logits of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.
    taus : iterable of float
        Thresholds on the probability, strictly between 0.5 and 1.

    Returns
    -------
    dict of Threshold to boolean ndarray, shape (n_facts,)
        For 'argmax', 'argmax_paper', 0.5 (a probability above one half) and each tau.

    Examples
    --------
    >>> right = recalled(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]), [0.95])
    >>> {tau: facts.tolist() for tau, facts in right.items()}
    {'argmax': [True, False], 'argmax_paper': [True, True], 0.5: [True, False], 0.95: [True, False]}
    """
    rows = np.arange(len(targets))
    mine, others = z[rows, targets], z.copy()
    others[rows, targets] = -np.inf
    rival = others.max(axis=1, initial=-np.inf)
    log_p = log_probabilities(z)[rows, targets]
    return {
        "argmax": mine > rival,
        "argmax_paper": mine >= rival,
        0.5: log_p > math.log(0.5),
        **{tau: log_p >= math.log(tau) for tau in taus},
    }


def log_probabilities(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract the log-sum-exp of each row of finite logits.

    Examples
    --------
    >>> log_probabilities(np.zeros((1, 2))).round(3)
    array([[-0.693, -0.693]])
    """
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
