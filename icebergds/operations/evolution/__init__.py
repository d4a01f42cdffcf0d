"""Shapes tables: schema, partitioning, sort order, properties, branches and tags."""
