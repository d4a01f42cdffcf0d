"""Bytes to and from spec values and Arrow batches."""
