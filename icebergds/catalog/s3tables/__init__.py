"""Implements the catalog of a table bucket of S3 Tables."""
