"""Writes delete files and deletion vectors."""
