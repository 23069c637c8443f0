"""Facts of many databases as the arrays of the kernel, without a loop over databases.

Facts of all databases are stored one after the other, and a token's number is counted on from those
of the databases before, so that one sort, sum or count serves all of them. What moves to the device
is the facts alone: the arrays are made there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from capacity.database.facts import Database


@dataclass(frozen=True)
class Ragged:
    """Lists of several lengths, one for each database, in one tensor.

    Attributes
    ----------
    values : (total length,)
        The lists one after the other.
    lengths : (databases,)
        Length of each, int64.
    """

    values: Tensor
    lengths: Tensor

    @property
    def starts(self) -> Tensor:
        """Return where each list begins."""
        return before(self.lengths)

    @property
    def places(self) -> Tensor:
        """Place of each value in its own list."""
        numbers = torch.arange(len(self.values), device=self.values.device)
        return numbers - self.spread(self.starts)

    def spread(self, of: Tensor) -> Tensor:
        """Repeat a number of each database for each value of its list."""
        return of.repeat_interleave(self.lengths, output_size=len(self.values))

    def padded(self, width: int) -> Tensor:
        """Return the lists as rows of one tensor, followed by zeros."""
        rows = self.values.new_zeros(len(self.lengths), width)
        numbers = torch.arange(len(self.lengths), device=rows.device)
        rows[self.spread(numbers), self.places] = self.values
        return rows

    def then(self, other: Ragged) -> Ragged:
        """Put the other's list of each database behind this one's."""
        lengths = self.lengths + other.lengths
        starts = before(lengths)
        values = self.values.new_empty(len(self.values) + len(other.values))
        values[self.spread(starts) + self.places] = self.values
        values[other.spread(starts + self.lengths) + other.places] = other.values
        return Ragged(values, lengths)


@dataclass(frozen=True)
class Facts:
    """Facts of databases as rows, and the number of each token.

    Tokens that are a subject or a predicate come first, those with the most rows before others, so
    that the tokens of a block have similar numbers of rows. Rows are one for each distinct subject,
    if predicates are learnt, which has the subject twice; then the facts.

    Attributes
    ----------
    numbers : Ragged
        Number of each token.
    n_rows, n_active, n_facts : (databases,)
        Numbers of rows, of tokens that are a subject or a predicate, and of facts.
    arrays : dict of str to Ragged
        By the names of the kernel's arguments: ``subjects`` and ``predicates``, the numbers of each
        row's tokens; ``weights`` of rows in the loss; ``targets``, the numbers of the tokens that
        rows must predict, row by row and all alike, and ``target_starts``, where each row's begin
        and the last one's end; ``subject_rows`` and ``predicate_rows``, the rows of each active
        token, and ``subject_starts`` and ``predicate_starts``, where each token's begin.
    """

    numbers: Ragged
    n_rows: Tensor
    n_active: Tensor
    n_facts: Tensor
    arrays: dict[str, Ragged]

    @classmethod
    def of(cls, databases: Sequence[Database], device: torch.device, *, both: bool) -> Facts:
        """Number tokens and rows on a device; with `both`, predicates are learnt too."""
        triples = [db.token_triples for db in databases]
        sizes = np.array(
            [(len(one), db.n_tokens) for one, db in zip(triples, databases, strict=True)]
        )
        whole = np.concatenate([sizes.ravel(), np.concatenate(triples).ravel()])
        there = torch.from_numpy(whole).to(device)
        n_facts, n_tokens = there[: sizes.size].view(-1, 2).T.contiguous()
        # tokens counted on, from database to database
        first_token = before(n_tokens)
        counted = Ragged(there[sizes.size :].view(-1, 3), n_facts)
        k, q, v = (counted.values + counted.spread(first_token)[:, None]).T.contiguous()
        n_all = int(sizes[:, 1].sum())
        owner = torch.arange(len(sizes), device=device).repeat_interleave(
            n_tokens, output_size=n_all
        )

        def of_facts(values: Tensor) -> Ragged:
            return Ragged(values, n_facts)

        distinct = k.unique() if both else k[:0]
        n_first = owner[distinct].bincount(minlength=len(sizes))
        first = Ragged(distinct, n_first)
        subjects, predicates = first.then(of_facts(k)), first.then(of_facts(q))
        n_rows = subjects.lengths
        uses = [x.values.bincount(minlength=n_all) for x in (subjects, predicates)]
        counts = uses[0] + uses[1]
        # by database, and then by falling counts
        order = (owner * (len(subjects.values) * 2 + 1) - counts).argsort(stable=True)
        number = torch.empty_like(order)
        number[order] = Ragged(order, n_tokens).places
        n_active = owner[counts > 0].bincount(minlength=len(sizes))
        # a subject's row must predict the predicates of its facts, which differ
        n_targets = Ragged(k.bincount(minlength=n_all)[distinct], n_first).then(
            of_facts(torch.ones_like(k))
        )
        after = Ragged(q[k.argsort(stable=True)], n_facts) if both else Ragged(q[:0], 0 * n_facts)
        share = subjects.spread((0.5 if both else 1.0) / n_facts.double())
        arrays = {
            "subjects": Ragged(number[subjects.values], n_rows),
            "predicates": Ragged(number[predicates.values], n_rows),
            "weights": Ragged((share * n_targets.values).float(), n_rows),
            "target_starts": _starts(n_targets),
            "targets": Ragged(number[after.values], after.lengths).then(of_facts(number[v])),
        }
        # active tokens in the order of their numbers
        active = order[counts[order] > 0]
        for name, tokens, used in zip(
            ("subject", "predicate"), (subjects, predicates), uses, strict=True
        ):
            # its number, counted on, is a token's place in `order`
            place = number[tokens.values] + tokens.spread(first_token)
            rows = place.argsort(stable=True) - tokens.spread(tokens.starts)
            arrays[f"{name}_rows"] = Ragged(rows, n_rows)
            arrays[f"{name}_starts"] = _starts(Ragged(used[active], n_active))
        return cls(Ragged(number, n_tokens), n_rows, n_active, n_facts, arrays)


def before(counts: Tensor) -> Tensor:
    """Sum of all counts before each one."""
    return counts.cumsum(0) - counts


def _starts(counts: Ragged) -> Ragged:
    """List where each part begins, and where the last one ends, for each database."""
    sums = torch.cat([counts.values.new_zeros(1), counts.values.cumsum(0)])
    ends = sums[1:] - counts.spread(sums[counts.starts])
    one = torch.ones_like(counts.lengths)
    return Ragged(torch.zeros_like(one), one).then(Ragged(ends, counts.lengths))
