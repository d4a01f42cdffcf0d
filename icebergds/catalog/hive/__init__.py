"""Implements the catalog of a Hive Metastore, compatible with Java Iceberg's and PyIceberg's."""
