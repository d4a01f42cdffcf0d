"""Catalogs: from an identifier to table metadata."""
