"""The experiments, a folder for each paper or question, with its results.

Each is run from the root of the repository, ``python -m experiments.facts.figures --run``; ``python
-m experiments`` lists them. To add one, write its module and its line here.
"""

# the name of its results -> its module
EXPERIMENTS = {
    "figures": "experiments.facts.figures",
    "logit_scale": "experiments.facts.logit_scale",
    "d_head_qk": "experiments.facts.d_head_qk",
    "measured_ranks": "experiments.facts.measured_ranks",
    "tau_rank": "experiments.facts.tau_rank",
    "argmax_rank": "experiments.facts.argmax_rank",
    "capacity_law": "experiments.facts.capacity_law",
    "by_hand": "experiments.facts.by_hand",
    "nonsense": "experiments.facts.nonsense",
    "additive_motif": "experiments.facts.additive_motif",
    "identifiability": "experiments.identifiability.run",
    "effective_attention": "experiments.effective_attention.run",
    "decomposition": "experiments.decomposition.run",
    "database_size": "experiments.size.measures",
    "law_of_layers": "experiments.size.layers",
    "associations": "experiments.size.associations",
    "frozen": "experiments.size.frozen",
    "starts": "experiments.starts.factors",
    "half_sizes": "experiments.starts.half_sizes",
    "frozen_law": "experiments.starts.frozen_law",
    "patterns": "experiments.starts.patterns",
    "failures": "experiments.starts.failures",
    "neighbours": "experiments.starts.neighbours",
    "stores": "experiments.size.stores",
    "overload": "experiments.bits.overload",
    "formats": "experiments.bits.formats",
    "completion": "experiments.completion.run",
    "atlas": "experiments.atlas.run",
    "optimal": "experiments.optimal.run",
    "dimension_least": "experiments.dimension.least",
    "dimension_held_out": "experiments.dimension.held_out",
    "smollm2": "experiments.knows.smollm2",
    "trained": "experiments.knows.trained",
}
