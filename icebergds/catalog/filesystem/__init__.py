"""Implements the file system catalog, and commits to tables by location."""
