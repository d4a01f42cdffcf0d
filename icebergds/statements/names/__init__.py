"""Finds what the names in statements stand for."""
