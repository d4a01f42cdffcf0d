"""Holds what Parquet, ORC and Avro data files share: field ids, projection, metrics, properties."""
