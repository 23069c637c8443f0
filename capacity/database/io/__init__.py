"""Readers and writers of files and of other libraries' types; guards against hostile input.

Importing this package registers the formats that come with the library.
"""

from capacity.database.io import rdf as rdf
from capacity.database.io import tables as tables

from capacity.database.io import records as records  # isort: skip
