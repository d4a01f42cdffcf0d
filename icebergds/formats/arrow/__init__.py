"""Iceberg types and values in Arrow: types, casts, filters, transforms."""
