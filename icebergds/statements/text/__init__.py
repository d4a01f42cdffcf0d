"""Reads the text of statements: tokens, names, literals, and their positions."""
