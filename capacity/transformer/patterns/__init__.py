"""Patterns of attention by themselves: kinds of heads, and rollout over layers."""
