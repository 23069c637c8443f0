"""The trusted base: all that has to be believed for a certified bound to be true.

A bound is true if this folder is right. `checker` says how arguments add up, with the proof;
`kinds` has a module a kind of argument, each with what it claims, why that proves a bound, and its
checker. They share `facts` and `view` (the facts that an argument is about), `budget` (what a check
may cost) and `conversion` (the one place where every array is looked at and made int64).

`procedures` decide the rank of two slices, whether matrices are diagonal in a common basis over R,
and whether real numbers near a fit solve equations. The search calls the same ones for pencils,
diagonalizations and enclosures: a mistake there would be made twice. ``tests/second_checker``,
written from the definitions alone, stands against that.

`certificate`, `argument`, `argument_json` and `serialization` are data on its way from JSON, which
is checked again. No module here imports anything of `capacity.rank` but its own folder and types;
beside them are trusted `capacity.database` (triples, components, hash), numpy, scipy's connected
components, FLINT through python-flint, and Python's integers and fractions; `capacity.errors`,
`capacity.limits` and `capacity.safe_files` hold messages and files, and no bound. A program that
registers a kind of its own believes its checker as well.

``make verifier`` tests it alone. ``docs/trust.md`` has the numbers of lines, and the promises.
"""
