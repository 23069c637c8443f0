"""`train_classifier`: fit an `EncoderClassifier` to labelled sentences.

Section 6 of Bhardwaj et al. (2021): cross entropy, Adam with learning rate 0.001, batches of 256,
20 epochs, and the weights of the epoch with the best accuracy on validation sentences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional

from capacity.checks import Seed, integer_seed
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.progress import Progress
from capacity.transformer.encoder.model import EncoderClassifier

Labelled = tuple[Tensor, Tensor, Tensor | None]
SENTENCES_AT_ONCE = 1024


@briefly_shown
@dataclass(frozen=True)
class ClassifierTraining:
    """Losses and accuracies of training, by epoch.

    Attributes
    ----------
    losses : tuple of float
        Mean cross entropy of each epoch's batches, each before its own step, in nats.
    validation_accuracies : tuple of float
        Accuracy on validation sentences after each epoch; empty without validation.
    best_epoch : int
        Epoch, counted from 1, whose weights the model has: the first with the best validation
        accuracy, or the last without validation.
    """

    losses: tuple[float, ...]
    validation_accuracies: tuple[float, ...]
    best_epoch: int


def train_classifier(
    model: EncoderClassifier,
    tokens: Int[Tensor, "sentences n"],
    labels: Int[Tensor, "sentences"],
    *,
    mask: Tensor | None = None,
    epochs: int = 20,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    seed: Seed = 0,
    validation: Labelled | None = None,
    progress: Progress | None = None,
) -> ClassifierTraining:
    """Train a model in place, starting from its current weights.

    If training is interrupted, or stopped by an error, the model has the best weights so far, or
    its initial ones if no epoch was finished.

    Parameters
    ----------
    model : EncoderClassifier
        Model to train.
    tokens : integer tensor, shape (n_sentences, n)
        Token ids of the sentences.
    labels : integer tensor, shape (n_sentences,)
        Classes, counted from 0.
    mask : tensor of 0 and 1, shape (n_sentences, n), optional
        1 for tokens, 0 for the padding after them.
    epochs : int
        Number of passes over the sentences.
    batch_size : int
        Number of sentences in a step.
    learning_rate : float
        Learning rate of Adam.
    seed : int or numpy.random.Generator
        Seed of the order of the sentences.
    validation : (tokens, labels, mask or None), optional
        Sentences that select the best epoch.
    progress : callable, optional
        Called after each epoch with the number of epochs done and the number of all.

    Returns
    -------
    ClassifierTraining
        Losses and accuracies by epoch, and the epoch that was selected.

    Raises
    ------
    InvalidArgumentError
        If the model can't read a sentence, a label isn't one of its classes, a number is out of
        range, or training diverges.

    Examples
    --------
    >>> from capacity.transformer.encoder.config import EncoderConfig
    >>> model = EncoderClassifier(EncoderConfig(6, 2, 3, 8, 2, 2, 8, "add"))
    >>> tokens = torch.tensor([[2, 3, 4], [2, 4, 5], [2, 5, 3], [2, 4, 4]])
    >>> labels = torch.tensor([1, 0, 1, 0])
    >>> training = train_classifier(model, tokens, labels, learning_rate=0.01)
    >>> accuracy(model, tokens, labels)
    1.0
    """
    for name, number in (("epochs", epochs), ("batch_size", batch_size)):
        if number < 1:
            raise InvalidArgumentError(f"`{name}` must be at least 1; got {number}.")
    if not (learning_rate > 0 and math.isfinite(learning_rate)):
        raise InvalidArgumentError(f"`learning_rate` must be positive; got {learning_rate}.")
    training = _Sentences.of(model, tokens, labels, mask)
    held_out = None if validation is None else _Sentences.of(model, *validation)

    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    order = torch.Generator().manual_seed(integer_seed(seed))
    losses: list[float] = []
    accuracies: list[float] = []
    best_epoch, best = 0, _weights(model)
    try:
        for epoch in range(1, epochs + 1):
            loss = 0.0
            for rows in torch.randperm(len(training), generator=order).split(batch_size):
                batch = training.at(rows)
                optimizer.zero_grad()
                batch_loss = functional.cross_entropy(model(batch.tokens, batch.mask), batch.labels)
                batch_loss.backward()
                optimizer.step()
                loss += float(batch_loss.detach()) * len(batch)
            if not math.isfinite(loss):
                raise InvalidArgumentError(
                    f"`learning_rate` must let training converge; with {learning_rate} the loss is "
                    f"{loss} in epoch {epoch}. Choose a smaller one."
                )
            losses.append(loss / len(training))
            if held_out is not None:
                accuracies.append(_accuracy(model, held_out))
            if held_out is None or accuracies[-1] > max(accuracies[:-1], default=-1.0):
                best_epoch, best = epoch, _weights(model)
            if progress is not None:
                progress("epochs", epoch, epochs, None)
    finally:
        model.load_state_dict(best)
        model.zero_grad()
    return ClassifierTraining(tuple(losses), tuple(accuracies), best_epoch)


def accuracy(
    model: EncoderClassifier,
    tokens: Int[Tensor, "sentences n"],
    labels: Int[Tensor, "sentences"],
    mask: Tensor | None = None,
) -> float:
    """Share of sentences whose class has the largest logit.

    Parameters
    ----------
    model : EncoderClassifier
        Classifier.
    tokens : integer tensor, shape (n_sentences, n)
        Token ids of the sentences.
    labels : integer tensor, shape (n_sentences,)
        Classes, counted from 0.
    mask : tensor of 0 and 1, shape (n_sentences, n), optional
        1 for tokens, 0 for the padding after them.

    Returns
    -------
    float
        Accuracy; sentences with a logit that isn't finite count as wrong.

    Raises
    ------
    InvalidArgumentError
        If the model can't read a sentence, or a label isn't one of its classes.
    """
    return _accuracy(model, _Sentences.of(model, tokens, labels, mask))


@dataclass(frozen=True, eq=False)
class _Sentences:
    """Checked sentences and labels, on the model's device."""

    tokens: Int[Tensor, "sentences n"]
    labels: Int[Tensor, "sentences"]
    mask: Bool[Tensor, "sentences n"]

    @classmethod
    def of(
        cls, model: EncoderClassifier, tokens: Tensor, labels: Tensor, mask: Tensor | None
    ) -> _Sentences:
        real = model.checked_mask(tokens, mask)
        n_classes, device = model.config.n_classes, model.W_E.device
        if labels.shape != tokens.shape[:1] or labels.is_floating_point():
            raise InvalidArgumentError(
                f"`labels` must be integers of shape ({len(tokens)},), one for each sentence; got "
                f"{str(labels.dtype).removeprefix('torch.')} of shape {tuple(labels.shape)}."
            )
        wrong = labels[(labels < 0) | (labels >= n_classes)]
        if len(wrong):
            raise InvalidArgumentError(
                f"`labels` must lie between 0 and n_classes - 1 = {n_classes - 1}; got "
                f"{int(wrong[0])}."
            )
        return cls(tokens.to(device), labels.long().to(device), real.to(device))

    def __len__(self) -> int:
        return len(self.tokens)

    def at(self, rows: Tensor) -> _Sentences:
        """Select sentences, without columns that are padding in all of them."""
        rows = rows.to(self.tokens.device)
        mask = self.mask[rows]
        n = int(mask.sum(dim=1).max())
        return _Sentences(self.tokens[rows, :n], self.labels[rows], mask[:, :n])


@torch.no_grad()
def _accuracy(model: EncoderClassifier, sentences: _Sentences) -> float:
    right = 0
    for rows in torch.arange(len(sentences)).split(SENTENCES_AT_ONCE):
        batch = sentences.at(rows)
        logits = model(batch.tokens, batch.mask)
        # argmax over NaN would return a class
        wins = logits.isfinite().all(dim=1) & (logits.argmax(dim=1) == batch.labels)
        right += int(wins.sum())
    return right / len(sentences)


def _weights(model: EncoderClassifier) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in model.state_dict().items()}
