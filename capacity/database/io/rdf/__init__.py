"""RDF: its formats and readers, graphs, contexts and annotations, and guards against hostile text.

Importing this package registers the formats.
"""

from capacity.database.io.rdf import formats as formats
