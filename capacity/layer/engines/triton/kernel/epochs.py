"""The kernel: one program trains one run, some hundred epochs a launch.

An epoch has three stages. A program's threads hand on to one another through global memory, which
its cache holds. What one writes and another reads has a barrier between, which the interpreter
doesn't need (tests/triton/test_races.py checks it there):

1. queries, keys and values of each token that is a subject or a predicate;
2. a block of rows at a time: attention, logits, losses, and all gradients back to the attention;
3. a block of tokens at a time: the sums over a token's rows, and the step of the optimizer.

A row is what predicts a token. After subject s and predicate p its residual is that of
`capacity.layer.engines.fused.attention`. After s alone it is that of the row (s, s), whose gate
mixes equal values, so that all rows are computed alike. All sums have a fixed order.
"""

# compiled by triton, which is installed with the extra `gpu` alone
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from capacity.layer.engines.triton.kernel.adam import adam_step, load_moments, store_moments


@triton.jit
def _project(
    embeddings, queries, keys, values, out_q, out_k, out_v, n_active, d_model,
    D: tl.constexpr, HE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute queries, keys and values of the tokens."""
    columns = tl.arange(0, HE)
    for start in tl.range(0, n_active, BLOCK, disable_licm=True):
        tokens = start + tl.arange(0, BLOCK)
        inside = tokens < n_active
        q = tl.zeros((BLOCK, HE), tl.float32)
        k = tl.zeros((BLOCK, HE), tl.float32)
        v = tl.zeros((BLOCK, HE), tl.float32)
        for a in tl.range(d_model, disable_licm=True):
            x = tl.load(embeddings + tokens * D + a, inside, 0.0)[:, None]
            q += x * tl.load(queries + a * HE + columns)[None, :]
            k += x * tl.load(keys + a * HE + columns)[None, :]
            v += x * tl.load(values + a * HE + columns)[None, :]
        at = tokens[:, None] * HE + columns[None, :]
        tl.store(out_q + at, q, inside[:, None])
        tl.store(out_k + at, k, inside[:, None])
        tl.store(out_v + at, v, inside[:, None])


# one compiled kernel a shape, whatever the lengths of its groups
LENGTHS = (
    "n_weights", "n_rows", "n_active", "n_targets", "last_epoch", "total_epochs", "chunk",
)  # fmt: skip


@triton.jit(do_not_specialize=LENGTHS)
def train(
    # of all runs, one after the other: weights and moments, and what stages hand on
    values, firsts, seconds, scratch,
    # facts of all runs: (runs, rows or targets), and starts of parts (runs, rows or tokens + 1)
    subjects, predicates, weights, target_starts, targets, subject_starts, subject_rows,
    predicate_starts, predicate_rows,
    # (runs, 5) and (runs,): rows, first rows, active tokens, tokens, d_model; attention scale
    sizes, scales,
    # (runs,): epochs done; 1 while it goes on, 0 if it has ended, 2 if its loss wasn't finite;
    # least log-probability of a fact; (runs, chunk): losses and numbers of known facts
    epochs, going, least_log_p, losses, known,
    # (epochs + 1, 3): rate / (1 - 0.9^t), 1 / sqrt(1 - beta2^t), rate
    rates,
    # length of a run's part of: weights, rows, tokens that are active, targets
    n_weights, n_rows, n_active, n_targets,
    last_epoch, total_epochs, chunk, enough, beta2, decay,
    TOKENS: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, E: tl.constexpr,
    ROWS_A_BLOCK: tl.constexpr, TOKENS_A_BLOCK: tl.constexpr,
    DECOUPLED: tl.constexpr, DECAYS: tl.constexpr, MOVES: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Train one run until an epoch, unless it ends before.

    With MOVES false gradients are stored in `firsts`, and no weight moves.
    """
    HE: tl.constexpr = HEADS * E
    run = tl.program_id(0).to(tl.int64)
    rows, n_first, active, tokens, d_model = (
        tl.load(sizes + run * 5), tl.load(sizes + run * 5 + 1), tl.load(sizes + run * 5 + 2),
        tl.load(sizes + run * 5 + 3), tl.load(sizes + run * 5 + 4),
    )  # fmt: skip
    scale = tl.load(scales + run)
    w = run * n_weights
    # parts of the weights: W_E (TOKENS, D), W_U (D, TOKENS), W_Q, W_K, W_V (D, HE), W_O (HE, D)
    at_u: tl.constexpr = TOKENS * D
    at_q: tl.constexpr = 2 * TOKENS * D
    at_k: tl.constexpr = at_q + D * HE
    at_v: tl.constexpr = at_q + 2 * D * HE
    at_o: tl.constexpr = at_q + 3 * D * HE
    # parts of the scratch: q, k, v of tokens; gradients of rows, four times; residuals, gradients
    s = scratch + run * (3 * n_active * HE + n_rows * (4 * HE + 2 * D))
    all_q, all_k, all_v = s, s + n_active * HE, s + 2 * n_active * HE
    s += 3 * n_active * HE
    to_q, to_k, to_v, to_v_p = s, s + n_rows * HE, s + 2 * n_rows * HE, s + 3 * n_rows * HE
    residuals, d_residuals = s + 4 * n_rows * HE, s + n_rows * (4 * HE + D)
    subjects += run * n_rows
    predicates += run * n_rows
    target_starts += run * (n_rows + 1)
    targets += run * n_targets
    weights += run * n_rows
    subject_rows += run * n_rows
    predicate_rows += run * n_rows
    subject_starts += run * (n_active + 1)
    predicate_starts += run * (n_active + 1)

    lanes, he, ds = tl.arange(0, TOKENS), tl.arange(0, HE), tl.arange(0, D)
    is_token = lanes < tokens
    # moments that stay in registers
    first_u, second_u = load_moments(firsts + w + at_u, seconds + w + at_u, D, TOKENS, HELD)
    first_q, second_q = load_moments(firsts + w + at_q, seconds + w + at_q, D, HE, HELD)
    first_k, second_k = load_moments(firsts + w + at_k, seconds + w + at_k, D, HE, HELD)
    first_v, second_v = load_moments(firsts + w + at_v, seconds + w + at_v, D, HE, HELD)
    first_o, second_o = load_moments(firsts + w + at_o, seconds + w + at_o, D, HE, HELD)
    epoch = tl.load(epochs + run)
    goes_on = tl.load(going + run)
    for _ in tl.range(epoch, last_epoch, disable_licm=True):
        if goes_on == 1:
            _project(values + w, values + w + at_q, values + w + at_k, values + w + at_v,
                     all_q, all_k, all_v, active, d_model, D, HE, TOKENS_A_BLOCK)  # fmt: skip
            tl.debug_barrier()
            loss, least, n_known = 0.0, float("inf"), 0
            d_unembedding = tl.zeros((D, TOKENS), tl.float32)
            d_output = tl.zeros((D, HE), tl.float32)
            for start in tl.range(0, rows, ROWS_A_BLOCK, disable_licm=True):
                i = start + tl.arange(0, ROWS_A_BLOCK)
                inside = i < rows
                subject, predicate = (
                    tl.load(subjects + i, inside, 0), tl.load(predicates + i, inside, 0)
                )  # fmt: skip
                at_s = subject[:, None] * HE + he[None, :]
                at_p = predicate[:, None] * HE + he[None, :]
                q, v = tl.load(all_q + at_p), tl.load(all_v + at_p)
                dk, dv = tl.load(all_k + at_s) - tl.load(all_k + at_p), tl.load(all_v + at_s) - v
                score = tl.sum(tl.reshape(q * dk, (ROWS_A_BLOCK, HEADS, E)), 2) * scale
                gate = 1 / (1 + tl.exp(-score))
                wide = tl.reshape(
                    tl.broadcast_to(gate[:, :, None], (ROWS_A_BLOCK, HEADS, E)), (ROWS_A_BLOCK, HE)
                )
                mixed = v + wide * dv
                logits = tl.zeros((ROWS_A_BLOCK, TOKENS), tl.float32)
                for a in tl.range(d_model, disable_licm=True):
                    r = tl.load(values + w + predicate * D + a, inside, 0.0)
                    r += tl.sum(mixed * tl.load(values + w + at_o + a * HE + he)[None, :], 1)
                    tl.store(residuals + i * D + a, r, inside)
                    logits += r[:, None] * tl.load(values + w + at_u + a * TOKENS + lanes)[None, :]
                # residuals are read below by other threads
                tl.debug_barrier()
                most = tl.max(tl.where(is_token[None, :], logits, float("-inf")), 1)
                exponential = tl.where(is_token[None, :], tl.exp(logits - most[:, None]), 0.0)
                total = tl.sum(exponential, 1)
                log_total = most + tl.log(total)
                weight = tl.load(weights + i, inside, 0.0)
                first = tl.load(target_starts + i, inside, 0)
                count = tl.load(target_starts + i + 1, inside, 0) - first
                hit = tl.zeros((ROWS_A_BLOCK, TOKENS), tl.float32)
                for j in tl.range(0, tl.max(count, 0), disable_licm=True):
                    target = tl.load(targets + first + j, j < count, -1)
                    hit += tl.where(lanes[None, :] == target[:, None], 1.0, 0.0)
                share = weight / tl.maximum(count, 1)
                right = tl.sum(tl.where(hit > 0, logits, 0.0), 1)
                is_fact = inside & (i >= n_first)
                loss += tl.sum(weight * log_total - share * right, 0)
                log_p = right - log_total
                least = tl.minimum(least, tl.min(tl.where(is_fact, log_p, float("inf")), 0))
                n_known += tl.sum((is_fact & (log_p > -0.6931471805599453)).to(tl.int32), 0)
                error = exponential * (weight / total)[:, None] - hit * share[:, None]
                d_mixed = tl.zeros((ROWS_A_BLOCK, HE), tl.float32)
                for a in tl.range(d_model, disable_licm=True):
                    r = tl.load(residuals + i * D + a, inside, 0.0)
                    u = tl.load(values + w + at_u + a * TOKENS + lanes)
                    o = tl.load(values + w + at_o + a * HE + he)
                    d_r = tl.sum(error * u[None, :], 1)
                    tl.store(d_residuals + i * D + a, d_r, inside)
                    is_a = (ds == a)[:, None]
                    d_unembedding += tl.where(is_a, tl.sum(error * r[:, None], 0)[None, :], 0.0)
                    d_output += tl.where(is_a, tl.sum(mixed * d_r[:, None], 0)[None, :], 0.0)
                    d_mixed += d_r[:, None] * o[None, :]
                d_gate = tl.sum(tl.reshape(d_mixed * dv, (ROWS_A_BLOCK, HEADS, E)), 2)
                d_score = d_gate * gate * (1 - gate) * scale
                wide_score = tl.reshape(
                    tl.broadcast_to(d_score[:, :, None], (ROWS_A_BLOCK, HEADS, E)),
                    (ROWS_A_BLOCK, HE),
                )
                at = i[:, None] * HE + he[None, :]
                tl.store(to_q + at, wide_score * dk, inside[:, None])
                tl.store(to_k + at, wide_score * q, inside[:, None])
                tl.store(to_v + at, wide * d_mixed, inside[:, None])
                tl.store(to_v_p + at, d_mixed - wide * d_mixed, inside[:, None])
            tl.debug_barrier()
            tl.store(losses + run * chunk + epoch % chunk, loss)
            tl.store(known + run * chunk + epoch % chunk, n_known)
            tl.store(least_log_p + run, least)
            is_finite = tl.abs(loss) < float("inf")
            if ((least >= enough) & is_finite) | (epoch >= total_epochs):
                goes_on = 0
            else:
                step = rates + epoch * 3
                at_lanes = ds[:, None] * TOKENS + lanes[None, :]
                used = (ds < d_model)[:, None] & is_token[None, :]
                first_u, second_u = adam_step(
                    values + w + at_u, firsts + w + at_u, seconds + w + at_u, at_lanes, used,
                    d_unembedding, first_u, second_u, step, beta2, decay, DECOUPLED, MOVES, HELD,
                )  # fmt: skip
                at_head = ds[:, None] * HE + he[None, :]
                every = at_head >= 0
                first_o, second_o = adam_step(
                    values + w + at_o, firsts + w + at_o, seconds + w + at_o, at_head, every,
                    d_output, first_o, second_o, step, beta2, decay, DECOUPLED, MOVES, HELD,
                )  # fmt: skip
                d_queries = tl.zeros((D, HE), tl.float32)
                d_keys = tl.zeros((D, HE), tl.float32)
                d_values = tl.zeros((D, HE), tl.float32)
                for start in tl.range(0, active, TOKENS_A_BLOCK, disable_licm=True):
                    token = start + tl.arange(0, TOKENS_A_BLOCK)
                    inside = token < active
                    d_q = tl.zeros((TOKENS_A_BLOCK, HE), tl.float32)
                    d_k = tl.zeros((TOKENS_A_BLOCK, HE), tl.float32)
                    d_v = tl.zeros((TOKENS_A_BLOCK, HE), tl.float32)
                    d_x = tl.zeros((TOKENS_A_BLOCK, D), tl.float32)
                    first = tl.load(predicate_starts + token, inside, 0)
                    count = tl.load(predicate_starts + token + 1, inside, 0) - first
                    for j in tl.range(0, tl.max(count, 0), disable_licm=True):
                        row = tl.load(predicate_rows + first + j, j < count, 0)
                        has, at_row = (j < count)[:, None], row[:, None] * HE + he[None, :]
                        d_q += tl.load(to_q + at_row, has, 0.0)
                        d_k -= tl.load(to_k + at_row, has, 0.0)
                        d_v += tl.load(to_v_p + at_row, has, 0.0)
                        d_x += tl.load(d_residuals + row[:, None] * D + ds[None, :], has, 0.0)
                    first = tl.load(subject_starts + token, inside, 0)
                    count = tl.load(subject_starts + token + 1, inside, 0) - first
                    for j in tl.range(0, tl.max(count, 0), disable_licm=True):
                        row = tl.load(subject_rows + first + j, j < count, 0)
                        has, at_row = (j < count)[:, None], row[:, None] * HE + he[None, :]
                        d_k += tl.load(to_k + at_row, has, 0.0)
                        d_v += tl.load(to_v + at_row, has, 0.0)
                    for a in tl.range(d_model, disable_licm=True):
                        x = tl.load(values + w + token * D + a, inside, 0.0)[:, None]
                        here = values + w + a * HE + he
                        d = tl.sum(
                            d_q * tl.load(here + at_q)[None, :]
                            + d_k * tl.load(here + at_k)[None, :]
                            + d_v * tl.load(here + at_v)[None, :], 1
                        )  # fmt: skip
                        is_a = (ds == a)[:, None]
                        d_queries += tl.where(is_a, tl.sum(x * d_q, 0)[None, :], 0.0)
                        d_keys += tl.where(is_a, tl.sum(x * d_k, 0)[None, :], 0.0)
                        d_values += tl.where(is_a, tl.sum(x * d_v, 0)[None, :], 0.0)
                        d_x += tl.where(ds[None, :] == a, d[:, None], 0.0)
                    # other threads may still read embeddings, and in the end W_Q, W_K and W_V
                    tl.debug_barrier()
                    adam_step(values + w, firsts + w, seconds + w, token[:, None] * D + ds[None, :],
                           inside[:, None] & (ds < d_model)[None, :], d_x, 0.0, 0.0, step, beta2,
                           decay, DECOUPLED, MOVES, False)  # fmt: skip
                if DECAYS:
                    # tokens that are objects alone have no gradient
                    for start in range(0, tokens - active, TOKENS_A_BLOCK):
                        token = active + start + tl.arange(0, TOKENS_A_BLOCK)
                        at_idle = token[:, None] * D + ds[None, :]
                        used_idle = (token < tokens)[:, None] & (ds < d_model)[None, :]
                        nothing = tl.zeros((TOKENS_A_BLOCK, D), tl.float32)
                        adam_step(values + w, firsts + w, seconds + w, at_idle, used_idle, nothing,
                               0.0, 0.0, step, beta2, decay, DECOUPLED, MOVES, False)  # fmt: skip
                first_q, second_q = adam_step(
                    values + w + at_q, firsts + w + at_q, seconds + w + at_q, at_head, every,
                    d_queries, first_q, second_q, step, beta2, decay, DECOUPLED, MOVES, HELD,
                )  # fmt: skip
                first_k, second_k = adam_step(
                    values + w + at_k, firsts + w + at_k, seconds + w + at_k, at_head, every,
                    d_keys, first_k, second_k, step, beta2, decay, DECOUPLED, MOVES, HELD,
                )  # fmt: skip
                first_v, second_v = adam_step(
                    values + w + at_v, firsts + w + at_v, seconds + w + at_v, at_head, every,
                    d_values, first_v, second_v, step, beta2, decay, DECOUPLED, MOVES, HELD,
                )  # fmt: skip
                epoch += 1
                if (not MOVES) | (not is_finite):
                    goes_on = 2
                tl.debug_barrier()
    store_moments(firsts + w + at_u, seconds + w + at_u, first_u, second_u, D, TOKENS, HELD)
    store_moments(firsts + w + at_q, seconds + w + at_q, first_q, second_q, D, HE, HELD)
    store_moments(firsts + w + at_k, seconds + w + at_k, first_k, second_k, D, HE, HELD)
    store_moments(firsts + w + at_v, seconds + w + at_v, first_v, second_v, D, HE, HELD)
    store_moments(firsts + w + at_o, seconds + w + at_o, first_o, second_o, D, HE, HELD)
    tl.store(epochs + run, epoch)
    tl.store(going + run, goes_on)
