"""Runs SQL statements on Iceberg tables in unmodified Spark sessions."""
