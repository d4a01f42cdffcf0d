"""Replaces the tables that a query names with scans, pruned by the query."""
