"""Position deletes, deletion vectors, and the keys of equality deletes."""
