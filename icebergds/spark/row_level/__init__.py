"""Runs row-level statements as Spark jobs: delete, update, merge and upsert."""
