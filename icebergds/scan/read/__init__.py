"""Reads tasks on executors: merges deletes, filters, compares changes."""
