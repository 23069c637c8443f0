"""The kinds of arguments, a module each: data, form in JSON, proof and checker."""
