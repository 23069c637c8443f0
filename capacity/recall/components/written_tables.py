"""`head_table`: the facts that a head of a language model holds, and in how many directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from capacity.checks import require_choice, require_integer
from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig
from capacity.optional import needed_by
from capacity.progress import Progress, bar
from capacity.recall.components.held import HeldTable, HeldTables
from capacity.recall.components.prompts import Asking, Prompts, prompts_of
from capacity.recall.models import asked
from capacity.recall.questions import Candidates
from capacity.recall.templates import TemplatesLike

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from capacity.recall.components.logits import Run
    from capacity.transformer.activations.records.heads import LayerActivations

Writes: TypeAlias = Literal["heads", "feed_forward"]


def head_table(
    model: Any,
    tokenizer: Any,
    db: DatabaseLike,
    templates: TemplatesLike | None = None,
    *,
    layer: int,
    head: int | None = None,
    component: Writes = "heads",
    candidates: Candidates = "predicate",
    labels: DatabaseLike | None = None,
    language: str | None = None,
    label_predicates: Sequence[str] = (),
    batch_size: int = 16,
    progress: Progress | None = None,
) -> HeldTables:
    """Tabulate the logits that a head, a layer's heads or a feed-forward write of facts' objects.

    It is a matrix over subjects and candidates for each predicate, the counterpart in a language
    model of a slice of a layer's tensor L (Wong 2025, section 3): what follows from it is the
    number of facts that the component holds alone, and the number of directions in which.

    For heads there are two more tables. ``subject`` has what their OV circuits write of the
    subject's last token alone, at the stream that the model had in this layer, with an attention of
    1. ``embeddings`` has the same at the embedding of that token, as if no layer came before. Heads
    that read what earlier layers have made of a subject recall nothing of that: of 60 capitals
    head 4 of layer 23 of SmolLM2-135M holds 30, and 2 at embeddings.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        A causal model with its head and its tokenizer. It is left as it was.
    db : Database, or what `capacity.database.as_database` takes
        The facts.
    templates : path, or mapping of str to str or list of str, optional
        As for `capacity.recall.fact_attribution`.
    layer : int
        Index of the layer, counted from 0.
    head : int, optional
        Index of the head; by default all heads of the layer together.
    component : {"heads", "feed_forward"}
        Which sublayer.
    candidates, labels, language, label_predicates, batch_size, progress : optional
        As for `capacity.recall.fact_attribution`.

    Returns
    -------
    HeldTables
        A table for each predicate and template, with accuracies and ranks.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidArgumentError
        If there is no such layer or head, or a head of a feed-forward is asked for; and as
        `capacity.recall.fact_attribution`.

    References
    ----------
    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", for OV circuits; Geva
    et al. 2023, "Dissecting Recall of Factual Associations", for subjects that early layers
    enrich; Wong 2025, equation (9).

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    >>> words = "<s> Oslo Lima Norway Peru is in".split()
    >>> of_words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<s>"))
    >>> of_words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=of_words, bos_token="<s>")
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=7, n_embd=8, n_layer=2, n_head=2))
    >>> facts = [("Oslo", "in", "Norway"), ("Lima", "in", "Peru")]
    >>> found = head_table(model, tokenizer, facts, {"in": "{subject} is in {object}"},
    ...                    layer=1, head=0)
    >>> found.summary()[["read", "facts", "candidates", "rank"]].values.tolist()
    [['attention', 2, 2, 1], ['subject', 2, 2, 1], ['embeddings', 2, 2, 1]]
    >>> found.rank_assumed
    12
    """
    require_choice("`component`", component, get_args(Writes))
    layer = require_integer("layer", layer, least=0)
    if head is not None:
        head = require_integer("head", head, least=0)
        if component != "heads":
            raise InvalidArgumentError(
                f"`head` must be omitted for a feed-forward, which has none; got {head}."
            )
    batch_size = require_integer("batch_size", batch_size, most=2**12)
    with needed_by("head_table"):
        import torch

        from capacity.transformer.activations.models.families import unwrapped
        from capacity.transformer.activations.models.pretrained import quietly
    how = Asking(templates, candidates, labels, language, label_predicates)
    facts, groups, notes = prompts_of(model, tokenizer, db, how, caller="head_table")
    model = unwrapped(model)
    total, n_done = sum(len(one.ids) for one in groups), 0
    tables: list[HeldTable] = []
    shape: LayerConfig | None = None
    with quietly(), asked(model), bar() as shown, torch.no_grad():
        report = progress or shown
        for prompts in groups:
            before = n_done

            def done(n: int, before: int = before) -> None:
                report("prompts", before + n, total, None)

            found, shape = _written(model, prompts, layer, head, component, batch_size, done)
            n_done += len(prompts.ids)
            tables += [HeldTable(prompts, read, x) for read, x in found.items()]
    name = f"layer {layer}" + (f", head {head}" if head is not None else f", {component}")
    return HeldTables(tuple(tables), facts, name, shape, notes)


def _written(
    model: Any,
    prompts: Prompts,
    layer: int,
    head: int | None,
    component: Writes,
    batch_size: int,
    report: Callable[[int], object],
) -> tuple[dict[str, Any], LayerConfig | None]:
    """Tables of logits by what is read, and for heads the shape of a layer like them."""
    import numpy as np

    from capacity.recall.components.logits import gradients, runs_of
    from capacity.transformer.residual.logit_shares import carried_back

    tables: dict[str, Any] = {}
    shape, n_done = None, 0
    for run in runs_of(model, prompts, batch_size):
        _require_layer(run, layer, component)
        _, directions, _ = gradients(model, run, prompts.tokens)
        kept: list[tuple[LayerActivations, Tensor]] = []

        def of_heads(one: LayerActivations, inner: Tensor, run: Run = run,
                     kept: list[Any] = kept) -> Tensor:  # fmt: skip
            if run.number_of(one) == layer:
                kept.append((one, inner))
            # the shares of other heads aren't asked for
            return inner.new_zeros(len(inner), one.v.shape[1], 1, inner.shape[1])

        shares, _ = carried_back(run.captured, directions, run.last, of_heads)
        if component == "feed_forward":
            parts = [x for name, at, _, x in shares if (name, at) == ("feed_forward", layer)]
            found = {"attention": sum(parts[1:], start=parts[0])}
        else:
            ((of_layer, inner),) = kept
            if head is not None and head >= of_layer.v.shape[1]:
                raise InvalidArgumentError(
                    f"Heads of layer {layer} must be from 0 to {of_layer.v.shape[1] - 1}; got "
                    f"{head}."
                )
            found = _by_read(model, prompts, run, layer, head, of_layer, inner)
            d_vo, d_model = of_layer.W_O.shape[1:]
            n_heads = 1 if head is not None else of_layer.v.shape[1]
            d_qk = of_layer.q.shape[-1]
            shape = LayerConfig(d_model, n_heads, min(d_qk, d_model), min(d_vo, d_model))
        for read, x in found.items():
            dtype = np.float64 if x.dtype.itemsize == 8 else np.float32
            size = (len(prompts.ids), len(prompts.tokens))
            tables.setdefault(read, np.zeros(size, dtype))[run.rows] = x.cpu().numpy()
        n_done += len(run.rows)
        report(n_done)
    if component == "feed_forward":
        tables = {"feed_forward": tables["attention"]}
    return tables, shape


def _by_read(
    model: Any,
    prompts: Prompts,
    run: Run,
    layer: int,
    head: int | None,
    of: LayerActivations,
    inner: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Logits by what is read: what the model attended to, or the subject's last token alone."""
    import torch

    from capacity.recall.components.logits import written_to
    from capacity.transformer.activations.embedding_values import values_of_embeddings

    subject = torch.from_numpy(prompts.subject_at[run.rows]).to(run.at.device)
    first = values_of_embeddings(model, run.inputs, layer)
    read = [of.z[run.sentences, :, run.at], of.v[run.sentences, :, subject],
            first[run.sentences, :, subject]]  # fmt: skip
    logits = written_to(inner, of, torch.stack(read, dim=2), run)
    chosen = logits.sum(1) if head is None else logits[:, head]
    return dict(zip(("attention", "subject", "embeddings"), chosen.unbind(1), strict=True))


def _require_layer(run: Run, layer: int, component: Writes) -> None:
    from capacity.transformer.activations.records.cache import Written

    there = sorted(
        {s.layer for s in run.captured.steps if isinstance(s, Written) and s.term == component}
    )
    if layer not in there:
        raise InvalidArgumentError(
            f"`layer` must be one with {component.replace('_', '-')}, from {there[0]} to "
            f"{there[-1]}; got {layer}."
            if there
            else f"The model must have a {component.replace('_', '-')} that is followed; it has "
            "none."
        )
