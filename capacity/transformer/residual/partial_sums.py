"""Predictions from partial sums of the terms of e = i + h + f + c (Mickus et al. 2022, Table 2).

They are made by the head of a model, its own code from the last embeddings to logits of tokens. The
code before the head is replaced while the model runs, so that the head is all that computes. The
tokens to predict are corrupted as in the pretraining of BERT (Devlin et al. 2019, section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.models.families import body_under_head
from capacity.transformer.residual.additive_decomposition import AdditiveDecomposition

if TYPE_CHECKING:
    import pandas as pd


def corrupted(
    tokens: Int[Tensor, "batch n"],
    where: Bool[Tensor, "batch n"],
    *,
    mask_token: int,
    d_vocab: int,
    share: float = 0.15,
    generator: torch.Generator,
) -> tuple[Any, Any]:
    """Corrupt tokens as BERT does: of those chosen 80 % are masked, 10 % replaced at random.

    Parameters
    ----------
    tokens : (batch, n) integers
        Original tokens.
    where : (batch, n) bool
        Tokens that may be chosen.
    mask_token : int
        Token that masks.
    d_vocab : int
        Size of the vocabulary from which replacements are drawn.
    share : float
        Share of the tokens to choose.
    generator : torch.Generator
        Source of all random numbers.

    Returns
    -------
    tokens : (batch, n) integers
        Corrupted tokens, which the model reads.
    chosen : (batch, n) bool
        Tokens that the model has to predict.
    """
    chosen = where & (torch.rand(tokens.shape, generator=generator) < share)
    fate = torch.rand(tokens.shape, generator=generator)
    random = torch.randint(d_vocab, tokens.shape, generator=generator)
    corrupt = torch.where(fate < 0.8, mask_token, torch.where(fate < 0.9, random, tokens))
    return torch.where(chosen, corrupt, tokens), chosen


def output_head(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Find what a model does with its last embeddings: the map from them to logits of tokens.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers`` with a masked-LM or LM head.

    Returns
    -------
    callable
        The head: from embeddings (..., d_model) to logits (..., d_vocab). It is the model's own
        code, without what precedes the head. In GPT-2, Llama and most decoders a norm does, which
        isn't part of it: it belongs to the last stage of `decompose`. So the head's argument is the
        last embeddings, or terms of them; for embeddings after an earlier layer apply that norm
        first (``model.base_model.norm`` in Llama, ``ln_f`` in GPT-2).

    Raises
    ------
    InvalidArgumentError
        If the model has no such head, or is an encoder-decoder.

    Examples
    --------
    >>> from transformers import BertConfig, BertForMaskedLM
    >>> config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    ...                     intermediate_size=8, vocab_size=20)
    >>> output_head(BertForMaskedLM(config))(torch.zeros(3, 8)).shape
    torch.Size([3, 20])
    """
    known: Any = model
    body: Any = body_under_head(model) if hasattr(model, "base_model") else model
    if body is model or known.get_output_embeddings() is None or body.config.is_encoder_decoder:
        raise _without_head(model)
    # some heads call the decoder in the model without its head
    bodies = list({id(part): part for part in (body, body.get_decoder())}.values())

    def head(embeddings: Tensor) -> Tensor:
        flat = embeddings.reshape(1, -1, embeddings.shape[-1])
        # the tokens aren't read
        tokens = torch.zeros(flat.shape[:2], dtype=torch.int64, device=flat.device)
        with _bodies_that_return(bodies, flat) as were_called:
            logits = getattr(known(input_ids=tokens, return_dict=True), "logits", None)
        if not were_called or logits is None:
            raise _without_head(model)
        return logits.reshape(*embeddings.shape[:-1], -1)

    return head


@contextmanager
def _bodies_that_return(bodies: Sequence[Any], embeddings: Tensor) -> Iterator[list[Any]]:
    """Let each call of the parts before the head return embeddings; yield those that are called."""
    were_called: list[Any] = []

    def returning_embeddings(body: Any) -> Callable[..., _Last]:
        def forward(*_: Any, **__: Any) -> _Last:
            were_called.append(body)
            return _Last(embeddings)

        return forward

    with replaced_forwards({body: returning_embeddings(body) for body in bodies}):
        yield were_called


@contextmanager
def replaced_forwards(forwards: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Replace `forward` of modules: an attribute of the instance, as it was afterwards.

    Parameters
    ----------
    forwards : mapping of nn.Module to callable
        What each module calls in this context.
    """
    before = {module: vars(module).get("forward") for module in forwards}
    for module, forward in forwards.items():
        module.forward = forward
    try:
        yield
    finally:
        for module, forward in before.items():
            if forward is None:
                vars(module).pop("forward", None)
            else:
                module.forward = forward


def _without_head(model: nn.Module) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The model must predict tokens; got {type(model).__name__}, which has no masked-LM or LM "
        "head alone after one stack of layers. Load it with its head: load_pretrained(folder, "
        "head=True), or the class ...ForMaskedLM or ...ForCausalLM of its family."
    )


class _Last:
    """Output of a model without its head, as far as heads need it: its last embeddings."""

    def __init__(self, embeddings: Tensor) -> None:
        self.last_hidden_state = embeddings

    def __getitem__(self, at: Any) -> Any:
        return (self.last_hidden_state,)[at]

    def __getattr__(self, name: str) -> None:
        return None


def subsets(n: int) -> Iterator[tuple[int, ...]]:
    """Non-empty subsets of 0 ... n - 1, smaller ones first."""
    for size in range(1, n + 1):
        yield from combinations(range(n), size)


@torch.no_grad()
def partial_sum_accuracy(
    head: Callable[[Tensor], Tensor],
    decompositions: Iterable[
        tuple[AdditiveDecomposition, Int[Tensor, "batch n"], Bool[Tensor, "batch n"]]
    ],
) -> pd.DataFrame:
    """Compute the accuracy of predicting tokens from every partial sum of terms.

    Parameters
    ----------
    head : callable
        Map from embeddings (m, d_model) to logits (m, d_vocab), such as `output_head` returns.
    decompositions : iterable of (AdditiveDecomposition, targets, where)
        Batches, each with the tokens to predict and the positions to predict them at (bool), both
        (batch, n). For a causal model the target at a position is the next token.

    Returns
    -------
    pandas.DataFrame
        One row for each subset of terms: a boolean column for each of their names, ``accuracy`` by
        argmax, and ``n``, the number of predictions.

    Raises
    ------
    InvalidArgumentError
        If `where` marks no token.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> from capacity.transformer import decompose
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> tokens = torch.tensor([[3, 7]])
    >>> predicted = layer(tokens).argmax(-1)
    >>> where = torch.tensor([[False, True]])
    >>> batch = decompose(layer.capture(tokens)), predicted, where
    >>> table = partial_sum_accuracy(lambda e: e @ layer.W_U, [batch])
    >>> len(table), table.query("input and heads")["accuracy"].tolist()
    (15, [1.0, 1.0, 1.0, 1.0])
    """
    import pandas as pd

    names: tuple[str, ...] = ()
    rows, right, n = list[tuple[int, ...]](), torch.zeros(0, dtype=torch.int64), 0
    for split, targets, where in decompositions:
        if not names:
            names = split.names
            rows = list(subsets(len(names)))
            right = torch.zeros(len(rows), dtype=torch.int64)
        places = where & split.mask
        terms, wanted = split.terms[-1][:, places], targets[places]
        n += len(wanted)
        for row, chosen in enumerate(rows):
            said = head(terms[list(chosen)].sum(0)).argmax(-1)
            right[row] += (said == wanted).sum().cpu()
    if not n:
        raise InvalidArgumentError(
            "There must be a token to predict; `where` marks none that isn't padding."
        )
    return pd.DataFrame(
        [
            {**{name: number in chosen for number, name in enumerate(names)},
             "accuracy": int(hits) / n, "n": n}
            for chosen, hits in zip(rows, right, strict=True)
        ]
    )  # fmt: skip
