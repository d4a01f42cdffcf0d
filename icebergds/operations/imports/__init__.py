"""Brings data files that others have written into tables, and tables to other places."""
