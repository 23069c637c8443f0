"""Components of a language model that bring its facts: attribution, tables, ablation."""
