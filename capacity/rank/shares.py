"""How much of the checker's budget each part of what is found may take.

What a search finds must be checkable (`capacity.rank.verifier.budget`): in one file there may be
both ends of the rank and of the effective rank, and each end has several arguments.
"""

from __future__ import annotations

from collections.abc import Iterable

from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.budget import STEPS
from capacity.rank.verifier.kinds.decomposition import PRODUCT, Decomposition, products_of_terms
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.procedures.krawczyk import cost_of_contraction

# terms and fits of an end, among the four of a file
OF_AN_END = STEPS // 4
# the pencils of an end, which may be checked at the other end as well
OF_PENCILS = STEPS // 4
# a flattening, which a lower end of the rank and one of the effective rank may have
OF_A_FLATTENING = STEPS * 3 // 8


def steps_above(arguments: Iterable[Argument]) -> int:
    """Estimate the steps that the check of fits and terms takes."""
    steps = 0
    for argument in arguments:
        if isinstance(argument, Decomposition):
            steps += PRODUCT * products_of_terms(argument.terms)
        elif isinstance(argument, Enclosure):
            steps += cost_of_contraction(argument.factors, argument.varying, argument.radius)[0]
    return steps
