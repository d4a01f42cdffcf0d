"""Authenticates requests to the server of a REST catalog."""
