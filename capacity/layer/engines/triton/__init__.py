"""The triton engine: many runs on a GPU, one program per run, all epochs in the kernel."""

from __future__ import annotations

import os
from importlib.util import find_spec

from capacity.layer.engines.engine import Engine, StepCost, Workload, why_not_whole

# tokens, d_model, and d_head times heads, each rounded up: what the registers of a program hold
MOST_TOKENS, MOST_D_MODEL, MOST_D_HEADS = 512, 16, 128


def _why_not(work: Workload) -> str | None:
    return (
        why_not_whole(work)
        or _why_not_there(work)
        or _why_not_so_large(work)
        or _why_not_so(work.dtype, work.recipe.facts_a_step(work.n_triples))
    )


def _why_not_there(work: Workload) -> str | None:
    # under triton's interpreter kernels run on the CPU, slowly
    if work.device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return "it runs on GPUs only"
    if find_spec("triton") is None:
        return "the package triton isn't installed (pip install 'knowledge-capacity[gpu]')"
    return None


def _why_not_so_large(work: Workload) -> str | None:
    layer = work.layer
    d_heads = _rounded(layer.n_heads) * _rounded(max(layer.d_head_qk, layer.d_head_vo))
    if work.n_tokens > MOST_TOKENS:
        return f"the database must have at most {MOST_TOKENS} tokens"
    if layer.d_model > MOST_D_MODEL:
        return f"d_model must be at most {MOST_D_MODEL}"
    if d_heads > MOST_D_HEADS:
        return (
            f"n_heads times the larger of d_head_qk and d_head_vo, each rounded up to a power of "
            f"two, must be at most {MOST_D_HEADS}"
        )
    return None


def _why_not_so(dtype: str, facts_a_step: int) -> str | None:
    if dtype != "float32":
        return f"it computes in float32, and not in {dtype}"
    if facts_a_step:
        return "its steps are over all facts, and batch_size asks for smaller ones"
    return None


def _rounded(size: int) -> int:
    return 1 << (size - 1).bit_length()


TRITON = Engine(
    name="triton",
    why_not=_why_not,
    run=f"{__name__}.engine:run",
    # for a device full of runs. By this an epoch of the paper's runs takes 0.28 us; an H100 takes
    # 0.39, with all that the host does (benchmarks/results/gpu.json)
    cost=StepCost(run=1e-4, step=1e-7, logit=1e-11, product=2e-12),
    # as the blocked engine, which it precedes on a GPU and follows where triton is interpreted
    priority=1,
    run_many=f"{__name__}.engine:run_many",
    # two programs for each of a chip's 108 to 148 processors, nearly twice
    fills=512,
)
