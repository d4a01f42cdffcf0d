"""Apache Iceberg tables in PySpark, in pure Python."""
