"""Makes deletes cheap to read: converts, merges and removes delete files."""
