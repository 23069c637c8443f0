"""Messages of the command line: the library's in its words, and those for wrong use."""
