import pytest
import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.encoder.config import Combine, EncoderConfig
from capacity.transformer.encoder.model import EncoderClassifier
from capacity.transformer.encoder.training import accuracy, train_classifier

Sentences = tuple[Tensor, Tensor, Tensor]


def does_it_hold_a_5(n_sentences: int, seed: int) -> Sentences:
    """Sentences of 3 to 8 tokens, half of them with a 5 somewhere after the first token, 2."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 9, (n_sentences,), generator=generator)
    mask = torch.arange(8) < lengths[:, None]
    tokens = torch.randint(6, 12, mask.shape, generator=generator)
    tokens[:, 0] = 2
    labels = torch.arange(n_sentences) % 2
    where = 1 + (torch.rand(n_sentences, generator=generator) * (lengths - 1)).long()
    tokens[labels == 1, where[labels == 1]] = 5
    # what padding holds must not matter, so let it hold the answer
    return tokens.masked_fill(~mask, 5), labels, mask


def small(combine: Combine = "add", seed: int = 0) -> EncoderClassifier:
    return EncoderClassifier(EncoderConfig(12, 2, 8, 16, 2, 2, 16, combine), seed=seed)


def weights(model: EncoderClassifier) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["concatenate", "add"])
def test_training_learns_whether_a_token_occurs(combine: Combine) -> None:
    model = small(combine)
    tokens, labels, mask = does_it_hold_a_5(600, 0)
    training = train_classifier(
        model,
        tokens,
        labels,
        mask=mask,
        epochs=15,
        batch_size=32,
        learning_rate=0.01,
        validation=does_it_hold_a_5(200, 1),
    )
    assert training.losses[-1] < 0.5 * training.losses[0]
    unseen = does_it_hold_a_5(400, 2)
    assert accuracy(model, *unseen) > 0.95
    # labels that were exchanged make every right answer wrong
    assert accuracy(model, unseen[0], 1 - unseen[1], unseen[2]) < 0.05


def test_training_is_determined_by_its_seeds() -> None:
    tokens, labels, mask = does_it_hold_a_5(100, 0)

    def trained(seed: int) -> tuple[object, Tensor]:
        model = small()
        options = {"mask": mask, "epochs": 2, "batch_size": 16, "seed": seed}
        return train_classifier(model, tokens, labels, **options), weights(model)

    one, again, other = trained(0), trained(0), trained(1)
    assert one[0] == again[0]
    assert torch.equal(one[1], again[1])
    assert not torch.equal(one[1], other[1])


def test_the_best_epochs_weights_are_kept() -> None:
    # Labels of the validation set are exchanged: the better the model learns, the worse it does
    # there, and the last epoch is not the best.
    tokens, labels, mask = does_it_hold_a_5(300, 0)
    held_out, answers, held_out_mask = does_it_hold_a_5(200, 1)
    model = small()
    seen: list[Tensor] = []
    training = train_classifier(
        model,
        tokens,
        labels,
        mask=mask,
        epochs=8,
        batch_size=32,
        learning_rate=0.01,
        validation=(held_out, 1 - answers, held_out_mask),
        progress=lambda *_: seen.append(weights(model)),
    )
    best = max(training.validation_accuracies)
    assert len(training.losses) == len(training.validation_accuracies) == len(seen) == 8
    assert training.validation_accuracies[-1] < best
    assert training.best_epoch == 1 + training.validation_accuracies.index(best)
    assert torch.equal(weights(model), seen[training.best_epoch - 1])
    assert accuracy(model, held_out, 1 - answers, held_out_mask) == best


def test_loss_is_a_mean_over_sentences_and_the_first_of_equal_epochs_is_the_best() -> None:
    # steps of 1e-30 are lost in rounding, so the model stays what it was, epoch after epoch;
    # batches of 16, 16 and 8
    tokens, labels, mask = does_it_hold_a_5(40, 0)
    model = small()
    expected = torch.nn.functional.cross_entropy(model(tokens, mask), labels).item()
    training = train_classifier(
        model,
        tokens,
        labels,
        mask=mask,
        epochs=3,
        batch_size=16,
        learning_rate=1e-30,
        validation=(tokens, labels, mask),
    )
    assert training.losses == pytest.approx([expected] * 3, rel=1e-5)
    assert training.validation_accuracies == (accuracy(model, tokens, labels, mask),) * 3
    assert training.best_epoch == 1


def test_without_validation_the_last_epoch_is_kept() -> None:
    tokens, labels, mask = does_it_hold_a_5(40, 0)
    model = small()
    seen: list[Tensor] = []
    training = train_classifier(
        model,
        tokens,
        labels,
        mask=mask,
        epochs=3,
        progress=lambda *_: seen.append(weights(model)),
    )
    assert training.best_epoch == 3
    assert training.validation_accuracies == ()
    assert torch.equal(weights(model), seen[-1])
    assert not torch.equal(seen[0], seen[-1])


def test_interrupted_training_leaves_the_best_weights_so_far() -> None:
    tokens, labels, mask = does_it_hold_a_5(40, 0)
    model = small()
    before, seen = weights(model), []

    def interrupt_during_the_third_epoch(
        what: str, done: int, total: int, left: float | None
    ) -> None:
        assert total == 5
        seen.append(weights(model))
        if done == 2:
            model.register_forward_pre_hook(interrupt)

    calls = []

    def interrupt(_module: object, _inputs: object) -> None:
        calls.append(None)
        # its second batch, when the first has changed the weights
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_classifier(
            model,
            tokens,
            labels,
            mask=mask,
            epochs=5,
            batch_size=20,
            progress=interrupt_during_the_third_epoch,
        )
    assert torch.equal(weights(model), seen[1])
    assert not torch.equal(weights(model), before)


def test_training_on_padded_sentences_is_training_on_trimmed_ones() -> None:
    tokens, labels, mask = does_it_hold_a_5(64, 0)
    short = mask.sum(dim=1) <= 5
    tokens, labels, mask = tokens[short], labels[short], mask[short]
    one, other = small(), small()
    first = train_classifier(one, tokens, labels, mask=mask, epochs=2)
    second = train_classifier(other, tokens[:, :5], labels, mask=mask[:, :5], epochs=2)
    assert first == second
    assert torch.equal(weights(one), weights(other))


def test_diverged_training_is_refused_and_leaves_the_last_good_weights() -> None:
    tokens, labels, mask = does_it_hold_a_5(64, 0)
    model = small()
    before = weights(model)
    with pytest.raises(InvalidArgumentError, match="in epoch 1"):
        train_classifier(
            model, tokens, labels, mask=mask, epochs=5, batch_size=16, learning_rate=1e30
        )
    assert torch.equal(weights(model), before)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2], "between 0 and n_classes - 1 = 1; got 2"),
        ([-1, 1], "between 0 and n_classes - 1 = 1; got -1"),
        ([0], r"of shape \(2,\), one for each sentence; got int64 of shape \(1,\)"),
        ([0.0, 1.0], "must be integers"),
    ],
)
def test_labels_that_are_no_classes_are_refused(labels: list, message: str) -> None:
    tokens, right = torch.tensor([[2, 5], [2, 6]]), torch.tensor([1, 0])
    with pytest.raises(InvalidArgumentError, match=message):
        train_classifier(small(), tokens, torch.tensor(labels))
    with pytest.raises(InvalidArgumentError, match=message):
        train_classifier(small(), tokens, right, validation=(tokens, torch.tensor(labels), None))
    with pytest.raises(InvalidArgumentError, match=message):
        accuracy(small(), tokens, torch.tensor(labels))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1; got 0"),
        ({"batch_size": 0}, "`batch_size` must be at least 1; got 0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive; got 0.0"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive; got nan"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        train_classifier(small(), torch.tensor([[2, 5]]), torch.tensor([1]), **options)
