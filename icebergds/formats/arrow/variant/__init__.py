"""Rebuilds variant values from shredded columns (Parquet's variant encoding and shredding)."""
