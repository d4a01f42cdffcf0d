"""Manifests and manifest lists, read and written by column."""
