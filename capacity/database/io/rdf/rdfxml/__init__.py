"""RDF/XML: expat reads the XML, and the grammar of RDF/XML here makes lines of N-Triples of it."""
