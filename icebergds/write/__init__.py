"""What executors do: from batches of rows to data files."""
