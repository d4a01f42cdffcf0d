"""Measures what reads of a table cost, and advises what to do."""
