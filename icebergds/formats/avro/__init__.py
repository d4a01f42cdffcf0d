"""Reads and writes Avro: containers, schemas, columns, records, data files."""
