"""Layers with random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from capacity.layer.model.config import LayerConfig

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer


@st.composite
def layer_configs(draw: st.DrawFn, *, max_d_model: int = 6, max_heads: int = 4) -> LayerConfig:
    """Sizes of plain layers, with d_head_qk, d_head_vo <= d_model.

    Parameters
    ----------
    max_d_model : int
        Largest dimension of the embeddings.
    max_heads : int
        Largest number of heads.

    Returns
    -------
    SearchStrategy of LayerConfig
        Sizes, without any of the options.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(layer_configs(), lambda config: config.n_heads > 1).name
    'd1-h2-qk1-vo1'
    """
    d_model = draw(st.integers(1, max_d_model))
    head = st.integers(1, d_model)
    return LayerConfig(d_model, draw(st.integers(1, max_heads)), draw(head), draw(head))


@st.composite
def layers(
    draw: st.DrawFn, d_vocab: int, *, configs: st.SearchStrategy[LayerConfig] | None = None
) -> AttentionLayer:
    """Layers in float64 with random weights.

    Parameters
    ----------
    d_vocab : int
        Number of tokens.
    configs : SearchStrategy of LayerConfig, optional
        Sizes and options; `layer_configs` with its defaults if omitted.

    Returns
    -------
    SearchStrategy of AttentionLayer
        Layers with the initial weights of random seeds.

    Examples
    --------
    >>> from hypothesis import find
    >>> tuple(find(layers(5), lambda layer: True).W_E.shape)
    (5, 1)
    """
    import torch

    from capacity.layer.model.attention_layer import AttentionLayer

    config = draw(configs or layer_configs())
    return AttentionLayer(config, d_vocab, seed=draw(st.integers(0, 2**32)), dtype=torch.float64)
