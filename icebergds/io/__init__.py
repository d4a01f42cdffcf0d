"""Reads and writes files of local and remote storage."""
