"""Print the modules of all experiments, one a line."""

from experiments import EXPERIMENTS

print(*EXPERIMENTS.values(), sep="\n")
