"""Shares of the verifier's budget for the arguments that a search finds.

Certificates must be affordable to check (`capacity.rank.verifier.budget`). One file may hold both
ends of the rank and of the effective rank, and each end rests on several arguments.
"""

from __future__ import annotations

from collections.abc import Iterable

from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.budget import STEPS
from capacity.rank.verifier.kinds.algebraic import (
    AlgebraicDecomposition,
    cost_of_algebraic_terms,
)
from capacity.rank.verifier.kinds.decomposition import PRODUCT, Decomposition, products_of_terms
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.procedures.krawczyk import cost_of_contraction

# decompositions and enclosures of one end, of the four in a file
OF_AN_END = STEPS // 4
# the pencils of one end, which may be checked for the other end as well
OF_PENCILS = STEPS // 4
# a flattening: the lower ends of the rank and of the effective rank may each have one
OF_A_FLATTENING = STEPS * 3 // 8


def steps_above(arguments: Iterable[Argument]) -> int:
    """Estimate the verifier's steps for decompositions and enclosures."""
    steps = 0
    for argument in arguments:
        if isinstance(argument, Decomposition):
            steps += PRODUCT * products_of_terms(argument.terms)
        elif isinstance(argument, AlgebraicDecomposition):
            steps += cost_of_algebraic_terms(argument)
        elif isinstance(argument, Enclosure):
            steps += cost_of_contraction(argument.factors, argument.varying, argument.radius)[0]
    return steps
