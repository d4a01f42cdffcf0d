"""Implements the Hive Metastore catalog, compatible with Java Iceberg's and PyIceberg's."""
