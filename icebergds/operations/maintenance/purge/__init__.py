"""Deletes rows for good, and finds files that still hold them."""
