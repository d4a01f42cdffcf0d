"""Implements the REST catalog, a client of servers of the Iceberg REST catalog specification."""
