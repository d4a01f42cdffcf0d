"""Shipped helpers for tests: table builders, oracles."""
