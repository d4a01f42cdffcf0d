"""Commits to catalogs that store a pointer to the current metadata file of each table.

A commit writes a new metadata file and then swaps the pointer, if that still points to the file
that the commit is based on.
"""
