"""Queries: the tables that they name are replaced by scans, pruned by the query."""
