"""Maps Iceberg types and values to Arrow: types, casts, filters, transforms."""
