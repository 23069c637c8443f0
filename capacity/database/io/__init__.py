"""Files and other libraries: formats, readers, writers and what hostile input is held back by.

The formats of the library are registered here, with the modules that define them.
"""

from capacity.database.io import rdf_formats as rdf_formats
from capacity.database.io import tables as tables
