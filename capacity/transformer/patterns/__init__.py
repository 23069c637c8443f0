"""What patterns of attention show by themselves: kinds of heads, and rollout over layers."""
