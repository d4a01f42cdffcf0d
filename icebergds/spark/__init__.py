"""The only package that knows pyspark."""
