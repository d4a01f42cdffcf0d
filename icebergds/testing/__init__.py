"""Helps to test: conformance suites, table builders and fault injection, shipped to users.

Builders of tables, from values to whole tables: `schemas` (fields and specs), `rows` (Arrow
batches), `data_files` and `files` (files of each format), `tables` (tables as no engine writes
them), `write_plans` (files of a write task), `commit_tables` (commits of given files),
`delta_tables` (row-level changes), `api_tables` (tables of catalogs), `metadata` (metadata alone).
`contents` says what a table has. `catalog_conformance` tests catalogs; `faults` fails storage and
commits at a chosen call.
"""
