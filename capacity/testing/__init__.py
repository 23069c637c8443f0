"""Hypothesis strategies for property tests of databases, ranks and layers (extra ``testing``).

Use them to test your own bounds, checkers or layers on inputs about which something is known:

===================================  ==============================================================
strategy                             draws
===================================  ==============================================================
`databases`, `rdf_databases`         small databases, of labels or of RDF terms
`hard_databases`                     databases whose rank unfoldings alone seldom prove
`databases_of_known_rank`            0/1 databases whose rank over R is a theorem
`databases_of_known_effective_rank`  the same for the effective rank
`certificates`                       valid certificates of a database, of each kind
`mutations`                          a certificate after a few edits, as JSON data
`integer_tensors`                    integer tensors of any order
`integer_tensors_of_known_rank`      the same, of orders up to six, whose rank is a theorem
`tensors_of_known_rank`              order three, with a decomposition of minimal length
`layer_configs`, `layers`            attention layers with random weights
`labels`, `rdf_terms`                terms of tables and of RDF
===================================  ==============================================================

Examples
--------
Your bound must agree with the certified interval:

>>> from hypothesis import given, settings
>>> from capacity.rank import paper_bound, rank_interval
>>> from capacity.testing import certificates, databases, databases_of_known_rank, mutations
>>> @given(databases())
... @settings(max_examples=20, deadline=None)
... def upper_bound_never_exceeds_the_papers(db):
...     assert rank_interval(db).upper <= paper_bound(db)
>>> upper_bound_never_exceeds_the_papers()

and with the ranks that theorems prove:

>>> @given(databases_of_known_rank())
... @settings(max_examples=20, deadline=None)
... def known_ranks_lie_in_the_interval(known):
...     assert known.rank in rank_interval(known.database)
>>> known_ranks_lie_in_the_interval()

Your checker must accept valid certificates, and nothing that `capacity.verify` refutes:

>>> from capacity import verify
>>> from capacity.errors import CertificateError
>>> from capacity.rank import Certificate
>>> from hypothesis import strategies as st
>>> @given(st.data())
... @settings(max_examples=20, deadline=None)
... def valid_certificates_are_proved_and_damaged_ones_refused(data):
...     db = data.draw(databases())
...     certificate = data.draw(certificates(db))
...     assert verify(certificate, db).proved
...     try:
...         damaged = Certificate.from_dict(data.draw(mutations(certificate)))
...         verdict = verify(damaged, db)
...     except CertificateError:
...         return
...     assert verdict.proved or verdict.reason
>>> valid_certificates_are_proved_and_damaged_ones_refused()
"""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
