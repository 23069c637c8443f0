"""Proofs of ends as text for Lean 4: what the tensor is, its terms, and a minor that isn't 0."""
