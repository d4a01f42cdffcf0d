"""Parquet data files: reader, writer, metrics, page indexes."""
