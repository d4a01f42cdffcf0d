"""Builds what tests read, from values to whole tables, and tells what tables hold.

`schemas` (fields and specs), `rows` (Arrow batches), `data_files` and `files` (files of each
format), `tables` (tables as no engine writes them), `write_plans` (files of a write task),
`commit_tables` (commits of given files), `delta_tables` (row-level changes), `api_tables` (tables
of catalogs), `metadata` (metadata alone). `contents` says what a table has.
"""
