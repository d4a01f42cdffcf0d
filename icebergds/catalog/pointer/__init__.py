"""Commits to catalogs that store where the current metadata file of each table is: a pointer.

A commit writes a new metadata file and then swaps the pointer, if it is still at the file that the
commit is based on.
"""
