"""Reads and writes the files of a table: data, delete, manifest and Puffin files."""
