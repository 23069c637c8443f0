"""Grammar of a sweep's TOML file: its sections, and the plan that they describe. No torch in here.

Sections are dataclasses: `Recipe`, `Compute` and `LayerConfig` of `capacity.layer`, and those of
`capacity.sweep.grammar.sections`. Keys, defaults, checks and the reference of the file
(``capacity sweep --reference``) all come from their fields and docstrings.
"""
