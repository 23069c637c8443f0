"""Train runs from their starts, score each, and keep the one that a run's row describes.

What came of the finished starts of a long run is written every few seconds beside its snapshots, so
that a kill costs no more of a run of many starts than of another.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from capacity.errors import SweepError
from capacity.evaluator.accuracy import accuracy_of_logits, margins, smallest_scale
from capacity.evaluator.columns import accuracy_column
from capacity.layer.engines.engine import loaded
from capacity.layer.engines.registry import engine_named
from capacity.layer.model.forward import logits_of_pairs
from capacity.layer.recall import pair_logits
from capacity.layer.run import snapshots as of_one
from capacity.layer.run.recipe import NOT_TRIED, Training, TriedStarts
from capacity.progress import Progress
from capacity.sweep.plan import Run
from capacity.sweep.storage.layout import starts_name
from capacity.sweep.storage.records import DamagedFileError, read_stamped, stamped, write
from capacity.sweep.storage.row_schema import scored_columns
from capacity.sweep.training.trained import Trained, Watch, one_thread, trained_runs

_RECORD_BYTES = 2**16
# of a training, what its row shows
_OUTCOME = ("status", "epochs", "loss", "engine")


@dataclass(frozen=True)
class Kept:
    """Outcome of the starts of a run so far, with the one that is kept.

    Attributes
    ----------
    tried : TriedStarts
        Their numbers.
    training : Training
        Outcome of the start that is kept; without its history if an earlier process trained it.
    scores : mapping of str to float
        Columns of the runs table that score it.
    trained : AttentionLayer, Decoder, mapping of str to ndarray, or None
        What was trained from that start; None if an earlier process did.
    """

    tried: TriedStarts
    training: Training
    scores: Mapping[str, float]
    trained: Trained | None


def tried_runs(
    runs: Sequence[Run],
    snapshots: Path | None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Iterator[tuple[Run, Kept]]:
    """Train runs of one engine, recipe and `Compute`, each from as many starts as it asks for.

    Parameters
    ----------
    runs, snapshots, progress, watch
        As `trained_runs` takes them.

    Yields
    ------
    run, kept
        A run, and the outcome of its starts.

    Raises
    ------
    MultiValuedError
        If a database is multi-valued.
    """
    left = {run.key: run for run in runs}
    so_far = {run.key: _recalled(run, snapshots) for run in runs}
    written = time.monotonic()
    while left:
        start = min(_n_tried(so_far[key]) for key in left)
        now = [run for key, run in left.items() if _n_tried(so_far[key]) == start]
        told = _of_start(progress, start, now)
        for run, trained, training in trained_runs(now, start, snapshots, told, watch):
            kept = so_far[run.key] = _after(so_far[run.key], run, trained, training)
            if run.starts.is_over(kept.tried):
                del left[run.key]
                yield run, kept
            elif snapshots is not None and time.monotonic() - written > of_one.SECONDS:
                _write(snapshots, run, kept)
                written = time.monotonic()


def _n_tried(kept: Kept | None) -> int:
    return 0 if kept is None else kept.tried.tried


def _after(kept: Kept | None, run: Run, trained: Trained, training: Training) -> Kept:
    """Outcome of the starts of a run after one more."""
    scores = _scores(run, trained, diverged=training.status == "diverged")
    before = NOT_TRIED if kept is None else kept.tried
    tried = before.then(scores[accuracy_column(run.starts.held_at)])
    if kept is None or tried.start == before.tried:
        return Kept(tried, training, scores, trained)
    return replace(kept, tried=tried)


def _of_start(progress: Progress | None, start: int, runs: Sequence[Run]) -> Progress | None:
    """Progress that names the start, if there are several."""
    most = max(run.starts.most for run in runs)
    if progress is None or most == 1:
        return progress
    return lambda what, done, total, left: progress(
        f"{what} of start {start + 1} of {most}", done, total, left
    )


def _recalled(run: Run, folder: Path | None) -> Kept | None:
    """Read what an earlier process wrote of a run; damage costs no more than its starts."""
    if folder is None or run.starts.most == 1:
        return None
    path = folder / starts_name(run.key)
    with suppress(DamagedFileError, KeyError, TypeError):
        if not path.exists():
            return None
        held = read_stamped(path, max_bytes=_RECORD_BYTES)
        tried, training = TriedStarts(**held["tried"]), Training(**held["training"])
        scores = {name: held["scores"][name] for name in scored_columns(run.taus)}
        if held["run_key"] == run.key and not run.starts.is_over(tried):
            return Kept(tried, training, scores, None)
    return None


def _write(folder: Path, run: Run, kept: Kept) -> None:
    """Write what came of a run's starts; if that fails, the run continues without."""
    training = {name: getattr(kept.training, name) for name in _OUTCOME}
    content = {
        "run_key": run.key,
        "tried": asdict(kept.tried),
        "training": training,
        "scores": kept.scores,
    }
    with suppress(SweepError):
        write(folder / starts_name(run.key), stamped(content))


def _scores(run: Run, trained: Trained, *, diverged: bool) -> dict[str, float]:
    """Scores of the trained layer, by column; all NaN if training diverged."""
    names, taus = scored_columns(run.taus), run.taus
    if diverged:
        return dict.fromkeys(names, math.nan)
    facts, of_engine = run.database.token_triples, engine_named(run.engine).logits_of_facts
    with one_thread():
        if not isinstance(trained, Mapping):
            logits = pair_logits(trained, facts[:, :2])
        elif run.layer.is_plain or of_engine is None:
            logits = logits_of_pairs(run.layer, trained, facts[:, :2])
        else:
            logits = loaded(of_engine)(run.layer, trained, run.database)
    found = accuracy_of_logits(logits, facts[:, 2], taus)
    scores = (
        found.tied,
        found.argmax,
        found.argmax_paper,
        found.majority,
        *(found.softmax[tau] for tau in taus),
        float(margins(logits, facts[:, 2]).min()),
        *(smallest_scale(logits, facts[:, 2], tau) for tau in taus),
    )
    return dict(zip(names, scores, strict=True))
