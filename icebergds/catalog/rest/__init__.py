"""Implements the REST catalog, a client for servers of the Iceberg REST catalog specification."""
