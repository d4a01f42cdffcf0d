"""Changes of single rows by DataFrames: delete, update, merge and upsert."""
