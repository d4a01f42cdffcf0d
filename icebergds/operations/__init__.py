"""Implements statements without Spark: options, reads, writes, maintenance."""
