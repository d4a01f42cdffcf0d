"""Evolves schemas: type promotion, union by name, fresh ids."""
