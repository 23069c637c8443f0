"""The substitution method: greedy and annealed orders of steps, other bases, cases."""
