"""Hypothesis strategies for property tests of databases, ranks and layers (extra ``testing``).

Whoever has bounds, checkers or layers of their own can hold them against these inputs, and against
what is known of them:

===================================  ==============================================================
strategy                             draws
===================================  ==============================================================
`databases`, `rdf_databases`         small databases, of labels or of RDF terms
`hard_databases`                     those whose rank unfoldings alone seldom give
`databases_of_known_rank`            0/1 databases whose rank over R is a theorem
`databases_of_known_effective_rank`  the same for the effective rank
`certificates`                       valid certificates of a database, of each kind
`mutations`                          what becomes of a certificate by a few edits, as JSON data
`tensors_of_known_rank`              integer tensors with a shortest decomposition
`layer_configs`, `layers`            attention layers with random weights
`labels`, `rdf_terms`                terms
===================================  ==============================================================

Examples
--------
A bound of one's own must lie between what is proved:

>>> from hypothesis import given, settings
>>> from capacity.rank import paper_bound, rank_interval
>>> @given(databases())
... def upper_bound_never_exceeds_the_papers(db):
...     assert rank_interval(db).upper.value <= paper_bound(db)
>>> upper_bound_never_exceeds_the_papers()

and what has a theorem must agree with it:

>>> @given(databases_of_known_rank())
... @settings(max_examples=20)
... def known_ranks_lie_in_the_interval(known):
...     assert known.rank in rank_interval(known.database)
>>> known_ranks_lie_in_the_interval()

A checker of one's own must accept what is valid, and nothing that `capacity.verify` refutes:

>>> from capacity import verify
>>> from capacity.errors import CertificateError
>>> from capacity.rank import Certificate
>>> from hypothesis import strategies as st
>>> @given(st.data())
... @settings(max_examples=20)
... def valid_certificates_are_proved_and_damaged_ones_refused_in_words(data):
...     db = data.draw(databases())
...     certificate = data.draw(certificates(db))
...     assert verify(certificate, db).proved
...     try:
...         damaged = Certificate.from_dict(data.draw(mutations(certificate)))
...         verdict = verify(damaged, db)
...     except CertificateError:
...         return
...     assert verdict.proved or verdict.reason
>>> valid_certificates_are_proved_and_damaged_ones_refused_in_words()
"""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
