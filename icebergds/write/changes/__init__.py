"""Writes changes of rows: by position, and by key."""
