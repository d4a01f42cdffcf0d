"""Runs statements of SQL on tables of Iceberg, on sessions of Spark as they are."""
