"""Simulates concurrent writers of a table on storage and catalogs that fail, from one seed.

`python -m icebergds.testing.simulate` runs it; docs/reliability.md says what it checks.
"""
