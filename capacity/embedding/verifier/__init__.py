"""The code to be believed for the bound of a dimension, beside the theorems and their counts.

`conversion` admits a claim: types, ranges and distinctness of all that it names. Then signs, facts
without reverses and the scores of a witness are checked by definition, apart from the search, and
what has no certificate is counted again (`known`). `checker` calls them, within one budget.
"""
