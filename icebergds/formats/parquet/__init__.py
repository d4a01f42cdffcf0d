"""Reads and writes Parquet data files, with their metrics and page indexes."""
