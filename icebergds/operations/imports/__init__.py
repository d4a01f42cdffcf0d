"""Adds data files of other writers to tables, and copies tables to other places."""
