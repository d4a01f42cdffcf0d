"""Reads and writes manifests and manifest lists, column by column."""
