"""Rewrites data files into few of a good size, with their deletes merged, sorted on request."""
