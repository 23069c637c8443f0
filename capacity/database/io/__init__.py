"""Files and other libraries: formats, readers, writers and what hostile input is held back by."""
