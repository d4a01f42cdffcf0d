"""Removes what no reader needs any more: old snapshots, and files that nothing refers to."""
