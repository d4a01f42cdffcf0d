"""Connects icebergds to Spark; no other package needs pyspark."""
