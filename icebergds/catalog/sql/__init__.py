"""Implements the SQL catalog, compatible with Java's JDBC catalog and PyIceberg's SQL catalog."""
