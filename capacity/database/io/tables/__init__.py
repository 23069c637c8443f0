"""Tables of facts: their options, headers and cells, and the formats TSV, CSV and Parquet.

A table has three columns by default: a column of notes or of row numbers would
else become part of each fact. Either `arity` specifies the number of columns, the last of them the
object, or `columns` chooses some. What a table is beyond that is recognised where it is certain,
and refused where it can be read in two ways:

* a header (`headers`);
* N-Triples terms in the cells (`cells`): all of them are terms, with an IRI among them;
* one column per property (``table="wide"``), which is never assumed.

Importing this package registers the formats.
"""

from capacity.database.io.tables import text as text  # isort: skip
from capacity.database.io.tables import parquet as parquet
