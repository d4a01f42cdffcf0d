"""Reads and writes ORC data files."""
