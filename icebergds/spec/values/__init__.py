"""Converts single values: binary form, dates, decimals, text."""
