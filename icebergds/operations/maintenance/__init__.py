"""Maintains tables: rewrites and removes files, expires snapshots, measures health."""
