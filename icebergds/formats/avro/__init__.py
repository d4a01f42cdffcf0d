"""Avro files: containers, schemas, columns and records, data files."""
