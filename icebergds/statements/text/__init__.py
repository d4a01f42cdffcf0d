"""Reads the text of statements: tokens, names, literals, and where they stand."""
