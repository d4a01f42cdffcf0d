"""Encodes, decodes, shreds and rebuilds variants (Parquet's variant encoding and shredding)."""
