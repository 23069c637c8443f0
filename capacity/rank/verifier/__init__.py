"""The trusted base: the modules that every certified bound rests on.

If this folder is right, every bound that `capacity.verify` calls proved is true. `checker` adds up
the arguments of a certificate, with the proof that they may be added. `kinds` has one module for
each kind of argument, with its claim, the proof that the claim is a bound, and its checker. They
share `facts` and `view` (the facts that an argument is about), `budget` (the work that a check may
take) and `conversion` (the one place where every array is checked and converted to int64).

`procedures` decide the rank of two slices, whether matrices are diagonal in a common basis over R,
and whether real numbers near a fit solve equations. The search calls the same procedures for
pencils, diagonalizations and enclosures, so a mistake in one of them would be made twice. The tests
therefore have a second checker, ``tests/second_checker``, written from the definitions alone.

`certificate`, `argument`, `argument_json` and `serialization` hold and read data, which the checker
checks again. Of `capacity.rank`, the modules of this folder import only each other and `types`.
Outside it, the trusted code is `capacity.database` (triples, components, hash), numpy, scipy's
connected components (of large graphs), FLINT through python-flint, and Python's integers and
fractions; `capacity.errors`, `capacity.checks`, `capacity.checks` and `capacity.safe_files` handle
messages and files, and no bound. A program that registers a kind of its own trusts its checker too.

``make verifier`` runs its tests alone. ``docs/trust.md`` counts its lines and lists its guarantees.
"""
