"""Verification of a table: what its metadata says against what its files have."""
