"""Rewrites data files: few of a good size, with their deletes merged, sorted if asked for."""
