"""Loads, creates and commits tables by identifier or location."""
