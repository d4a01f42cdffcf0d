"""Helps to test: conformance suites, table builders and fault injection, shipped to users."""
