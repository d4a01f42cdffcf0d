"""Implements the catalog for a table bucket of S3 Tables."""
