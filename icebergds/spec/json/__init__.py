"""Reads and writes the JSON of table metadata (spec: Appendix C)."""
